// SPDX-License-Identifier: MIT
//
// The page heap: windows of reserved address space, handed out in runs of 64 KiB granules.
//
//   window  ├─guard─┼── used ──┼─ free ─┼─ used ─┼───────── free, most of it never committed ─────────┤
//
// Free runs lie in one tree ordered by (length, address): the first that fits is the best fit at the lowest address
// (the tail of a window, the longest run of all, is taken last), and neighbours that become free are joined through the
// granule table, whose entries for the first and last granule of a free run lead to its header. Three flags per granule
// (committed, dirty, used) say what the kernel holds there, so calloc knows zeros and purge knows what to give back.
//
// Memory is committed (mprotect) as runs are handed out, a step ahead while the heap grows, so a small process stays
// small under THP=always, too. Freed runs stay resident for purge_delay_ms and then go back in slices of 32 MiB; and
// before the heap reaches a new peak, dirty memory that has lain for 20 ms goes back: a peak is not made of free memory.
// Where memory is charged when mapped (vm.overcommit_memory=2), going back means PROT_NONE.
//
// Every member: the caller holds the heap lock. None allocates by malloc. On failure nothing has changed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/list.h"
#include "base/treap.h"
#include "base/units.h"
#include "meta/arena.h"
#include "meta/granule_table.h"

namespace brimful::pages {

struct PageStats {
  std::size_t reserved_bytes;   // address space in windows
  std::size_t committed_bytes;  // usable part of it
  std::size_t used_bytes;       // handed out
  std::size_t dirty_bytes;      // free, not given back yet
};

class PageHeap {
 public:
  constexpr PageHeap(meta::GranuleTable& table, meta::Arena& arena) : table_(table), arena_(arena) {}

  // The most that one allocation takes from a window: larger ones are mapped on their own.
  [[nodiscard]] std::size_t most_bytes() const { return most_bytes_; }

  // Start of `count` free granules on a multiple of `alignment` (a power of two), committed; 0 when there are none.
  // O(log runs), system calls when it commits or needs a further window.
  std::uint64_t allocate(GranuleCount count, std::size_t alignment);

  // One granule of memory that is in a window already, or 0. Needs no metadata, so the arena may call it.
  std::uint64_t allocate_for_metadata();

  // Takes the granules from `start` back; they may hold anything. O(log runs + count).
  void free(std::uint64_t start, GranuleCount count, std::uint64_t now_ms);

  // Takes the `extra` granules right behind `end` if they are free: growth in place.
  bool extend(std::uint64_t end, GranuleCount extra);

  // Clears to zero what allocate() gave and was written before; clean granules are left untouched.
  void clear(std::uint64_t start, std::size_t bytes);

  // Gives back up to `budget` bytes of memory that was freed before `cutoff_ms`. Returns bytes given back.
  std::size_t purge(std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms);

  // The address lies in a window, in a granule that was handed out at some time. O(windows).
  [[nodiscard]] bool was_used(std::uint64_t address);

  // The windows, for statistics.
  struct Window {
    std::uint64_t start;
    std::uint64_t bytes;
  };
  [[nodiscard]] std::size_t window_count() const { return window_count_; }
  [[nodiscard]] Window window(std::size_t index) const { return windows_[index]; }

  [[nodiscard]] PageStats stats() const { return stats_; }
  [[nodiscard]] bool has_dirty() const { return !dirty_.empty(); }

 private:
  struct BySize {
    static bool less(const Run& a, const Run& b) {
      return a.granules != b.granules ? a.granules < b.granules : a.start < b.start;
    }
  };

  static constexpr std::size_t kMaxWindows = 128;

  void remember_window(std::uint64_t start, std::size_t bytes);
  bool add_window(GranuleCount least);
  std::uint64_t map_window(std::size_t bytes);
  bool place_window(std::size_t bytes);
  std::uint64_t take(Run* run, GranuleCount count, std::size_t alignment);
  Run* find(GranuleCount count, std::size_t alignment);
  bool make_free(std::uint64_t start, GranuleCount count, bool dirty, std::uint64_t stamp_ms);
  void attach(Run* run);
  void detach(Run* run);
  void prepare_header();
  bool carve(Run* run, std::uint64_t start, GranuleCount count);
  void hand_out(std::uint64_t start, GranuleCount count);
  bool commit(std::uint64_t start, GranuleCount count, GranuleCount spare);
  std::size_t purge_run(Run* run, std::size_t budget);
  bool purge_range(std::uint64_t start, std::size_t bytes);

  meta::GranuleTable& table_;
  meta::Arena& arena_;
  Treap<Run, BySize> free_;
  List<Run> dirty_;
  Run* spare_header_ = nullptr;
  std::uint64_t next_image_ = 0;  // granule number where the next window goes
  std::size_t most_bytes_ = 0;
  Window windows_[kMaxWindows] = {};
  std::size_t window_count_ = 0;
  std::size_t peak_bytes_ = 0;  // the most that was resident, as far as granules tell
  PageStats stats_ = {};
  bool strict_overcommit_ = false;
};

// Called with the size of the request when the reserve is used up and on_exhaustion is `hook`: true means that the
// heap may grow by another window.
using ExhaustionHook = bool (*)(std::size_t bytes);
extern ExhaustionHook exhaustion_hook;

}  // namespace brimful::pages
