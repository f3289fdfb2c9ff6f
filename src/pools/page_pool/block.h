// SPDX-License-Identifier: MIT
//
// What a page of the page pool looks like: blocks of 16 bytes and more, end to end, each with 4 bytes in front.
//
//   0      4                                              page_bytes - 4
//   | mark | header, payload | header, payload | ...      | end |
//
// A payload is aligned to 8, so headers stand 4 bytes before multiples of 8, and the 4 bytes that are left over at either
// side of the page hold a mark (against overruns of the page before) and the end, a header of size 0 that is never free. A
// header has the block's size and that of the block before it, in bytes, both multiples of 8; the low bits of the first are its
// state. The first block has 0 before it, and so is its own predecessor, which is never free when somebody asks.
//
// A free block also holds the two links of its list, behind the header. A link is page number and offset: the address of a
// header without its two low bits, 47 bits of it, so that two of them and the header fill a block of 16 bytes
// exactly. (A page number into a table of addresses, as xvmalloc's struct page, would need the same 6 bytes and a load from
// the table at every step.) Addresses are those of a sign-extended 49-bit space: all that x86-64 and 64-bit ARM give to
// programs and kernels without asking for more; a page elsewhere is refused when it comes.
//
// A double free is found as long as the memory is free: bit 0 of the word where a header stood is set by nothing that the
// pool writes into free memory. Headers of free blocks have it clear, and so does the half of a link that can come to lie
// there: a list's links of a block that begins 8 bytes earlier.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::pools::page_pool {

inline constexpr std::size_t kHeaderBytes = 4;
inline constexpr std::size_t kEdgeBytes = 8;    // of a page: mark and end
inline constexpr std::size_t kLeastBytes = 16;  // of a block, header and all
inline constexpr std::uint16_t kStateBits = 7;
inline constexpr std::uint16_t kFree = 2;
inline constexpr std::uint16_t kLive = 5;  // differs from kFree in each bit
inline constexpr std::uint32_t kMark = 0x706D7662;

// The pool's view of a block, from its header on. Written under the pool's lock, but for the payload of live blocks.
struct [[gnu::may_alias]] Block {
  std::uint16_t size_and_state;
  std::uint16_t size_before;
  // Of free blocks only.
  std::uint32_t next_low;   // address bits 2 to 33
  std::uint16_t next_high;  // address bits 34 to 48, moved one up; a header's size_and_state once, hence bit 0 clear
  std::uint16_t previous_high;
  std::uint32_t previous_low;

  [[nodiscard]] std::size_t size() const { return size_and_state & ~std::size_t{kStateBits}; }
  [[nodiscard]] std::uint16_t state() const { return size_and_state & kStateBits; }
  [[nodiscard]] bool is_free() const { return state() == kFree; }
  [[nodiscard]] bool is_live() const { return state() == kLive; }
  [[nodiscard]] Block* after(std::size_t bytes) { return at(reinterpret_cast<std::uintptr_t>(this) + bytes); }
  [[nodiscard]] Block* before() { return at(reinterpret_cast<std::uintptr_t>(this) - size_before); }
  [[nodiscard]] void* payload() { return reinterpret_cast<char*>(this) + kHeaderBytes; }

  [[nodiscard]] Block* next() const { return decode(next_high, next_low); }
  [[nodiscard]] Block* previous() const { return decode(previous_high, previous_low); }
  [[nodiscard]] bool has_clear_bits() const { return ((next_high | previous_high) & 1) == 0; }
  void set_next(const Block* block) {
    next_low = low_of(block);
    next_high = high_of(block);
  }
  void set_previous(const Block* block) {
    previous_low = low_of(block);
    previous_high = high_of(block);
  }

  static Block* at(std::uintptr_t address) { return reinterpret_cast<Block*>(address); }
  static Block* of(const void* payload) { return at(reinterpret_cast<std::uintptr_t>(payload) - kHeaderBytes); }
  static bool is_linkable(const void* page) {
    const auto* block = static_cast<const Block*>(page);
    return decode(high_of(block), low_of(block)) == block;
  }

 private:
  static std::uint32_t low_of(const Block* block) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(block) >> 2);
  }
  static std::uint16_t high_of(const Block* block) {
    const auto address = std::uint64_t{reinterpret_cast<std::uintptr_t>(block)};
    return static_cast<std::uint16_t>(address >> 33 & ~std::uint64_t{1});
  }
  static Block* decode(std::uint16_t high, std::uint32_t low) {
    const auto extended = static_cast<std::uint64_t>(static_cast<std::int16_t>(high)) << 33;
    return at(static_cast<std::uintptr_t>(extended | std::uint64_t{low} << 2));
  }
};
static_assert(sizeof(Block) == kLeastBytes && offsetof(Block, next_high) == 8);

}  // namespace brimful::pools::page_pool
