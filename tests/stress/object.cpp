// SPDX-License-Identifier: MIT
//
// Stamping and checking of an object's content; see object.h.
#include "object.h"

#include <algorithm>
#include <cstring>

#include "random.h"

namespace brimful::stress {
namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kFullyStamped = 256;
constexpr size_t kEnd = 64;
constexpr size_t kFullyZeroChecked = size_t{1} << 20;

uint64_t pattern(const Object& object, size_t word) {
  return mix(object.id * 0x9E3779B97F4A7C15u + reinterpret_cast<uintptr_t>(object.address) + word * kWord);
}

size_t spot_count(size_t size) { return size > (size_t{1} << 20) ? 16 : 3; }

size_t spot_word(uint64_t id, size_t size, size_t spot) {
  Random random(id, spot);
  return static_cast<size_t>(random.below(size / kWord));
}

// Calls visit(first word, last word) for each stamped range, in words; the last word of the object may be
// partial. Stops at, and returns, the first result that is not SIZE_MAX.
template <typename Visit>
size_t for_each_range(const Object& object, Visit visit) {
  const size_t words = (object.size + kWord - 1) / kWord;
  if (object.size <= kFullyStamped) return visit(size_t{0}, words);
  size_t found = visit(size_t{0}, kEnd / kWord);
  if (found != SIZE_MAX) return found;
  for (size_t spot = 0; spot < spot_count(object.size); ++spot) {
    const size_t word = spot_word(object.id, object.size, spot);
    found = visit(word, word + 1);
    if (found != SIZE_MAX) return found;
  }
  return visit(words - kEnd / kWord, words);
}

size_t find_nonzero_in(const std::byte* content, size_t begin, size_t end) {
  for (; begin + kWord <= end; begin += kWord) {
    uint64_t word;
    std::memcpy(&word, content + begin, kWord);
    if (word != 0) break;
  }
  for (; begin < end; ++begin) {
    if (content[begin] != std::byte{0}) return begin;
  }
  return SIZE_MAX;
}

}  // namespace

void stamp(const Object& object) {
  for_each_range(object, [&](size_t first, size_t last) {
    for (size_t word = first; word < last; ++word) {
      const uint64_t value = pattern(object, word);
      std::memcpy(object.address + word * kWord, &value, std::min(kWord, object.size - word * kWord));
    }
    return SIZE_MAX;
  });
}

size_t find_damage(const std::byte* content, const Object& object, size_t limit) {
  limit = std::min(limit, object.size);
  return for_each_range(object, [&](size_t first, size_t last) {
    for (size_t word = first; word < last && word * kWord < limit; ++word) {
      const uint64_t value = pattern(object, word);
      std::byte wanted[kWord];
      std::memcpy(wanted, &value, kWord);
      const size_t length = std::min(kWord, limit - word * kWord);
      const std::byte* here = content + word * kWord;
      if (std::memcmp(here, wanted, length) == 0) continue;
      return word * kWord + static_cast<size_t>(std::mismatch(wanted, wanted + length, here).first - wanted);
    }
    return SIZE_MAX;
  });
}

size_t find_nonzero(const std::byte* content, size_t size, uint64_t seed) {
  if (size <= kFullyZeroChecked) return find_nonzero_in(content, 0, size);
  size_t found = find_nonzero_in(content, 0, 64 << 10);
  if (found == SIZE_MAX) found = find_nonzero_in(content, size - (64 << 10), size);
  for (size_t spot = 0; spot < 64 && found == SIZE_MAX; ++spot) {
    const size_t word = spot_word(seed, size, spot);
    found = find_nonzero_in(content, word * kWord, (word + 1) * kWord);
  }
  return found;
}

}  // namespace brimful::stress
