// SPDX-License-Identifier: MIT
//
// What the tests of the handle pool share: a pool that destroys itself, a host that can be made to fail, contents that
// are known from a seed.
#pragma once

#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "brimful/handle.h"
#include "test_host.h"

namespace brimful::tests {

// A host that everything must have come back to at the end, as it was got.
class HandleHost : public pools::TestHost {
 public:
  using TestHost::TestHost;
  ~HandleHost() {
    EXPECT_EQ(held(), 0) << "bytes of pages never given back";
    EXPECT_FALSE(has_fault()) << "no whole pages, or given back otherwise than they were got";
  }
  std::size_t held() { return bytes(); }
  void work_again() { fail_never(); }
};

class HandlePool {
 public:
  explicit HandlePool(const brimful_pool_host* host, std::size_t most_object_bytes = 0, std::size_t most_bytes = 0) {
    brimful_handle_options options{};
    options.size = sizeof(options);
    options.host = host;
    options.most_object_bytes = most_object_bytes;
    options.most_bytes = most_bytes;
    pool_ = brimful_handle_pool_create(&options);
  }
  ~HandlePool() { brimful_handle_pool_destroy(pool_); }
  HandlePool(const HandlePool&) = delete;
  HandlePool& operator=(const HandlePool&) = delete;

  brimful_handle_pool* operator*() const { return pool_; }

  // 0: failed.
  [[nodiscard]] brimful_handle alloc(std::size_t bytes) const {
    brimful_handle handle = 0;
    brimful_handle_alloc(pool_, bytes, &handle);
    return handle;
  }
  [[nodiscard]] brimful_handle_stats stats() const {
    brimful_handle_stats stats{};
    stats.size = sizeof(stats);
    EXPECT_EQ(brimful_handle_get_stats(pool_, &stats, nullptr, 0), BRIMFUL_HANDLE_OK);
    return stats;
  }
  [[nodiscard]] std::vector<brimful_handle_class_stats> classes() const {
    brimful_handle_stats all = stats();
    all.class_size = sizeof(brimful_handle_class_stats);
    std::vector<brimful_handle_class_stats> classes(all.classes);
    EXPECT_EQ(brimful_handle_get_stats(pool_, &all, classes.data(), classes.size()), BRIMFUL_HANDLE_OK);
    return classes;
  }
  [[nodiscard]] brimful_handle_class_stats class_for(std::size_t bytes) const {
    for (const brimful_handle_class_stats& one : classes()) {
      if (one.object_bytes >= bytes) return one;
    }
    return {};
  }
  // Compaction to its end, in steps; returns the bytes given back.
  std::size_t compact(std::size_t most_moves = 0) const {
    std::size_t given = 0;
    int more = 1;
    while (more != 0) given += brimful_handle_compact(pool_, most_moves, &more);
    return given;
  }
  [[nodiscard]] const char* broken() const {
    const void* where = nullptr;
    return brimful_handle_check(pool_, &where);
  }

 private:
  brimful_handle_pool* pool_ = nullptr;
};

// What byte i of the object with this seed holds.
inline unsigned char content(std::uint64_t seed, std::size_t i) {
  return static_cast<unsigned char>((seed * 0x9E3779B97F4A7C15U >> 32) + i * 7);
}

inline bool fill(brimful_handle_pool* pool, brimful_handle handle, std::size_t bytes, std::uint64_t seed) {
  void* pointer = nullptr;
  if (brimful_handle_map(pool, handle, BRIMFUL_HANDLE_WRITE, &pointer) != BRIMFUL_HANDLE_OK) return false;
  for (std::size_t i = 0; i < bytes; ++i) static_cast<unsigned char*>(pointer)[i] = content(seed, i);
  return brimful_handle_unmap(pool, handle) == BRIMFUL_HANDLE_OK;
}

inline bool holds(brimful_handle_pool* pool, brimful_handle handle, std::size_t bytes, std::uint64_t seed) {
  void* pointer = nullptr;
  if (brimful_handle_map(pool, handle, BRIMFUL_HANDLE_READ, &pointer) != BRIMFUL_HANDLE_OK) return false;
  bool right = reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  for (std::size_t i = 0; i < bytes; ++i) right &= static_cast<unsigned char*>(pointer)[i] == content(seed, i);
  return brimful_handle_unmap(pool, handle) == BRIMFUL_HANDLE_OK && right;
}

}  // namespace brimful::tests
