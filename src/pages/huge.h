// SPDX-License-Identifier: MIT
//
// Huge blocks: requests that no window should hold (above 1/8 of the first one), each a mapping of its own, found again
// by address in a tree. They go back to the system when they are freed and grow by mremap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/treap.h"
#include "meta/arena.h"
#include "meta/header.h"

namespace brimful::pages {

class HugeBlocks {
 public:
  constexpr explicit HugeBlocks(meta::Arena& arena) : arena_(arena) {}

  // A zeroed block of at least `bytes` on a multiple of `alignment` (a power of two); nullptr on failure. One or two
  // system calls. Caller holds the heap lock, also for all below.
  Run* allocate(std::size_t bytes, std::size_t alignment);
  void free(Run* block);
  // Grows or shrinks to `bytes`, moving when it must (the address is block->start). false: unchanged.
  bool resize(Run* block, std::size_t bytes);
  // The block that holds `address`, or nullptr.
  [[nodiscard]] Run* find(std::uint64_t address) const;
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

 private:
  struct ByAddress {
    static bool less(const Run& a, const Run& b) { return a.start < b.start; }
  };

  meta::Arena& arena_;
  Treap<Run, ByAddress> blocks_;
  std::size_t used_bytes_ = 0;
  std::size_t count_ = 0;
};

}  // namespace brimful::pages
