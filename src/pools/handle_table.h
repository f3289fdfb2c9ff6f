// SPDX-License-Identifier: MIT
//
// Handle pool: a table that grows and never moves, for entries (one to each object) and records (one to each run).
//
// It is made of blocks of pages; a block, once there, stays until the pool is destroyed. So an index that was given out
// once can be looked up at any time without a lock, which is what lets a stale handle be told from a good one. The
// price: the table keeps its greatest length. Elements are used again.
//
// Blocks grow with the table so that a small directory reaches everything: the first 8 blocks are 1 page each, the next
// 8 are 2 pages each, then 4 and so on. A block adds at most 1/8 to what is there (and 1 page). With x = page + 8, page
// being the one that the element would be in if all lay in a row, x's highest four bits give the block and the others
// the page of it; the same arithmetic on elements needs no step by pages.
//
//   page        0  1  2  3  4  5  6  7 | 8 9  10 11  12 13 …  22 23 | 24 … 27  28 … 31 …
//   block       0  1  2  3  4  5  6  7 |  8     9      10  …    15  |    16       17    …
//
// Rejected: a vector that is copied when it grows (needs a lock or grace periods for each look-up); blocks of one size
// (a directory of 2^15 words, or a third level).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace brimful::pools::handle {

constexpr std::size_t table_block_pages(unsigned block) { return std::size_t{1} << (block / 8); }

template <class Element>
class Table {
 public:
  static constexpr unsigned kBlocks = 136;                         // 2^20 - 8 pages
  static constexpr std::size_t kMostPages = std::size_t{1} << 18;  // 1 GiB of pages of 4096 bytes

  struct Place {
    unsigned block;
    std::size_t offset;  // in elements
  };

  void set_page_bytes(std::size_t page_bytes) {
    shift_ = static_cast<unsigned>(std::countr_zero(page_bytes / sizeof(Element)));
    bias_ = std::size_t{8} << shift_;
  }

  [[nodiscard]] Place place_of(std::size_t index) const {
    const std::size_t x = index + bias_;
    const auto shift = static_cast<unsigned>(60 - std::countl_zero(x));
    const std::size_t step = x >> shift;  // 8 … 15
    return {(shift - shift_) * 8 + static_cast<unsigned>(step) - 8, x - (step << shift)};
  }

  // An element that has been given out. The caller learnt the index from somebody who knew that.
  Element& operator[](std::size_t index) const {
    const Place place = place_of(index);
    return blocks_[place.block][place.offset];
  }

  // Whether the block of element `index` is there; the table's lock is held.
  [[nodiscard]] bool covers(std::size_t index) const { return blocks_[place_of(index).block] != nullptr; }

  // Pages of the block that element `index` needs, and the block put in place, under the table's lock.
  [[nodiscard]] std::size_t pages_for(std::size_t index) const { return table_block_pages(place_of(index).block); }
  void add_block(std::size_t index, void* pages) { blocks_[place_of(index).block] = static_cast<Element*>(pages); }

  // Calls visit(pages, count of pages) for each block, for the end of the pool.
  template <class Visit>
  void for_each_block(Visit visit) const {
    for (unsigned i = 0; i < kBlocks; ++i) {
      if (blocks_[i] != nullptr) visit(blocks_[i], table_block_pages(i));
    }
  }

 private:
  unsigned shift_ = 0;          // elements of a page, as a power of two
  std::size_t bias_ = 8;        // elements of 8 pages
  Element* blocks_[kBlocks]{};  // written under the table's lock, once each, before any index into it is given out
};

}  // namespace brimful::pools::handle
