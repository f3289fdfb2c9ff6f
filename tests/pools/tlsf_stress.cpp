// SPDX-License-Identifier: MIT
//
// TLSF against an oracle: random calls on small pools, the checker after each, every byte of every block looked at before
// it goes. The oracle is a table of what is live; two blocks that overlap would damage each other's bytes. Odd pools grow
// and shrink an arena whose owner refuses now and then; all take regions on and off.
//
//   tlsf_stress [--long] [seed]     10^7 operations with --long, else what takes a few seconds under a sanitizer
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "brimful/tlsf.h"

namespace {

constexpr std::size_t kOperations = 200'000;
constexpr std::size_t kLongOperations = 10'000'000;
constexpr std::size_t kPoolOperations = 20'000;  // then another pool begins
constexpr std::size_t kSlots = 48;
constexpr std::size_t kArena = std::size_t{64} << 10;

[[noreturn]] void fail(const char* what, std::uint64_t seed, std::size_t operation) {
  std::fprintf(stderr, "tlsf_stress: %s (pool of seed %llu, operation %zu)\n", what,
               static_cast<unsigned long long>(seed), operation);
  std::abort();
}

struct Slot {
  unsigned char* block = nullptr;
  std::size_t bytes = 0;
  unsigned char paint = 0;
};

class Pool {
 public:
  explicit Pool(std::uint64_t seed) : seed_(seed), random_(seed * 0x9E3779B97F4A7C15U + 1) {
    const std::size_t bytes = brimful_tlsf_control_bytes() + (seed % 2 == 0 ? 2000 + next() % 30000 : 0);
    memory_.resize(bytes);
    pool_ = seed % 2 == 0 ? brimful_tlsf_create(memory_.data(), bytes)
                          : brimful_tlsf_create_growable(memory_.data(), bytes, resize, this);
    if (pool_ == nullptr) fail("no pool", seed_, 0);
    largest_ = 64U << next() % 7;
  }

  void run(std::size_t operations) {
    for (operation_ = 0; operation_ < operations; ++operation_) {
      step();
      check();
    }
    for (Slot& slot : slots_) release(slot);
    check();
    brimful_tlsf_stats stats{};
    stats.size = sizeof(stats);
    brimful_tlsf_get_stats(pool_, &stats);
    if (stats.used != 0 || stats.live_blocks != 0) fail("something is left", seed_, operation_);
    if (stats.free_blocks != stats.regions) fail("free memory was not joined", seed_, operation_);
  }

 private:
  static void* resize(void* context, std::size_t bytes) {
    auto* const self = static_cast<Pool*>(context);
    if (bytes > kArena || self->next() % 8 == 0) return nullptr;
    self->arena_.resize(kArena);
    return self->arena_.data();
  }

  std::uint64_t next() {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    return random_ >> 33;
  }

  std::size_t some_bytes() { return next() % (next() % 16 == 0 ? 8 * largest_ : largest_); }

  void check() {
    if (const char* const what = brimful_tlsf_check(pool_, nullptr)) fail(what, seed_, operation_);
  }

  void paint(Slot& slot) {
    slot.paint = static_cast<unsigned char>(next());
    std::memset(slot.block, slot.paint, slot.bytes);
  }

  void expect_painted(const Slot& slot, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      if (slot.block[i] != slot.paint) fail("a block's content changed", seed_, operation_);
    }
  }

  void release(Slot& slot) {
    if (slot.block == nullptr) return;
    expect_painted(slot, slot.bytes);
    brimful_tlsf_free(pool_, slot.block);
    slot = Slot{};
  }

  void allocate(Slot& slot) {
    const std::size_t bytes = some_bytes();
    const std::uint64_t kind = next() % 8;
    void* block = nullptr;
    if (kind == 0) {
      const std::size_t alignment = std::size_t{1} << next() % 10;
      block = brimful_tlsf_aligned_alloc(pool_, alignment, bytes);
      if (reinterpret_cast<std::uintptr_t>(block) % alignment != 0) fail("not aligned", seed_, operation_);
    } else if (kind == 1) {
      block = brimful_tlsf_calloc(pool_, bytes, 1);
    } else {
      block = brimful_tlsf_malloc(pool_, bytes);
    }
    if (block == nullptr) return;
    if (reinterpret_cast<std::uintptr_t>(block) % BRIMFUL_TLSF_ALIGNMENT != 0) fail("not aligned", seed_, operation_);
    if (brimful_tlsf_usable_size(block) < bytes) fail("too short", seed_, operation_);
    slot.block = static_cast<unsigned char*>(block);
    slot.bytes = bytes;
    if (kind == 1) expect_painted(slot, bytes);  // with 0
    slot.bytes = brimful_tlsf_usable_size(block);
    paint(slot);
  }

  void reallocate(Slot& slot) {
    const std::size_t bytes = 1 + some_bytes();
    void* const block = brimful_tlsf_realloc(pool_, slot.block, bytes);
    if (block == nullptr) return expect_painted(slot, slot.bytes);
    slot.block = static_cast<unsigned char*>(block);
    expect_painted(slot, bytes < slot.bytes ? bytes : slot.bytes);
    slot.bytes = brimful_tlsf_usable_size(block);
    paint(slot);
  }

  void change_regions() {
    if (!has_extra_) {
      has_extra_ = brimful_tlsf_add_region(pool_, extra_ + next() % 32, 64 + next() % 2000);
    } else {
      for (unsigned char* name = extra_; has_extra_ && name < extra_ + 32; ++name) {
        if (brimful_tlsf_remove_region(pool_, name)) has_extra_ = false;
      }
    }
    if (next() % 16 != 0) return;
    brimful_tlsf_reset(pool_);
    for (Slot& slot : slots_) slot = Slot{};
  }

  void step() {
    Slot& slot = slots_[next() % kSlots];
    if (next() % 256 == 0) {
      change_regions();
    } else if (slot.block == nullptr) {
      allocate(slot);
    } else if (next() % 4 == 0) {
      reallocate(slot);
    } else {
      release(slot);
    }
  }

  std::uint64_t seed_;
  std::uint64_t random_;
  std::vector<unsigned char> memory_;
  std::vector<unsigned char> arena_;
  unsigned char extra_[2200] = {};
  bool has_extra_ = false;
  brimful_tlsf* pool_ = nullptr;
  std::size_t largest_ = 0;
  std::size_t operation_ = 0;
  Slot slots_[kSlots];
};

}  // namespace

int main(int argc, char** argv) {
  std::size_t operations = kOperations;
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--long") == 0) {
      operations = kLongOperations;
    } else {
      seed = std::strtoull(argv[i], nullptr, 10);
    }
  }
  for (std::size_t done = 0; done < operations; done += kPoolOperations) Pool(seed++).run(kPoolOperations);
  std::printf("%zu operations, the checker after each: no fault\n", operations);
}
