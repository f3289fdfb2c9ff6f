// SPDX-License-Identifier: MIT
//
// Threads that alloc, map, write, verify, unmap, free and compact one handle pool, all over the same objects.
//
// An object says itself what must be in it: its first 16 bytes are a seed and its size. Its handle stands in a shared
// place; whoever replaces it frees the old one, so others meet handles that are being freed, mapped or moved.
//
//   handle_stress [--long]
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "brimful/handle.h"

namespace {

constexpr std::size_t kPlaces = 2000;
constexpr int kThreads = 4;
constexpr std::size_t kMostBytes = 6000;

struct Head {
  std::uint64_t seed;
  std::uint64_t bytes;
};

[[noreturn]] void fail(const char* what, int result) {
  std::printf("handle_stress: %s (%d)\n", what, result);
  std::exit(1);
}

void write_object(void* object, std::uint64_t seed, std::size_t bytes) {
  const Head head{seed, bytes};
  memcpy(object, &head, sizeof(head));
  memset(static_cast<char*>(object) + sizeof(head), static_cast<int>(seed & 0xFF), bytes - sizeof(head));
}

void verify_object(const void* object) {
  Head head;
  memcpy(&head, object, sizeof(head));
  if (head.bytes < sizeof(head) || head.bytes > kMostBytes) fail("an object's size is damaged", 0);
  const auto* bytes = static_cast<const unsigned char*>(object);
  for (std::size_t i = sizeof(head); i < head.bytes; ++i) {
    if (bytes[i] != (head.seed & 0xFF)) fail("an object's bytes are damaged", static_cast<int>(i));
  }
}

class Worker {
 public:
  Worker(brimful_handle_pool* pool, std::vector<std::atomic<brimful_handle>>& places, unsigned number)
      : pool_(pool), places_(places), random_(number) {}

  void run(std::size_t operations) {
    for (std::size_t i = 0; i < operations; ++i) {
      std::atomic<brimful_handle>& place = places_[random_() % kPlaces];
      const std::uint64_t dice = random_() % 100;
      if (dice < 30) {
        replace(place, false);
      } else if (dice < 42) {
        replace(place, true);
      } else if (dice < 75) {
        read(place.load());
      } else if (dice < 95) {
        rewrite(place.load());
      } else if (dice < 98) {
        brimful_handle_compact(pool_, 1 + random_() % 30, nullptr);
      } else {
        use_stale();
      }
    }
  }

 private:
  void replace(std::atomic<brimful_handle>& place, bool with_nothing) {
    brimful_handle fresh = 0;
    if (!with_nothing) {
      const std::size_t bytes = sizeof(Head) + random_() % (kMostBytes - sizeof(Head));
      auto result = brimful_handle_alloc(pool_, bytes, &fresh);
      if (result != BRIMFUL_HANDLE_OK) fail("alloc", result);
      void* object = nullptr;
      result = brimful_handle_map(pool_, fresh, BRIMFUL_HANDLE_WRITE, &object);
      if (result != BRIMFUL_HANDLE_OK) fail("map of a fresh object", result);
      write_object(object, random_(), bytes);
      unmap(fresh);
      std::size_t size = 0;
      result = brimful_handle_size(pool_, fresh, &size);
      if (result != BRIMFUL_HANDLE_OK || size != bytes) fail("size", result);
    }
    const brimful_handle old = place.exchange(fresh);
    if (old == 0) return;
    brimful_handle_result result = BRIMFUL_HANDLE_MAPPED;
    while (result == BRIMFUL_HANDLE_MAPPED) result = brimful_handle_free(pool_, old);  // others may use it still
    if (result != BRIMFUL_HANDLE_OK) fail("free", result);
    stale_ = old;
  }

  void read(brimful_handle handle) {
    void* object = nullptr;
    if (!map(handle, BRIMFUL_HANDLE_READ, &object)) return;
    verify_object(object);
    unmap(handle);
  }

  void rewrite(brimful_handle handle) {
    void* object = nullptr;
    if (!map(handle, BRIMFUL_HANDLE_BOTH, &object)) return;
    verify_object(object);
    Head head;
    memcpy(&head, object, sizeof(head));
    write_object(object, random_(), head.bytes);
    unmap(handle);
  }

  // False: it is gone, or somebody else has it.
  bool map(brimful_handle handle, brimful_handle_mode mode, void** object) {
    if (handle == 0) return false;
    const auto result = brimful_handle_map(pool_, handle, mode, object);
    if (result == BRIMFUL_HANDLE_OK) return true;
    if (result != BRIMFUL_HANDLE_STALE && result != BRIMFUL_HANDLE_MAPPED) fail("map", result);
    return false;
  }

  void unmap(brimful_handle handle) {
    const auto result = brimful_handle_unmap(pool_, handle);
    if (result != BRIMFUL_HANDLE_OK) fail("unmap", result);
  }

  void use_stale() {
    if (stale_ == 0) return;
    void* object = nullptr;
    const auto result = brimful_handle_map(pool_, stale_, BRIMFUL_HANDLE_READ, &object);
    if (result != BRIMFUL_HANDLE_STALE) fail("map of a stale handle", result);
    if (brimful_handle_free(pool_, stale_) != BRIMFUL_HANDLE_STALE) fail("free of a stale handle", 0);
  }

  brimful_handle_pool* pool_;
  std::vector<std::atomic<brimful_handle>>& places_;
  std::mt19937_64 random_;
  brimful_handle stale_ = 0;
};

void check(brimful_handle_pool* pool, const char* when) {
  const void* where = nullptr;
  if (const char* broken = brimful_handle_check(pool, &where)) {
    std::printf("%s: %s at %p\n", when, broken, where);
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_long = argc > 1 && std::strcmp(argv[1], "--long") == 0;
  const std::size_t operations = is_long ? 10000000 : 160000;
  constexpr std::size_t kRounds = 4;
  brimful_handle_options options{};
  options.size = sizeof(options);
  options.host = brimful_pool_host_linux();
  options.most_object_bytes = 8192;
  brimful_handle_pool* pool = brimful_handle_pool_create(&options);
  std::vector<std::atomic<brimful_handle>> places(kPlaces);
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        Worker worker(pool, places, static_cast<unsigned>(round * kThreads + static_cast<std::size_t>(i) + 1));
        worker.run(operations / kThreads / kRounds);
      });
    }
    for (std::thread& thread : threads) thread.join();
    check(pool, "after a round");
  }
  for (const std::atomic<brimful_handle>& place : places) {
    if (place.load() != 0 && brimful_handle_free(pool, place.load()) != BRIMFUL_HANDLE_OK) fail("last free", 0);
  }
  check(pool, "at the end");
  brimful_handle_stats stats{};
  stats.size = sizeof(stats);
  brimful_handle_get_stats(pool, &stats, nullptr, 0);
  if (stats.objects != 0 || stats.held_bytes != 0) fail("something is left", static_cast<int>(stats.objects));
  std::printf("%zu operations, %llu objects moved, %llu of %llu locks contended\n", operations,
              static_cast<unsigned long long>(stats.moved), static_cast<unsigned long long>(stats.locks.contended),
              static_cast<unsigned long long>(stats.locks.acquisitions));
  brimful_handle_pool_destroy(pool);
}
