// SPDX-License-Identifier: MIT
//
// What the page heap knows of 2 MiB of address space: 32 granules, one bit for each in a few masks, so that a question
// about a hugepage is arithmetic on a word. The records of all windows lie in one array beside the granule table
// (meta/granule_table.h): the neighbour of a hugepage is the neighbour in the array, and no record has to be allocated, so
// freeing can't fail. A record that was never touched is all zeros: memory without a state.
//
// The heap lock guards everything here, but for one reader: see dirty().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "base/units.h"

namespace brimful::meta {

inline constexpr unsigned kHugepageShift = 21;
inline constexpr unsigned kGranulesPerHugepage = 32;
static_assert(std::size_t{1} << kHugepageShift == kHugepageBytes);
static_assert(kGranulesPerHugepage * kGranuleBytes == kHugepageBytes);

struct Hugepage {
  enum class State : std::uint8_t {
    kNone,  // in no window, or inside a range of free hugepages that has never been used
    kUsed,  // some granules are handed out, or guard the window's start; `free` tells which are not
    kFree,  // all granules are free; the first and the last of a range also know its length
  };

  // flags
  static constexpr std::uint8_t kTail = 1;        // a run of whole hugepages ends here and may want to grow
  static constexpr std::uint8_t kDirtyWhole = 2;  // in the list of free hugepages with dirty memory
  static constexpr std::uint8_t kDirtyPart = 4;   // in the list of used hugepages with free dirty memory
  static constexpr std::uint8_t kListed = 8;      // in a list of the filler
  static constexpr std::uint8_t kPool = 16;       // a page of the system's pool (HugeTLB): committed as a whole
  static constexpr std::uint8_t kGiant = 32;      // part of one of 1 GiB
  static constexpr std::uint8_t kMuzzy = 64;      // in the list of those whose free dirty memory the system may take
  static constexpr std::uint8_t kHuge = 128;  // likely one of the kernel's: all of it is there since the first touch

  std::uint32_t free;  // granules that nobody holds; used and free hugepages only
  std::uint32_t dirty_bits;
  std::uint32_t committed;  // granules that are readable and writable
  std::uint32_t used_once;  // granules that were handed out at some time

  // Tree of free ranges (first hugepage of a range), or neighbours in a list of the filler.
  Hugepage* left;
  Hugepage* right;

  std::uint32_t start;      // address in hugepages; used ones, and the first and last of a free range
  std::uint32_t length;     // hugepages of the free range; its first and its last one
  std::uint32_t stamp_ms;   // when memory of it was freed last, low bits; while it has free dirty memory
  std::uint32_t oldest_ms;  // when it came to have free dirty memory
  std::uint32_t purged_ms;  // when memory of it went back last
  std::uint32_t older;      // neighbours in a list of dirty memory: number of the record + 1, 0 at the end
  std::uint32_t younger;

  State state;
  std::uint8_t list;  // of the filler
  std::uint8_t node;  // NUMA node it was given to last, + 1; 0: never used
  std::uint8_t flags;

  [[nodiscard]] std::uint64_t address() const { return std::uint64_t{start} << kHugepageShift; }
  [[nodiscard]] bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  void set(std::uint8_t flag) { flags = static_cast<std::uint8_t>(flags | flag); }
  void unset(std::uint8_t flag) { flags = static_cast<std::uint8_t>(flags & ~flag); }

  // Granules that may hold something else than zeros; of those in use: when they were handed out. calloc asks without
  // the lock for granules that are its caller's, whose bits nobody changes; the others' may change meanwhile.
  [[nodiscard]] std::uint32_t dirty() {
    return std::atomic_ref(dirty_bits).load(std::memory_order_relaxed);  // relaxed: as said above
  }
  void set_dirty(std::uint32_t granules) {
    std::atomic_ref(dirty_bits).store(granules, std::memory_order_relaxed);  // relaxed: as said above
  }
  [[nodiscard]] std::uint32_t free_and_dirty() { return free & dirty(); }
};

static_assert(sizeof(Hugepage) == 64);

}  // namespace brimful::meta
