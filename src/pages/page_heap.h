// SPDX-License-Identifier: MIT
//
// The page heap: windows of reserved address space, handed out in runs of 64 KiB granules.
//
//   window     ├─guard─┼────────────── hugepages of 2 MiB: 32 granules each ──────────────┼── … never used ──┤
//   granules           │ used and free: the filler │ one run of 2 ½ hugepages ▒▒▒▒▒▒ tail │ free range
//
// Runs below one hugepage come from the filler (pages/filler.h), which protects long free ranges and fills the fullest
// hugepage first. Longer ones start on a hugepage and come from ranges of whole free ones (pages/free_ranges.h); the rest
// of their last hugepage serves short runs only when nothing else that is in use can, so that growth in place finds it
// free. Only when there is no such place, any free granules that lie side by side serve (find_anywhere).
//
// Four masks in the record of each hugepage (meta/hugepage.h) say which granules are free, committed, dirty and were used
// once: calloc knows zeros, purge knows what to give back, and all work is arithmetic on a few words per hugepage.
//
// Memory is committed (mprotect) as runs are handed out, a step ahead while the heap grows, so a small process stays
// small under THP=always, too. Freed memory stays resident for purge_delay_ms and then goes back in slices of 32 MiB
// (pages/purge.cpp); and before the heap reaches a new peak, dirty memory that has lain for 20 ms goes back: a peak is not
// made of free memory. Where memory is charged when mapped (vm.overcommit_memory=2), going back means PROT_NONE.
//
// Every member: the caller holds the heap lock, but for clear(). None allocates. On failure nothing has changed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "meta/granule_table.h"
#include "os/environment.h"
#include "os/numa.h"
#include "pages/backing.h"
#include "pages/dirty_list.h"
#include "pages/filler.h"
#include "pages/free_ranges.h"

namespace brimful::pages {

struct PageStats {
  std::size_t reserved_bytes;   // address space in windows
  std::size_t committed_bytes;  // usable part of it
  std::size_t used_bytes;       // handed out
  std::size_t dirty_bytes;      // free, not given back yet
  std::size_t muzzy_bytes;      // of those: the system may take them when it wants (purge:free)
  std::size_t purged_bytes;     // given back, in total
  std::size_t purges;           // calls that gave it back
  std::size_t refaulted_bytes;  // of those: asked for again within 10 s, in total

  std::size_t hugetlb_bytes;  // committed in pages of the system's pool

  std::size_t hugepages_in_use;       // some granule is handed out
  std::size_t hugepages_partly_used;  // of those: with free granules
  std::size_t hugepages_free;         // in use before, free as a whole now
};

// What serves a run best: memory that is there already, which costs no fault, or memory that nobody has touched, of which
// as little becomes resident as the run's user touches.
enum class Memory : std::uint8_t { kResident, kFresh };

class PageHeap {
 public:
  static constexpr unsigned kMaxNodes = os::kMaxNodes;

  // Nothing but zeros, so that the one in use takes no room in the library's file; attach() comes before all else.
  constexpr PageHeap() = default;
  void attach(meta::GranuleTable& table);

  // The most that one allocation takes from a window: larger ones are mapped on their own.
  [[nodiscard]] std::size_t most_bytes() const { return most_bytes_; }

  // Start of `count` free granules on a multiple of `alignment` (a power of two), committed; 0 when there are none.
  // `node`: the NUMA node that should hold them; another one's serve before a new window is mapped. O(1) below a
  // hugepage, O(log ranges + hugepages) above; system calls when it commits or needs a further window. `size_class`: of the
  // slab that it becomes.
  std::uint64_t allocate(GranuleCount count, std::size_t alignment, unsigned node = 0, ClassId size_class = kNoClass,
                         Memory wanted = Memory::kResident);

  // As allocate(), of free memory that is resident, or 0. For runs below a hugepage; for longer ones 0. O(1).
  std::uint64_t allocate_resident(GranuleCount count, unsigned node = 0);

