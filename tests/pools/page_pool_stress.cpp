// SPDX-License-Identifier: MIT
//
// Oracle stress of the page pool. One thread: each block is filled with its own pattern and looked at when it dies; the pool's
// counters are compared with the model's and the checker runs, after each operation while the pool is small and every so
// often when it is large; double frees, interior and foreign pointers must be refused; the host refuses pages now and
// then. Many threads: blocks change hands, contents are checked, the checker runs in between.
//
//   page_pool_stress [--long] [seed]      default: some 10^5 operations; --long: 10^7 and more
//
// Exit: 0, or 1 with a line that names the fault and the seed.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "brimful/pagepool.h"
#include "test_host.h"

namespace brimful::pools {
namespace {

std::uint64_t seed = 1;

[[noreturn]] void fail(const char* what, std::uint64_t operation) {
  std::fprintf(stderr, "page_pool_stress: %s (operation %llu, seed %llu)\n", what,
               static_cast<unsigned long long>(operation), static_cast<unsigned long long>(seed));
  std::_Exit(1);
}

struct Piece {
  unsigned char* bytes;
  std::size_t asked;
  std::size_t usable;
  unsigned char pattern;
};

void fill(const Piece& piece) { std::memset(piece.bytes, piece.pattern, piece.usable); }
bool is_intact(const Piece& piece) {
  return piece.usable == 0 ||
         (piece.bytes[0] == piece.pattern && std::memcmp(piece.bytes, piece.bytes + 1, piece.usable - 1) == 0);
}

// Small sizes often, sizes near half a page and a page sometimes, and sizes that are refused.
std::size_t draw_size(std::mt19937_64& random, std::size_t page_bytes) {
  switch (random() % 8) {
    case 0:
      return random() % (page_bytes + 64);
    case 1:
      return page_bytes / 2 - 64 + random() % 128;
    case 2:
      return random() % 1024;
    default:
      return random() % 200;
  }
}

// A pool and a model of it: the live pieces.
class Oracle {
 public:
  Oracle(std::size_t page_bytes, std::size_t most) : host_(page_bytes), page_bytes_(page_bytes), most_(most) {
    pool_ = brimful_page_pool_create(host_.table());
    if (pool_ == nullptr) fail("no pool", 0);
  }

  void run(std::uint64_t operations, std::uint64_t between_checks) {
    for (operation_ = 1; operation_ <= operations; ++operation_) {
      // The chance to grow falls with the size, so that all fills come up, and phases empty the pool.
      const bool drain = operation_ / (most_ * 8) % 4 == 3;
      const bool grow = random_() % 100 < (drain ? 30 : 55) && live_.size() < most_;
      if (grow || live_.empty()) {
        allocate();
      } else {
        release(random_() % live_.size());
      }
      if (random_() % 16 == 0) misuse();
      if (operation_ % between_checks == 0) check();
    }
    while (!live_.empty()) release(live_.size() - 1);
    check();
    brimful_page_pool_destroy(pool_);
    if (host_.bytes() != 0 || host_.has_fault()) fail("pages were not given back as they came", operation_);
  }

 private:
  void allocate() {
    const bool poor = random_() % 32 == 0;
    if (poor) host_.fail_after(random_() % 2);
    const std::size_t bytes = draw_size(random_, page_bytes_);
    auto* block = static_cast<unsigned char*>(brimful_page_pool_malloc(pool_, bytes));
    host_.fail_never();
    if (block == nullptr) {
      if (!poor && bytes <= page_bytes_ - 12) fail("a request failed that the host would have served", operation_);
      return;
    }
    if (bytes > page_bytes_ - 12) fail("more than a page was given", operation_);
    const std::size_t usable = brimful_page_pool_usable_size(pool_, block);
    if (usable < bytes || reinterpret_cast<std::uintptr_t>(block) % 8 != 0) fail("too small or misaligned", operation_);
    live_.push_back({block, bytes, usable, static_cast<unsigned char>(random_())});
    used_ += usable + 4;
    fill(live_.back());
  }

  void release(std::size_t index) {
    const Piece piece = live_[index];
    live_[index] = live_.back();
    live_.pop_back();
    used_ -= piece.usable + 4;
    if (!is_intact(piece)) fail("content changed", operation_);
    if (!brimful_page_pool_free(pool_, piece.bytes)) fail("a live block was refused", operation_);
    if (brimful_page_pool_free(pool_, piece.bytes)) fail("a double free was accepted", operation_);
  }

