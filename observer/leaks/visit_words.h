// SPDX-License-Identifier: MIT
//
// Walking through copied memory word by word, without touching pages that are not there: a large block may be mostly
// unused address space.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "leaks/objects.h"

namespace brimful::observer::leaks {

inline constexpr std::uint64_t kPage = 4096;

// Calls visit(word) for the word at each multiple of `step` in [from, to) of the piece.
template <class Visit>
void visit_words(const Piece& memory, std::uint64_t from, std::uint64_t to, unsigned step, Visit visit) {
  from = std::max((from + step - 1) / step * step, memory.start);
  to = std::min(to, memory.start + memory.bytes);
  while (from + sizeof(std::uint64_t) <= to) {
    std::uint64_t end = to;
    if (memory.present != nullptr) {
      const std::uint64_t page = (from - memory.start) / kPage;
      end = std::min(to, memory.start + (page + 1) * kPage);
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

}  // namespace brimful::observer::leaks
