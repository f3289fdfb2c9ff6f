// SPDX-License-Identifier: MIT
//
// The page pool's free blocks, in a list for each size: sizes are multiples of 8, so a list holds one size and the first
// block of the first list that is not empty, from the request's on, fits best. Two levels of bitmaps find it: a bit for each list,
// and a bit for each word of those. The heads of the lists take exactly one page (page_bytes / 8 sizes of 8 bytes).
//
// TLSF's lists by power of two would need 1/3 of the heads and round requests up; xvmalloc had lists 8 bytes apart, too.
// Everything here is the pool's lock's.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/compiler.h"
#include "pools/page_pool/block.h"

namespace brimful::pools::page_pool {

class FreeLists {
 public:
  static constexpr std::size_t kWords = 65536 / 8 / 64;

  // `heads`: a zeroed page.
  void set_heads(Block** heads) { heads_ = heads; }
  [[nodiscard]] Block** heads() const { return heads_; }

  // `block` has its size already; it is free from now on.
  void insert(Block* block, std::size_t size) {
    const std::size_t list = size / 8;
    Block* const first = heads_[list];
    block->set_next(first);
    block->set_previous(nullptr);
    heads_[list] = block;
    ++blocks_;
    if (first != nullptr) {
      first->set_previous(block);
      return;
    }
    lists_[list / 64] |= std::uint64_t{1} << list % 64;
    words_[list / 64 / 64] |= std::uint64_t{1} << list / 64 % 64;
  }

  void remove(Block* block) {
    Block* const next = block->next();
    Block* const previous = block->previous();
    --blocks_;
    if (next != nullptr) next->set_previous(previous);
    if (previous != nullptr) {
      previous->set_next(next);
      return;
    }
    set_first(block->size() / 8, next);
  }

  // Removes and returns the smallest block that has at least `size` bytes; null: there is none.
  Block* take(std::size_t size) {
    const std::size_t list = find(size / 8);
    if (BRIMFUL_UNLIKELY(list == kNone)) return nullptr;
    Block* const block = heads_[list];
    Block* const next = block->next();
    --blocks_;
    if (next != nullptr) next->set_previous(nullptr);
    set_first(list, next);
    return block;
  }

  [[nodiscard]] std::size_t blocks() const { return blocks_; }
  [[nodiscard]] bool has_bit(std::size_t list) const { return (lists_[list / 64] >> list % 64 & 1) != 0; }
  [[nodiscard]] bool has_exact_words() const {
    for (std::size_t i = 0; i < kWords; ++i) {
      if ((words_[i / 64] >> i % 64 & 1) != (lists_[i] != 0 ? 1U : 0U)) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  void set_first(std::size_t list, Block* first) {
    heads_[list] = first;
    if (first != nullptr) return;
    lists_[list / 64] &= ~(std::uint64_t{1} << list % 64);
    if (lists_[list / 64] == 0) words_[list / 64 / 64] &= ~(std::uint64_t{1} << list / 64 % 64);
  }

  [[nodiscard]] std::size_t find(std::size_t list) const {
    std::size_t word = list / 64;
    std::uint64_t bits = lists_[word] & ~std::uint64_t{0} << list % 64;
    if (bits == 0) {
      std::size_t half = word / 64;
      std::uint64_t words = words_[half] & ~std::uint64_t{1} << word % 64;
      if (words == 0) {
        if (half != 0 || words_[1] == 0) return kNone;
        half = 1;
        words = words_[1];
      }
      word = half * 64 + static_cast<std::size_t>(std::countr_zero(words));
      bits = lists_[word];
    }
    return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  }

  Block** heads_ = nullptr;
  std::size_t blocks_ = 0;
  std::uint64_t words_[kWords / 64]{};  // bit i: lists_[i] is not 0
  std::uint64_t lists_[kWords]{};       // bit i of word j: list 64 j + i, of blocks of 8 (64 j + i) bytes, is not empty
};

}  // namespace brimful::pools::page_pool
