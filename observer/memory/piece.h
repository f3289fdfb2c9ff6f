// SPDX-License-Identifier: MIT
//
// A piece of copied memory, and walking through it word by word without touching pages that are not there: a large block
// may be mostly unused address space.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "memory/mapping.h"

namespace brimful::observer::memory {

// Bits, 64 to a word.
class Bits {
 public:
  Bits() = default;
  explicit Bits(std::uint64_t count) : words_((count + 63) / 64) {}

  [[nodiscard]] bool test(std::uint64_t n) const { return (words_[n / 64] >> (n % 64) & 1) != 0; }
  void clear(std::uint64_t n) { words_[n / 64] &= ~(std::uint64_t{1} << (n % 64)); }
  // Sets the bit. false: it was set before.
  bool set(std::uint64_t n) {
    const std::uint64_t bit = std::uint64_t{1} << (n % 64);
    if ((words_[n / 64] & bit) != 0) return false;
    words_[n / 64] |= bit;
    return true;
  }
  [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }
  std::vector<std::uint64_t>& words() { return words_; }

 private:
  std::vector<std::uint64_t> words_;
};

// Memory as it was at one moment: a copy, or a core file. Pages that nobody ever wrote to have no bit; their bytes in the
// copy are zeros.
struct Piece {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  const std::byte* data = nullptr;
  const Bits* present = nullptr;  // a bit for each page of 4 KiB from `start` on; nullptr: all are there
};

// Calls visit(word) for the word at each multiple of `step` in [from, to) of the piece.
template <class Visit>
void visit_words(const Piece& memory, std::uint64_t from, std::uint64_t to, unsigned step, Visit visit) {
  from = std::max((from + step - 1) / step * step, memory.start);
  to = std::min(to, memory.start + memory.bytes);
  while (from + sizeof(std::uint64_t) <= to) {
    std::uint64_t end = to;
    if (memory.present != nullptr) {
      const std::uint64_t page = (from - memory.start) / kPageBytes;
      end = std::min(to, memory.start + (page + 1) * kPageBytes);
      if (!memory.present->test(page)) {
        from = end;
        continue;
      }
    }
    // A word that begins in this page may end in the next one: that is there, as zeros if nothing else.
    for (; from < end && from + sizeof(std::uint64_t) <= to; from += step) {
      std::uint64_t word;
      std::memcpy(&word, memory.data + (from - memory.start), sizeof word);
      visit(word);
    }
  }
}

}  // namespace brimful::observer::memory
