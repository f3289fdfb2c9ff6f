// SPDX-License-Identifier: MIT
//
// A TLSF pool over memory of the test's own, checked when the test ends.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "brimful/tlsf.h"

inline brimful_tlsf_stats stats_of(const brimful_tlsf* pool) {
  brimful_tlsf_stats stats{};
  stats.size = sizeof(stats);
  brimful_tlsf_get_stats(pool, &stats);
  return stats;
}

// A block's words, for tests that reach beyond its ends: the compiler does not see where they begin.
inline std::uint64_t* words_of(void* block) {
  void* const volatile copy = block;
  return static_cast<std::uint64_t*>(copy);
}

class TlsfPool {
 public:
  // A pool whose only region has exactly `region` bytes.
  explicit TlsfPool(std::size_t region) : memory_(brimful_tlsf_control_bytes() + region + 64) {
    pool_ = brimful_tlsf_create(memory_.data(), brimful_tlsf_control_bytes());
    base_ = aligned(memory_.data() + brimful_tlsf_control_bytes());
    EXPECT_EQ(brimful_tlsf_add_region(pool_, base_, region), region != 0);
  }
  ~TlsfPool() { EXPECT_EQ(brimful_tlsf_check(pool_, nullptr), nullptr); }
  TlsfPool(const TlsfPool&) = delete;
  TlsfPool& operator=(const TlsfPool&) = delete;

  operator brimful_tlsf*() const { return pool_; }
  [[nodiscard]] std::byte* region() const { return base_; }

  // All of it, the control structure, too.
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return memory_; }
  [[nodiscard]] brimful_tlsf_stats stats() const { return stats_of(pool_); }

  // Puts back what was freed last, as the next free does: in the library that does not check, it is not found before.
  void settle() const { static_cast<void>(stats()); }

  // Until the pool refuses.
  std::vector<void*> fill(std::size_t bytes) const {
    std::vector<void*> blocks;
    while (void* const block = brimful_tlsf_malloc(pool_, bytes)) blocks.push_back(block);
    return blocks;
  }

  static std::byte* aligned(std::byte* place) {
    return place + (-reinterpret_cast<std::uintptr_t>(place) & (BRIMFUL_TLSF_ALIGNMENT - 1));
  }

 private:
  std::vector<std::byte> memory_;
  brimful_tlsf* pool_ = nullptr;
  std::byte* base_ = nullptr;
};

// A size that the compiler does not see, so that it does not warn of what the test is about.
inline std::size_t unseen(std::size_t bytes) {
  const volatile std::size_t copy = bytes;
  return copy;
}

inline bool is_aligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

inline void paint(void* block, std::size_t bytes, int seed) {
  for (std::size_t i = 0; i < bytes; ++i)
    static_cast<unsigned char*>(block)[i] = static_cast<unsigned char>(seed + i * 7);
}

inline bool is_painted(const void* block, std::size_t bytes, int seed) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (static_cast<const unsigned char*>(block)[i] != static_cast<unsigned char>(seed + i * 7)) return false;
  }
  return true;
}