  // One granule of memory that is in a window already, or 0: for the metadata arena.
  std::uint64_t allocate_for_metadata();

  // Takes the granules from `start` back; they may hold anything. Any part of what allocate() and extend() gave may come
  // back by itself. O(hugepages), plus O(log ranges) where a hugepage becomes free as a whole. Can't fail.
  void free(std::uint64_t start, GranuleCount count, std::uint64_t now_ms);

  // Takes the `extra` granules right behind `end` if they are free: growth in place.
  bool extend(std::uint64_t end, GranuleCount extra);

  // Clears to zero what allocate() gave and was written before; clean granules are left untouched. The caller owns the
  // granules and need not hold the lock.
  void clear(std::uint64_t start, std::size_t bytes);

  // Gives back up to `budget` bytes of memory that was freed before `cutoff_ms`, free hugepages first. Returns bytes given
  // back. `now_ms` is the time by the clock that gave the frees theirs; a cutoff from then on means everything.
  std::size_t purge(std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms);

  // With purge:free, memory that was freed before `cutoff_ms` is first only offered to the system. Returns bytes offered.
  std::size_t soften(std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms);

  // As purge(), of memory that was offered before `cutoff_ms`.
  std::size_t purge_muzzy(std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms) {
    return purge_list(muzzy_, cutoff_ms, budget, now_ms);
  }

  // Memory goes back by other mappings: nothing may be offered.
  [[nodiscard]] static bool is_strict() { return os::is_overcommit_strict(); }

  // How long ago memory that is dirty now was freed last; UINT32_MAX: there is none. Frees within 20 ms count as one.
  [[nodiscard]] std::uint32_t youngest_dirty_age_ms(std::uint64_t now_ms) const;

  // The address lies in a window, in a granule that was handed out at some time. O(windows).
  [[nodiscard]] bool was_used(std::uint64_t address);

  // The node that the hugepage of a run was given to.
  [[nodiscard]] unsigned node_of(std::uint64_t start) { return table_->hugepage_of(table_->id_of(start))->node - 1U; }
  // The windows, for statistics.
  struct Window {
    std::uint64_t start;
    std::uint64_t bytes;
    std::uint64_t dumped_end =
        0;                     // what was committed first ends here; from the second time on, see leave_out_of_cores()
    bool is_left_out = false;  // what lies behind dumped_end is in core files only if it was committed
  };
  [[nodiscard]] std::size_t window_count() const { return window_count_; }
  [[nodiscard]] Window window(std::size_t index) const { return windows_[index]; }

  [[nodiscard]] PageStats stats() const { return stats_; }
  [[nodiscard]] bool has_dirty() const { return dirty_whole_.count() + dirty_parts_.count() + muzzy_.count() != 0; }
  Backing& backing() { return backing_; }

 private:
  friend struct ::brimful::Anatomy;
  using Hugepage = meta::Hugepage;

  // Where a run goes. `range`: the free range that its free hugepages are part of, if any.
  struct Place {
    std::uint64_t start = 0;  // address; 0: nowhere
    Hugepage* range = nullptr;
  };

  static constexpr std::size_t kMaxWindows = 128;

  // window.cpp
  void remember_window(std::uint64_t start, std::size_t bytes);
  bool add_window(GranuleCount least);
  std::uint64_t map_window(std::size_t bytes, std::size_t limit);
  bool place_window(std::size_t bytes, std::size_t limit);
  void name_all();
  bool open_window(std::uint64_t start, std::size_t bytes, std::uint32_t skipped);

  // find.cpp
  Place find(GranuleCount count, std::size_t alignment, unsigned node, Memory wanted = Memory::kResident);
  Place find_in_hugepage(GranuleCount count, std::size_t alignment, unsigned node, Memory wanted);
  Place find_resident(GranuleCount count, unsigned node);
  Place find_in_filler(GranuleCount count, std::size_t alignment, unsigned node, Memory wanted);
  Place find_range(GranuleCount count, std::size_t alignment);
  Place find_anywhere(GranuleCount count, std::size_t alignment);
  Place find_committed(GranuleCount count);
  Place find_in_window(const Window& window, GranuleCount count, std::size_t alignment);
  bool is_free(std::uint64_t start, GranuleCount count, Hugepage** range);

