// SPDX-License-Identifier: MIT
//
// Backing: which memory the kernel should fill by hugepages, and which by one call instead of a fault for each page.
//
//   window  ┌──── small pages ────┬─ extent ─┬─ extent ─┬── not advised ── …
//                                 └ MADV_HUGEPAGE before the first touch, a step ahead of the heap's growth
//
// A hugepage costs a quarter of the faults it replaces, and 2 MiB as soon as one byte of it is touched. So it is taken
// where demand fills it: from a heap of 20 MiB on (a hugepage is then a tenth of it), for memory that was never touched or
// was given back, while memory of kinds that programs fill makes up 12/13 of what the heap asks for. A kind is a
// size class of slabs or a power of two of large blocks. Slabs of small objects are filled by nature; of the others we ask
// the kernel for a few pages (mincore) some time after they were handed out, and believe what we see. Blocks of whole
// hugepages are few and long, so we ask earlier: before each further one; but a block that is not filled yet is judged
// later, like the others. A block that is not known to be filled and has hugepages of its own takes the advice off them.
//
// The advice is in a ring of at most 16 extents, all else in the windows says NOHUGEPAGE from the first advice on (before
// it: nothing). So the kernel keeps a bounded number of mappings, and khugepaged, which fills holes up again, finds none
// of our holes: an extent that is purged, in whole or in part, leaves the ring. Where the system says THP=always, the
// windows say NOHUGEPAGE from 2 MiB on, so that a small process stays small; below, there is no whole hugepage.
//
// Where a hugepage turns out to cost more than the faults that it saves (pages/fault_costs.h; the first of the extents are
// measured, then each eighth), the advice is taken back, and one is tried again for each 256 MiB that it would have been given.
//
// populate:auto asks for the pages of a run by one call (MADV_POPULATE_WRITE: two thirds of the faults' time) where the
// kind has asked for memory 16 times and is filled. Slabs and blocks larger than 4 MiB are left to faults.
//
// Rejected: advising everything (sparse blocks; bloat after a purge), MADV_COLLAPSE (copies, twice the price of a fault),
// one policy for the whole heap (one sparse table of 1 GiB says no for all objects). docs/design/0016 has the figures.
//
// Every member: the caller holds the heap lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "classes/size_classes.h"
#include "pages/nodes.h"

namespace brimful {
struct Anatomy;  // debug/anatomy.h
}

namespace brimful::pages {

struct MemoryRange {
  std::uint64_t start;
  std::size_t bytes;
  std::uint64_t hugepage = 0;  // to be touched and measured first; 0: none
  std::uint64_t sample = 0;    // a run of small pages, of which the first few are to be; 0: none
};

// A run that is about to be handed out.
struct Demand {
  std::uint64_t start;
  std::size_t bytes;
  std::uint64_t free_end;  // of the free range that it is cut from
  std::size_t used_bytes;  // of the heap, before
  ClassId size_class;      // of the slab; 0xFF: a block
  bool is_clean;           // none of it is resident
};

struct BackingStats {
  std::size_t advised_bytes;    // address space that says MADV_HUGEPAGE now
  std::size_t populated_bytes;  // by calls, in total
  bool is_refused;              // hugepages cost too much here
};

class Backing {
 public:
  // From here on memory may be backed by hugepages, and from here on (the first whole hugepage) THP=always matters.
  static constexpr std::size_t kHugeFrom = std::size_t{20} << 20;
  static constexpr std::size_t kLookFrom = std::size_t{2} << 20;
  static constexpr std::size_t kExtents = 16;

  // A window was mapped. Of a small heap's nothing is asked and nothing is said, but for thp:always and thp:never.
  void add_window(std::uint64_t start, std::size_t bytes);

  // Heaps smaller than this need not ask. O(1).
  [[nodiscard]] std::size_t asks_from() const { return asks_from_; }

  // Forgets what was found worth populating before: at each request, also of small heaps.
  void begin() { populate_ = {}; }
  // Decides about a run before it is touched. O(extents); a system call or two for each step of growth.
  void prepare(const Demand& demand);
  // The same for a block with a mapping of its own.
  void prepare_mapping(std::uint64_t start, std::size_t bytes);
  // What prepare() found worth populating: for populate() below, after the lock was released. Empty at the second call.
  MemoryRange take_populate();

