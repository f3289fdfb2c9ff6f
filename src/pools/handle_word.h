// SPDX-License-Identifier: MIT
//
// Handle pool: what one 64-bit word says. A handle names an entry; an entry's word says where its object is and what is
// done with it. All who use an object meet in this word, by compare-exchange:
//
//   handle   pool's number 17 | generation 20 | entry 27
//   word     generation 20 | place 32 | state 12            place = run and slot, or for a free entry the next free one
//
//   state            meaning                    left by
//   kFree            no object                  alloc -> kIdle (class's lock)
//   kIdle            an object, not mapped      map -> kIdle + 1, kWriting; free -> kFree; compaction -> kMoving (lock)
//   kIdle + n        mapped by n readers        map, unmap
//   kWriting         mapped for writing         unmap -> kIdle
//   kMoving          compaction copies it       compaction -> kIdle at another place (lock); map waits for the lock
//
// "lock": only by who holds the lock of the class that the place is in. So its holder never meets kMoving, and while an
// object is idle only the holder can take it away. map and unmap take no lock unless they meet kMoving.
//
// free counts the generation up, so an old handle no longer fits. An entry whose generation reaches kRetired is never
// used again: 8 bytes are lost for 2^20 uses, and a stale handle is stale for ever, not until the numbers repeat.
#pragma once

#include <atomic>
#include <cstdint>

#include "brimful/handle.h"

namespace brimful::pools::handle {

using Index = std::uint32_t;  // of an entry or a run
inline constexpr Index kNone = 0xFFFFFFFF;

inline constexpr unsigned kIndexBits = 27;
inline constexpr unsigned kGenerationBits = 20;
inline constexpr unsigned kNumberBits = 64 - kIndexBits - kGenerationBits;
inline constexpr std::uint32_t kRetired = (1U << kGenerationBits) - 1;
inline constexpr Index kMostEntries = 1U << kIndexBits;

inline constexpr unsigned kStateBits = 12;
inline constexpr std::uint32_t kFree = 0;
inline constexpr std::uint32_t kIdle = 1;
inline constexpr std::uint32_t kMoving = (1U << kStateBits) - 1;
inline constexpr std::uint32_t kWriting = kMoving - 1;
inline constexpr std::uint32_t kMostReaders = kWriting - 1 - kIdle;
static_assert(kMostReaders == BRIMFUL_HANDLE_MOST_READERS && kMostEntries == BRIMFUL_HANDLE_MOST_OBJECTS);

class Word {
 public:
  constexpr explicit Word(std::uint64_t raw) : raw_(raw) {}
  constexpr Word(std::uint32_t generation, std::uint32_t place, std::uint32_t state)
      : raw_(std::uint64_t{generation} << 44 | std::uint64_t{place} << kStateBits | state) {}

  [[nodiscard]] constexpr std::uint64_t raw() const { return raw_; }
  [[nodiscard]] constexpr std::uint32_t generation() const { return static_cast<std::uint32_t>(raw_ >> 44); }
  [[nodiscard]] constexpr std::uint32_t place() const { return static_cast<std::uint32_t>(raw_ >> kStateBits); }
  [[nodiscard]] constexpr std::uint32_t state() const { return raw_ & ((1U << kStateBits) - 1); }
  [[nodiscard]] constexpr Word with_state(std::uint32_t state) const { return {generation(), place(), state}; }
  [[nodiscard]] constexpr bool is_mapped() const { return state() > kIdle && state() != kMoving; }

 private:
  std::uint64_t raw_;
};

struct Entry {
  std::atomic<std::uint64_t> word;
};
static_assert(sizeof(Entry) == 8 && std::atomic<std::uint64_t>::is_always_lock_free);

constexpr brimful_handle make_handle(std::uint32_t number, std::uint32_t generation, Index entry) {
  return std::uint64_t{number} << (kIndexBits + kGenerationBits) | std::uint64_t{generation} << kIndexBits | entry;
}
constexpr std::uint32_t number_of(brimful_handle handle) {
  return static_cast<std::uint32_t>(handle >> (kIndexBits + kGenerationBits));
}
constexpr std::uint32_t generation_of(brimful_handle handle) { return handle >> kIndexBits & kRetired; }
constexpr Index entry_of(brimful_handle handle) { return handle & (kMostEntries - 1); }

// Whether an entry whose word is `word` holds the object of a handle with `generation`. A generation above the entry's
// was not given out yet, nor was that of a free entry.
constexpr brimful_handle_result judge(Word word, std::uint32_t generation) {
  if (generation < word.generation()) return BRIMFUL_HANDLE_STALE;
  if (generation > word.generation() || word.state() == kFree) return BRIMFUL_HANDLE_FOREIGN;
  return BRIMFUL_HANDLE_OK;
}

}  // namespace brimful::pools::handle
