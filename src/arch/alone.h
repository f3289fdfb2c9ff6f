// SPDX-License-Identifier: MIT
//
// Changes of a word in ONE instruction without a lock prefix: for a process with one thread, where nobody but a signal
// handler can come in between, and an instruction is before or after it. A locked one takes 4 ns more, and waits for
// every store before it. Where there is no such instruction (ARM64), and for sanitizers, which must see it: locked ones.
//
// Not ordered to anything: there is nobody to order it for.
#pragma once

#include <atomic>
#include <cstdint>

namespace brimful::arch {

// Returns whether the bit (0 … 63) was set.
inline bool clear_bit_alone(std::atomic<std::uint64_t>& word, unsigned bit) {
#if defined(__x86_64__) && !defined(BRIMFUL_ARCH_GENERIC)
  bool was_set = false;
  __asm__ volatile("btrq %2, %1" : "=@ccc"(was_set), "+m"(word) : "r"(std::uint64_t{bit}) : "memory");
  return was_set;
#else
  const std::uint64_t mask = std::uint64_t{1} << bit;
  return (word.fetch_and(~mask, std::memory_order_relaxed) & mask) != 0;  // relaxed: as the head of this file says
#endif
}

inline void set_bits_alone(std::atomic<std::uint64_t>& word, std::uint64_t bits) {
#if defined(__x86_64__) && !defined(BRIMFUL_ARCH_GENERIC)
  __asm__ volatile("orq %1, %0" : "+m"(word) : "r"(bits) : "memory", "cc");
#else
  word.fetch_or(bits, std::memory_order_relaxed);                         // relaxed: as above
#endif
}

}  // namespace brimful::arch
