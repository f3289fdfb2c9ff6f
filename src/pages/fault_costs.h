// SPDX-License-Identifier: MIT
//
// What new memory costs on this machine: nanoseconds for each page of 4 KiB that is touched, populated by a call, or comes
// with a hugepage. Where the host backs a virtual machine's memory lazily, a hugepage can cost 5 us for each of its pages, and
// a page by itself 1.3; elsewhere 0.4 and 1.7. No file says so, and it changes while the machine runs: so it is measured, on
// memory that the program is about to fill anyway, and measured again now and then.
//
// Time is the processor's, so a thread that has to wait meanwhile does no harm. Averages forget: a new value counts a
// quarter. Several threads may measure at once, without a lock; then one value is lost.
//
// Rejected: measuring at start-up (a trial hugepage costs 0.2 to 3 ms, more than a short program); a guess by the presence
// of a hypervisor (most of them back whole hugepages).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace brimful::pages {

class FaultCosts {
 public:
  enum Way : unsigned { kTouched, kPopulated, kHuge };
  static constexpr unsigned kWays = 3;
  // Values that make an average worth a decision.
  static constexpr std::uint32_t kLeastValues = 4;

  void note(Way way, std::uint64_t ns, std::uint64_t pages);

  // 0: unknown.
  [[nodiscard]] std::uint32_t ns_per_page(Way way) const;

  // false: a hugepage costs more than the faults that it saves, or a call more than faults. true where nothing is known.
  [[nodiscard]] bool do_hugepages_pay() const { return is_cheaper(kHuge); }
  [[nodiscard]] bool does_populate_pay() const { return is_cheaper(kPopulated); }

  // Whether the next range that is populated is to be measured: the first ones, then each 64th. Counts.
  bool is_due();

 private:
  [[nodiscard]] bool is_known(Way way) const;
  [[nodiscard]] bool is_cheaper(Way way) const;

  struct Cost {
    std::atomic<std::uint32_t> ns;      // average
    std::atomic<std::uint32_t> values;  // how many are in it
  };
  Cost costs_[kWays] = {};
  std::atomic<std::uint32_t> ranges_ = 0;
};

// Of this process.
extern FaultCosts fault_costs;

// Of a range that is measured, so many pages are touched: no more than a granule has, for a run may be one. (Eight pages
// of 16 KiB were two: what lay behind the run got zeros.)
constexpr std::size_t touched_pages(std::size_t page_bytes) {
  constexpr std::size_t kMost = 8;
  const std::size_t pages = kGranuleBytes / page_bytes;
  return pages < kMost ? pages : kMost;
}
static_assert(touched_pages(std::size_t{4} << 10) == 8 && touched_pages(std::size_t{16} << 10) == 4 &&
              touched_pages(std::size_t{64} << 10) == 1);

// Touches the first pages of a run that is the caller's own and holds zeros, and notes what that costs.
void touch_and_measure(std::uint64_t start);

// Brings the pages of a range that is the caller's own and holds zeros, and notes what it costs: the first few touched, the
// others by a call. false: the system knows no such call.
bool populate_and_measure(std::uint64_t start, std::size_t bytes);

// Touches the hugepage at this address, whose first page is the caller's own and holds zeros. What it costs is noted if it
// was there in no part, and is there as a whole then.
void touch_hugepage_and_measure(std::uint64_t address);

}  // namespace brimful::pages
