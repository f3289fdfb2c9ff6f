// SPDX-License-Identifier: MIT
//
// Huge blocks: requests that no window should hold (above 1/8 of the first one), each a mapping of its own, found again
// by address in a tree. They grow by mremap. Freed ones of up to kMostKept bytes together stay mapped for purge_delay_ms
// and serve requests of their size or up to a fifth less; then they go, slice by slice from the end. Larger ones go at
// once: to unmap and map such a block anew costs little beside the use that it is made for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/list.h"
#include "base/treap.h"
#include "meta/arena.h"
#include "meta/header.h"
#include "os/calls.h"

namespace brimful::pages {

class HugeBlocks {
 public:
  constexpr HugeBlocks() = default;
  constexpr explicit HugeBlocks(meta::Arena& arena) : arena_(&arena) {}

  // A block of at least `bytes` on a multiple of `alignment` (a power of two); nullptr on failure. Zero, unless
  // block->dirty. One or two system calls. Caller holds the heap lock, also for all below.
  Run* allocate(std::size_t bytes, std::size_t alignment);
  // Gives the block back now.
  void free(Run* block);
  // Keeps it for a while, as far as kMostKept goes.
  void keep(Run* block, std::uint64_t now_ms);
  // Unmaps up to about `budget` bytes of blocks that have been kept since `cutoff_ms` or longer. Returns bytes.
  std::size_t give_back(std::uint64_t cutoff_ms, std::size_t budget);
  // Grows or shrinks to `bytes`, moving when it must (the address is block->start). false: unchanged.
  bool resize(Run* block, std::size_t bytes);
  // The block that holds `address`, or nullptr.
  [[nodiscard]] Run* find(std::uint64_t address) const;
  // Calls visit(block) for each block that is kept.
  template <class Visit>
  void visit_kept(Visit visit) const {
    for (const Run* block = kept_.front(); block != nullptr; block = block->next) visit(*block);
  }

  // Calls visit(block) for each block, in the order of their addresses. O(n log n).
  template <class Visit>
  void visit(Visit visit) const {
    std::uint64_t from = 0;
    while (const Run* block = blocks_.lower_bound([from](const Run& b) { return b.start >= from; })) {
      visit(*block);
      from = block->start + 1;
    }
  }
  [[nodiscard]] std::size_t used_bytes() const { return used_bytes_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t kept_bytes() const { return kept_bytes_; }

  static constexpr std::size_t kMostKept = std::size_t{1} << 30;

 private:
  friend struct ::brimful::Anatomy;

  struct ByAddress {
    static bool less(const Run& a, const Run& b) { return a.start < b.start; }
  };

  void* map(std::size_t bytes, os::Access access);
  Run* take_kept(std::size_t usable, std::size_t alignment);
  void enter(Run* block, std::size_t usable);
  void leave(Run* block);
  void release(Run* block);

  meta::Arena* arena_ = nullptr;
  Treap<Run, ByAddress> blocks_;
  std::size_t used_bytes_ = 0;
  std::size_t count_ = 0;
  List<Run> kept_;  // oldest first; not in the tree
  std::size_t kept_bytes_ = 0;
};

}  // namespace brimful::pages
