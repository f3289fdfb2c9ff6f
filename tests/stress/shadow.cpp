// SPDX-License-Identifier: MIT
//
// The two-level shadow bitmap; see shadow.h for the invariant and the picture.
#include "shadow.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

namespace brimful::stress {
namespace {

constexpr unsigned kLeafBits = 30;
constexpr size_t kRootEntries = size_t{1} << (48 - kLeafBits);
constexpr size_t kUnitsPerLeaf = (size_t{1} << kLeafBits) / kShadowUnit;
constexpr size_t kWordsPerLeaf = kUnitsPerLeaf / 64;

using Word = std::atomic<uint64_t>;

std::atomic<Word*>* root = nullptr;

Word* leaf_of(uintptr_t address) {
  const size_t index = address >> kLeafBits;
  if (index >= kRootEntries) {
    std::fprintf(stderr, "stress: address %#zx is above the 48 bits that the shadow covers\n", address);
    std::_Exit(2);
  }
  // pairs with: the release exchange below (publishes a leaf, whose zeroes come from the kernel).
  Word* leaf = root[index].load(std::memory_order_acquire);
  if (leaf != nullptr) return leaf;
  Word* fresh = static_cast<Word*>(map_zeroed(kWordsPerLeaf * sizeof(Word)));
  // pairs with: the acquire load above; acquire on failure, since then another thread's leaf is used.
  if (root[index].compare_exchange_strong(leaf, fresh, std::memory_order_acq_rel, std::memory_order_acquire)) {
    return fresh;
  }
  munmap(fresh, kWordsPerLeaf * sizeof(Word));
  return leaf;
}

// Calls visit(word, mask, address of the word's first unit) for each word under the range, until it returns
// non-zero, and returns that.
template <typename Visit>
uintptr_t for_each_word(uintptr_t address, size_t bytes, Visit visit) {
  size_t unit = address / kShadowUnit;
  const size_t end = (address + std::max<size_t>(bytes, 1) + kShadowUnit - 1) / kShadowUnit;
  while (unit < end) {
    Word* leaf = leaf_of(unit * kShadowUnit);
    const size_t leaf_end = std::min(end, (unit / kUnitsPerLeaf + 1) * kUnitsPerLeaf);
    while (unit < leaf_end) {
      const unsigned first = unit % 64;
      const size_t count = std::min<size_t>(64 - first, leaf_end - unit);
      const uint64_t mask = (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
      const uintptr_t found = visit(leaf[unit % kUnitsPerLeaf / 64], mask, (unit - first) * kShadowUnit);
      if (found != 0) return found;
      unit += count;
    }
  }
  return 0;
}

}  // namespace

void* map_zeroed(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "stress: no memory for the oracle itself (%zu bytes)\n", bytes);
    std::_Exit(2);
  }
  return memory;
}

void Shadow::initialize() {
  root = static_cast<std::atomic<Word*>*>(map_zeroed(kRootEntries * sizeof(std::atomic<Word*>)));
}

uintptr_t Shadow::claim(uintptr_t address, size_t bytes) {
  return for_each_word(address, bytes, [](Word& word, uint64_t mask, uintptr_t base) -> uintptr_t {
    // relaxed: must not order anything for the allocator under test, see shadow.h.
    const uint64_t taken = word.fetch_or(mask, std::memory_order_relaxed) & mask;
    return taken == 0 ? 0 : base + static_cast<unsigned>(std::countr_zero(taken)) * kShadowUnit;
  });
}

uintptr_t Shadow::release(uintptr_t address, size_t bytes) {
  return for_each_word(address, bytes, [](Word& word, uint64_t mask, uintptr_t base) -> uintptr_t {
    // relaxed: must not order anything for the allocator under test, see shadow.h.
    const uint64_t missing = ~word.fetch_and(~mask, std::memory_order_relaxed) & mask;
    return missing == 0 ? 0 : base + static_cast<unsigned>(std::countr_zero(missing)) * kShadowUnit;
  });
}

size_t Shadow::count_live_units() {
  size_t live = 0;
  for (size_t index = 0; index < kRootEntries; ++index) {
    // pairs with: the compare_exchange in leaf_of.
    Word* leaf = root[index].load(std::memory_order_acquire);
    if (leaf == nullptr) continue;
    for (size_t word = 0; word < kWordsPerLeaf; ++word) {
      // relaxed: called when every worker has been joined.
      live += static_cast<size_t>(std::popcount(leaf[word].load(std::memory_order_relaxed)));
    }
  }
  return live;
}

}  // namespace brimful::stress