  // page_heap.cpp
  std::uint64_t take(const Place& place, GranuleCount count, unsigned node, ClassId size_class);
  void prepare_backing(const Place& place, GranuleCount count, ClassId size_class);
  bool commit(std::uint64_t start, GranuleCount count, std::uint64_t free_end, std::size_t ahead);
  static std::uint64_t free_end_of(const Place& place, GranuleCount count);
  bool commit_stretch(std::uint64_t start, std::uint32_t needed, std::uint32_t wanted);
  void leave_out_of_cores(std::uint64_t start, std::uint64_t end);
  std::uint32_t uncommitted_behind(GranuleId end, GranuleId free_end, std::uint32_t most);
  void carve(const Place& place, GranuleCount count, unsigned node);
  void open_hugepages(const Place& place, GranuleCount count, unsigned node);
  void hand_out(Hugepage* hugepage, std::uint32_t granules);
  void mind_the_peak();
  void take_back(Hugepage* hugepage, std::uint32_t granules, std::uint64_t now_ms);
  void refile(Hugepage* hugepage);

  // purge.cpp
  void note_dirty(Hugepage* hugepage, std::uint64_t now_ms);
  void forget_clean(Hugepage* hugepage);
  void list_dirty(Hugepage* hugepage, bool whole);
  void unlist_dirty(Hugepage* hugepage);
  void unmuzzy(Hugepage* hugepage);
  bool soften(Hugepage* hugepage, std::uint64_t now_ms);
  std::size_t soften_list(DirtyList& list, std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms);
  std::size_t purge_list(DirtyList& list, std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms);
  std::size_t purge_hugepages(Hugepage* first, std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms);
  std::size_t purge_parts(Hugepage* hugepage, std::size_t budget, std::uint64_t now_ms);
  void put_off(Hugepage* hugepage, std::uint64_t now_ms);
  bool give_back(Hugepage* first, std::uint32_t granules, std::uint32_t hugepages, std::uint64_t now_ms);

  // hugetlb.cpp
  bool commit_from_pool(std::uint64_t start, GranuleCount count);
  bool take_from_pool(Hugepage* first, std::uint64_t address, std::uint64_t count);
  bool take_giant(std::uint64_t address);
  std::size_t return_to_pool(Hugepage* hugepage, std::uint64_t now_ms);

  meta::GranuleTable* table_ = nullptr;
  FreeRanges ranges_;
  DirtyList dirty_whole_;
  DirtyList dirty_parts_;
  DirtyList muzzy_;
  std::uint64_t next_image_ = 0;  // granule number where the next window goes
  std::size_t most_bytes_ = 0;
  std::size_t window_count_ = 0;
  std::size_t peak_bytes_ = 0;  // the most that was resident, as far as granules tell
  PageStats stats_ = {};
  std::uint32_t used_nodes_ = 0;  // one bit for each node that was given a hugepage
  bool pool_was_empty_ = false;   // said once
  bool are_named_ = false;        // windows and table, in /proc/PID/maps
  struct Node {
    Filler used;   // of hugepages in use
    Filler tails;  // of those where a long run ends
  };
  Node& lists_of(unsigned node) { return node == 0 ? first_node_ : further_nodes_[node - 1]; }
  // What every process touches first, in as few pages as can be. Few machines have more than one node, few processes more
  // than one window.
  Node first_node_;
  Backing backing_;
  Window windows_[kMaxWindows] = {};
  Node further_nodes_[kMaxNodes - 1];
};

// Called with the size of the request when the reserve is used up and on_exhaustion is `hook`: true means that the
// heap may grow by another window.
using ExhaustionHook = bool (*)(std::size_t bytes);
extern ExhaustionHook exhaustion_hook;

}  // namespace brimful::pages
