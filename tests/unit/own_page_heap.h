// SPDX-License-Identifier: MIT
//
// A page heap of a test's own, over a fake system, and the oracle that knows what it must answer: live runs with a
// pattern in each granule, and the free runs that are their complement in the first window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "fake_os.h"
#include "meta/granule_table.h"
#include "pages/page_heap.h"

namespace brimful::testing {

class OwnPageHeap {
 public:
  // A first window of 64 MiB, and no further one unless the test says so.
  explicit OwnPageHeap(std::size_t reserve = kReserve);
  ~OwnPageHeap();
  OwnPageHeap(const OwnPageHeap&) = delete;
  OwnPageHeap& operator=(const OwnPageHeap&) = delete;

  static constexpr std::size_t kReserve = std::size_t{64} << 20;

  // Allocates and fills a run; checks all that can be said about it. 0: the heap had none.
  std::uint64_t allocate(std::uint32_t count, std::size_t alignment = kGranuleBytes);
  // Checks that the run still holds its pattern, then frees it.
  void free(std::uint64_t start);
  // Grows a run in place. false: the heap refused, nothing changed.
  bool extend(std::uint64_t start, std::uint32_t extra);
  void free_all();

  // Whether `count` granules are free side by side, by the oracle.
  [[nodiscard]] bool has_room(std::uint32_t count) const;
  // Free granules behind `end` by the oracle.
  [[nodiscard]] std::uint32_t free_behind(std::uint64_t end) const;
  [[nodiscard]] std::size_t live_bytes() const;

  // Everything is free: all of the window must be usable as one run again, and no hugepage in use but the first.
  void expect_whole();

  FakeOs os;
  meta::GranuleTable table;
  pages::PageHeap pages;
  std::map<std::uint64_t, std::uint32_t> live;  // start → granules
  std::uint64_t window = 0;                     // first usable address
  std::uint64_t window_end = 0;

 private:
  void learn_window();
};

void fill_granules(std::uint64_t start, std::uint32_t count);
bool holds_pattern(std::uint64_t start, std::uint32_t count);

}  // namespace brimful::testing
