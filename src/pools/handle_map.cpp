// SPDX-License-Identifier: MIT
//
// Handle pool: map and unmap, one compare-exchange of the entry's word each. See handle_word.h.
#include "pools/handle_pool.h"

namespace brimful::pools::handle {

brimful_handle_result Pool::map(brimful_handle handle, brimful_handle_mode mode, void** pointer) {
  if (pointer == nullptr || (mode & BRIMFUL_HANDLE_BOTH) == 0 || (mode & ~BRIMFUL_HANDLE_BOTH) != 0) {
    return BRIMFUL_HANDLE_INVALID;
  }
  Entry* entry = find(handle);
  if (entry == nullptr) return BRIMFUL_HANDLE_FOREIGN;
  // pairs with: place_object(), move_object() (the run's record, to learn whom to wait for)
  Word word(entry->word.load(std::memory_order_acquire));
  for (;;) {
    if (const auto result = judge(word, generation_of(handle)); result != BRIMFUL_HANDLE_OK) return result;
    const std::uint32_t state = word.state();
    if (state == kMoving) {
      word = wait_for_move(*entry, word);
      continue;
    }
    const std::uint32_t most = mode == BRIMFUL_HANDLE_READ ? kIdle + kMostReaders - 1 : kIdle;
    if (state > most) return BRIMFUL_HANDLE_MAPPED;
    const Word mapped = word.with_state(mode == BRIMFUL_HANDLE_READ ? state + 1 : kWriting);
    std::uint64_t expected = word.raw();
    // pairs with: place_object(), move_object() (the run's record, moved bytes), unmap() (another thread's writing)
    if (entry->word.compare_exchange_weak(expected, mapped.raw(), std::memory_order_acquire,
                                          std::memory_order_acquire)) {
      const Run& run = runs[run_of(word.place())];
      *pointer = run.base + slot_of(word.place()) * (run.units * kUnitBytes);
      return BRIMFUL_HANDLE_OK;
    }
    word = Word(expected);
  }
}

// Compaction holds the lock of the class that the object is leaving until the word is good again.
BRIMFUL_COLD Word Pool::wait_for_move(const Entry& entry, Word word) {
  Class& size_class = class_of_place(word.place());
  { const LockGuard guard(size_class.lock, host); }
  // pairs with: move_object() (the run's record)
  return Word(entry.word.load(std::memory_order_acquire));
}

brimful_handle_result Pool::unmap(brimful_handle handle) {
  Entry* entry = find(handle);
  if (entry == nullptr) return BRIMFUL_HANDLE_FOREIGN;
  // relaxed: nothing is read through it
  Word word(entry->word.load(std::memory_order_relaxed));
  for (;;) {
    if (const auto result = judge(word, generation_of(handle)); result != BRIMFUL_HANDLE_OK) return result;
    if (!word.is_mapped()) return BRIMFUL_HANDLE_UNMAPPED;
    const Word unmapped = word.with_state(word.state() == kWriting ? kIdle : word.state() - 1);
    std::uint64_t expected = word.raw();
    // pairs with: map(), free(), move_object() (what was written, and that reading is over)
    if (entry->word.compare_exchange_weak(expected, unmapped.raw(), std::memory_order_release,
                                          std::memory_order_relaxed)) {  // relaxed: as the load above
      return BRIMFUL_HANDLE_OK;
    }
    word = Word(expected);
  }
}

}  // namespace brimful::pools::handle

extern "C" {

brimful_handle_result brimful_handle_map(brimful_handle_pool* pool, brimful_handle handle, brimful_handle_mode mode,
                                         void** pointer) {
  return pool == nullptr ? BRIMFUL_HANDLE_INVALID : pool->map(handle, mode, pointer);
}

brimful_handle_result brimful_handle_unmap(brimful_handle_pool* pool, brimful_handle handle) {
  return pool == nullptr ? BRIMFUL_HANDLE_INVALID : pool->unmap(handle);
}
}