  // The run that starts here is being freed. O(1) unless it is watched.
  void forget(std::uint64_t start) {
    if (watched_ != 0) look_at_freed(start);
  }
  // The range is about to be given back.
  void purge(std::uint64_t start, std::size_t bytes);

  // The hugepage at this address was to be one of the kernel's when it was touched first. O(extents).
  [[nodiscard]] bool is_advised(std::uint64_t hugepage);

  [[nodiscard]] BackingStats stats() const;

 private:
  friend struct ::brimful::Anatomy;

  struct Extent {
    std::uint64_t start;
    std::uint64_t end;
    std::size_t sparse_bytes;  // handed out in it for kinds not known to be filled
  };
  // What is known of a kind of memory.
  struct Kind {
    std::uint32_t fresh;  // runs handed out clean
    std::uint16_t pages;  // looked at
    std::uint16_t resident;
  };
  struct Watched {
    std::uint64_t start;
    std::size_t bytes;
    std::size_t kind;
  };
  enum class State : std::uint8_t {
    kUnknown,  // /sys not read yet
    kOff,      // no advice, ever
    kReady,    // may advise; the windows say nothing
    kQuiet     // may advise; all but the extents says NOHUGEPAGE
  };

  static constexpr std::size_t kBlockKinds = 48;
  static constexpr std::size_t kKinds = kClassCount + kBlockKinds;
  static constexpr std::size_t kWatched = 8;
  static constexpr std::size_t kMaxWindows = 128;

  static std::size_t kind_of(ClassId size_class, std::size_t bytes);
  [[nodiscard]] bool is_filled(std::size_t kind, std::size_t bytes, unsigned eighths) const;
  void look();
  void quieten();
  void plan_hugepages(const Demand& demand, std::size_t kind);
  void plan_populate(const Demand& demand, std::size_t kind);
  Extent* extent_in(std::uint64_t start, std::uint64_t end);
  bool add_extent(const Demand& demand, std::size_t bytes);
  void note_costs();
  void try_one(const Demand& demand);
  void plan_probe(const Demand& demand);
  static bool bears(Extent& extent, const Demand& demand);
  void withdraw(std::uint64_t start, std::uint64_t end);
  static void cut(Extent& extent, std::uint64_t end);
  void count_fresh(const Demand& demand, bool filled);
  void watch(std::uint64_t start, std::size_t bytes, std::size_t kind);
  bool is_resident_at_random(const Watched& run);
  void count_looks(const Watched& run, unsigned pages, unsigned resident);
  void look_at(const Watched& run);
  void look_for_filled();
  void look_at_freed(std::uint64_t start);

  std::size_t asks_from_ = 0;
  MemoryRange populate_ = {};
  State state_ = State::kUnknown;
  unsigned next_extent_ = 0;
  std::size_t fresh_filled_ = 0;  // bytes handed out clean of late, by whether programs fill such memory
  std::size_t fresh_sparse_ = 0;
  unsigned next_watched_ = 0;
  unsigned watched_ = 0;  // entries in use
  std::uint64_t random_ = 0;
  std::size_t populated_bytes_ = 0;
  std::uint64_t next_probe_ = 0;   // address of the hugepage to measure
  std::uint32_t samples_ = 0;      // runs that could be one
  bool is_refused_ = false;        // hugepages cost too much here
  std::size_t refused_bytes_ = 0;  // since one was tried last
  std::size_t window_count_ = 0;
  MemoryRange windows_[kMaxWindows] = {};
  // What small heaps do not touch.
  Extent extents_[kExtents] = {};
  Watched watch_list_[kWatched] = {};
  Kind kinds_[kKinds] = {};
};

// Backs the range, which is the caller's own and holds zeros, with memory. No lock.
void populate(MemoryRange range);

namespace backing {

// `count` hugepages from `start` (an address) on are used for the first time, or for another NUMA node than before.
inline void on_new_hugepage(std::uint64_t start, std::uint32_t count, unsigned node) {
  prefer_node(start, count * kHugepageBytes, node);
}

}  // namespace backing
}  // namespace brimful::pages