  void misuse() {
    if (live_.empty()) return;
    const Piece& piece = live_[random_() % live_.size()];
    // A pattern of one byte is never a header: sizes of both neighbours would have to agree.
    const std::size_t inside = 1 + random_() % (piece.usable - 1);
    if (brimful_page_pool_free(pool_, piece.bytes + inside)) fail("an interior pointer was accepted", operation_);
    if (brimful_page_pool_free(pool_, &live_)) fail("a foreign pointer was accepted", operation_);
  }

  void check() {
    if (const char* what = brimful_page_pool_check(pool_, nullptr)) fail(what, operation_);
    brimful_page_pool_stats stats{};
    stats.size = sizeof stats;
    brimful_page_pool_get_stats(pool_, &stats);
    if (stats.live_blocks != live_.size() || stats.used != used_) fail("live blocks or bytes are wrong", operation_);
    if (stats.pages * page_bytes_ + stats.metadata_bytes != host_.bytes()) fail("pages are wrong", operation_);
    if (live_.empty() != (stats.pages == 0)) fail("pages stayed in an empty pool", operation_);
  }

  TestHost host_;
  std::size_t page_bytes_;
  std::size_t most_;
  brimful_page_pool* pool_;
  std::mt19937_64 random_{seed};
  std::vector<Piece> live_;
  std::size_t used_ = 0;
  std::uint64_t operation_ = 0;
};

// Blocks pass through one shared array: a thread frees what another allocated.
class Crowd {
 public:
  explicit Crowd(std::size_t slots) : slots_(slots), locks_(slots) {
    pool_ = brimful_page_pool_create(host_.table());
    if (pool_ == nullptr) fail("no pool", 0);
  }

  void run(unsigned threads, std::uint64_t operations) {
    std::vector<std::thread> crowd;
    for (unsigned i = 0; i < threads; ++i) crowd.emplace_back([=, this] { work(i, operations / threads); });
    for (std::thread& thread : crowd) thread.join();
    for (const Piece& piece : slots_) {
      if (piece.bytes == nullptr) continue;
      if (!is_intact(piece) || !brimful_page_pool_free(pool_, piece.bytes)) fail("content or block lost", 0);
    }
    if (const char* what = brimful_page_pool_check(pool_, nullptr)) fail(what, 0);
    brimful_page_pool_destroy(pool_);
    if (host_.bytes() != 0 || host_.has_fault()) fail("pages were not given back as they came", 0);
  }

 private:
  void work(unsigned number, std::uint64_t operations) {
    std::mt19937_64 random(seed * 1000 + number);
    for (std::uint64_t i = 0; i < operations; ++i) {
      Piece fresh{};
      if (random() % 2 == 0) {
        fresh.asked = draw_size(random, 4096);
        fresh.bytes = static_cast<unsigned char*>(brimful_page_pool_malloc(pool_, fresh.asked));
        if (fresh.bytes != nullptr) {
          fresh.usable = brimful_page_pool_usable_size(pool_, fresh.bytes);
          fresh.pattern = static_cast<unsigned char>(random());
          fill(fresh);
        }
      }
      const std::size_t slot = random() % slots_.size();
      {
        const std::lock_guard guard(locks_[slot]);
        std::swap(fresh, slots_[slot]);
      }
      if (fresh.bytes != nullptr) {
        if (!is_intact(fresh)) fail("content changed", i);
        if (!brimful_page_pool_free(pool_, fresh.bytes)) fail("a live block was refused", i);
      }
      if (i % 4096 == 0) {
        if (const char* what = brimful_page_pool_check(pool_, nullptr)) fail(what, i);
      }
    }
  }

  TestHost host_;
  brimful_page_pool* pool_;
  std::vector<Piece> slots_;
  std::vector<std::mutex> locks_;
};

}  // namespace
}  // namespace brimful::pools

int main(int count, char** arguments) {
  using namespace brimful::pools;
  bool is_long = false;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--long") == 0) {
      is_long = true;
    } else {
      seed = std::strtoull(arguments[i], nullptr, 10);
    }
  }
  const std::uint64_t times = is_long ? 100 : 1;
  Oracle(4096, 60).run(times * 40'000, 1);  // the checker after each operation
  Oracle(4096, 5'000).run(times * 40'000, 4'000);
  Oracle(16384, 300).run(times * 10'000, 10);
  Oracle(65536, 300).run(times * 10'000, 10);
  Crowd(2'000).run(4, times * 40'000);
  return 0;
}
