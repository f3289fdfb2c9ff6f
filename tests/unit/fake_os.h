// SPDX-License-Identifier: MIT
//
// An operating system that fails on demand. FakeOs replaces brimful::os::calls for its lifetime by wrappers that count
// each memory call, fail those a test names, and otherwise do the real thing. A failed call changes nothing, as in the
// kernel, so whatever the allocator believes afterwards can be checked against what is really mapped.
//
// It also keeps the set of mapped ranges: tests of one layer on its own instance give all of it back at the end, and
// see what the layer lost. One FakeOs at a time; made and destroyed while no other thread allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "os/calls.h"

namespace brimful::testing {

// kMap takes memory, kReserve only address space.
enum class Call {
  kMap,
  kReserve,
  kDecommit,
  kCommit,
  kPurge,
  kUnmap,
  kMovePages,
  kResize,
  kPreferNode,
  kHugetlb,
  kPurgeLazily,
  kAdvise,
  kSeal,
  kIsResident,
};
inline constexpr std::size_t kCallKinds = 14;
const char* name_of(Call kind);

struct Range {
  std::uint64_t start;
  std::size_t bytes;
  bool operator==(const Range&) const = default;
};

struct Advised {
  Range range;
  os::Advice advice;
};

class FakeOs {
 public:
  static constexpr std::size_t kAlways = SIZE_MAX;

  FakeOs();
  ~FakeOs();
  FakeOs(const FakeOs&) = delete;
  FakeOs& operator=(const FakeOs&) = delete;

  // The n-th call of the kind from now on (the first is 1) fails, and `times` - 1 after it.
  void fail(Call kind, std::size_t n, std::size_t times = 1);
  // The same for calls of any kind but unmap and is_resident, counted together: a system that refuses memory still takes
  // it back, and answers.
  void fail_any(std::size_t n, std::size_t times = 1);
  // Nothing fails any more. Returns how many calls were failed since the last fail…().
  std::size_t succeed();

  // Calls so far, failed ones too.
  [[nodiscard]] std::size_t count(Call kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::size_t total() const;

  // Forgets the counts and the log.
  void reset();
  // Ranges of the successful calls of a kind since reset(), in order.
  [[nodiscard]] std::vector<Range> log(Call kind) const;

  [[nodiscard]] std::size_t mapped_bytes() const;
  // Unmaps all that was mapped through this table.
  void unmap_everything();

  std::uint64_t now_ms = 1000;
  std::uint32_t node = 0;  // of the running CPU
  // What the system says of hugepages, and what was asked and said about them.
  os::HugepageMode hugepage_mode = os::HugepageMode::kMadvise;
  std::size_t mode_questions = 0;
  std::size_t residence_questions = 0;
  std::vector<Advised> advices;  // but for these:
  std::vector<Advised> dumps;
  // What touching and populating cost by the fake clock, for each page, and for each hugepage that is advised. With
  // `only_pretends` none of it is done: the kernel's pages stay where they are.
  bool only_pretends = false;
  std::uint64_t touched_ns = 1700;
  std::uint64_t populated_ns = 1400;
  std::uint64_t hugepage_ns = 200'000;
  std::uint64_t cpu_ns = 0;

  // For the wrappers: counts a call; true when it is to fail.
  bool enter(Call kind);
  void done(Call kind, std::uint64_t start, std::size_t bytes);
  void touch(std::uint64_t start, std::size_t bytes);
  [[nodiscard]] bool is_resident(std::uint64_t address) const;

 private:
  struct Plan {
    std::size_t skip = 0;
    std::size_t times = 0;
    bool hits();
  };
  [[nodiscard]] bool is_advised(std::uint64_t address) const;
  void add(std::uint64_t start, std::size_t bytes);
  void remove(std::uint64_t start, std::size_t bytes);

  mutable std::mutex mutex_;
  Plan plans_[kCallKinds];
  Plan any_;
  std::size_t failed_ = 0;
  std::size_t counts_[kCallKinds] = {};
  std::vector<Range> logs_[kCallKinds];
  std::set<std::uint64_t> huge_;                   // hugepages that were touched
  std::map<std::uint64_t, std::uint64_t> mapped_;  // start → end, disjoint
};

}  // namespace brimful::testing
