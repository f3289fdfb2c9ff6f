// SPDX-License-Identifier: MIT
//
// A host for tests of the page pool and of the handle pool: counts what it gave, fails on command, fills pages with
// rubbish, and knows at the end whether everything came back.
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "brimful/pool_host.h"

namespace brimful::pools {

class TestHost {
 public:
  explicit TestHost(std::size_t page_bytes = 4096) {
    table_ = *brimful_pool_host_linux();
    table_.page_bytes = page_bytes;
    table_.context = this;
    table_.get_pages = [](void* context, std::size_t bytes) { return static_cast<TestHost*>(context)->get(bytes); };
    table_.give_pages = [](void* context, void* pages, std::size_t bytes) {
      static_cast<TestHost*>(context)->give(pages, bytes);
    };
  }

  const brimful_pool_host* table() const { return &table_; }
  brimful_pool_host* table() { return &table_; }

  // The next `calls` get_pages() succeed, then none.
  void fail_after(std::size_t calls) {
    const std::lock_guard guard(mutex_);
    left_ = calls;
  }
  void fail_never() { fail_after(~std::size_t{0}); }
  // The fourth get_pages() from now on returns this, which nobody may touch.
  void hand_out(void* pages) {
    strange_ = pages;
    calls_to_strange_ = 4;
  }

  std::size_t bytes() {
    const std::lock_guard guard(mutex_);
    return bytes_;
  }
  bool has_fault() {
    const std::lock_guard guard(mutex_);
    return fault_;
  }
  ~TestHost() {
    for (const auto& [pages, bytes] : given_) std::free(pages);
  }

 private:
  void* get(std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    if (bytes % table_.page_bytes != 0) fault_ = true;
    if (left_ == 0) return nullptr;
    if (left_ != ~std::size_t{0}) --left_;
    const bool strange = strange_ != nullptr && --calls_to_strange_ == 0;
    void* pages = strange ? strange_ : std::aligned_alloc(table_.page_bytes, bytes);
    if (!strange) std::memset(pages, 0xA5, bytes);
    given_[pages] = bytes;
    bytes_ += bytes;
    return pages;
  }
  void give(void* pages, std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    const auto found = given_.find(pages);
    if (found == given_.end() || found->second != bytes) {
      fault_ = true;
      return;
    }
    given_.erase(found);
    bytes_ -= bytes;
    if (pages != strange_) std::free(pages);
  }

  brimful_pool_host table_{};
  std::mutex mutex_;
  std::map<void*, std::size_t> given_;
  std::size_t bytes_ = 0;
  std::size_t left_ = ~std::size_t{0};
  void* strange_ = nullptr;
  int calls_to_strange_ = 0;
  bool fault_ = false;
};

}  // namespace brimful::pools
