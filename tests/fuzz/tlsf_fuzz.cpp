// SPDX-License-Identifier: MIT
//
// A TLSF pool over two regions, one of which comes and goes, and a growable one, against the oracle; every few calls all invariants
// are looked at. At the end bytes of the pool's own memory are overwritten: the check has to say so or not, but may not leave the pool.
#include <cstring>
#include <memory>
#include <vector>

#include "brimful/tlsf.h"
#include "input.h"
#include "oracle.h"

namespace brimful::fuzz {
namespace {

constexpr std::size_t kArenaBytes = 256 << 10;

struct Arena {
  std::vector<char> bytes = std::vector<char>(kArenaBytes + 64);
  std::size_t offset = 0;
  std::size_t most = kArenaBytes;
  static void* resize(void* context, std::size_t bytes) {
    auto* const arena = static_cast<Arena*>(context);
    return bytes > arena->most ? nullptr : arena->bytes.data() + arena->offset;
  }
};

class Pool {
 public:
  explicit Pool(Input& input)
      : is_growable_(input.flag()),
        first_(brimful_tlsf_control_bytes() + (is_growable_ ? 0 : input.number(2))),
        second_(input.number(2)) {
    arena_.offset = input.below(64);
    pool_ = is_growable_ ? brimful_tlsf_create_growable(first_.data(), first_.size(), Arena::resize, &arena_)
                         : brimful_tlsf_create(first_.data(), first_.size());
    expect(pool_ != nullptr, "a pool is created where its structure has room");
  }

  void step(Input& input) {
    const std::uint8_t what = input.byte();
    if (what < 90) return allocate(input);
    if (what < 170) {
      if (oracle_.count() != 0) brimful_tlsf_free(pool_, oracle_.take(input.below(oracle_.count())).start);
    } else if (what < 210) {
      resize(input);
    } else if (what < 225) {
      change_region();
    } else if (what < 230) {
      arena_.most = input.number(3) % (kArenaBytes + 1);
    } else if (what < 232) {
      drop_all();
      brimful_tlsf_reset(pool_);
    } else {
      expect_whole();
    }
  }

  void finish(Input& input) {
    expect_whole();
    damage(input);
  }

 private:
  void allocate(Input& input) {
    const std::uint8_t way = input.byte() % 4;
    const std::size_t bytes = input.request_bytes();
    Block block;
    block.asked = bytes;
    void* start = nullptr;
    if (way == 0) {
      const std::size_t count = input.below(5);
      start = brimful_tlsf_calloc(pool_, count, bytes);
      if (start == nullptr) return;
      block.asked = count * bytes;
      expect_zeros(static_cast<const char*>(start), block.asked);
    } else if (way == 1) {
      block.alignment = std::size_t{1} << input.below(18);
      start = brimful_tlsf_aligned_alloc(pool_, block.alignment, bytes);
    } else {
      start = brimful_tlsf_malloc(pool_, bytes);
    }
    if (start == nullptr) return;
    block.start = static_cast<char*>(start);
    block.usable = brimful_tlsf_usable_size(start);
    oracle_.add(block);
  }

  void resize(Input& input) {
    const std::size_t bytes = input.request_bytes();
    if (oracle_.count() == 0) return;
    Block block = oracle_.take(input.below(oracle_.count()));
    void* const after = brimful_tlsf_realloc(pool_, block.start, bytes);
    if (after == nullptr && bytes == 0) return;
    if (after != nullptr) {
      const std::size_t kept = std::min({block.asked, bytes, std::size_t{4096}});
      for (std::size_t n = 0; n < kept; ++n)
        expect(static_cast<char*>(after)[n] == static_cast<char>(block.colour + n * 7),
               "realloc keeps what was written", after);
      block.start = static_cast<char*>(after);
      block.asked = bytes;
      block.usable = brimful_tlsf_usable_size(after);
      block.alignment = 0;
    }
    oracle_.add(block);
  }

  void change_region() {
    if (!has_second_) {
      has_second_ = brimful_tlsf_add_region(pool_, second_.data(), second_.size());
    } else {
      has_second_ = !brimful_tlsf_remove_region(pool_, second_.data());
    }
  }

  void drop_all() {
    while (oracle_.count() != 0) oracle_.take(oracle_.count() - 1);
  }

  void expect_whole() const {
    const void* where = nullptr;
    const char* const broken = brimful_tlsf_check(pool_, &where);
    if (broken != nullptr) fail(broken, where);
    oracle_.expect_all();
    brimful_tlsf_stats stats = {};
    stats.size = sizeof stats;
    brimful_tlsf_get_stats(pool_, &stats);
    expect(stats.live_blocks == oracle_.count(), "the pool counts its blocks");
    expect(stats.used <= stats.total && stats.used <= stats.peak, "no more is used than there is");
  }

  // Behind the control structure: what a program can overwrite by its own blocks.
  void damage(Input& input) {
    if (is_growable_ || first_.size() == brimful_tlsf_control_bytes()) return;
    const std::size_t first = brimful_tlsf_control_bytes();
    for (int n = 0; n < 4 && !input.is_empty(); ++n) {
      const std::size_t at = first + input.number(2) % (first_.size() - first);
      const std::uint64_t word =
          input.flag() ? input.number(8) : reinterpret_cast<std::uint64_t>(first_.data()) + input.number(2);
      std::memcpy(first_.data() + at, &word, std::min(sizeof word, first_.size() - at));
      const void* where = nullptr;
      brimful_tlsf_check(pool_, &where);
    }
  }

  bool is_growable_;
  std::vector<char> first_;
  std::vector<char> second_;
  Arena arena_;
  bool has_second_ = false;
  brimful_tlsf* pool_ = nullptr;
  Oracle oracle_;
};

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  brimful::fuzz::Input input(data, size);
  brimful::fuzz::Pool pool(input);
  brimful::fuzz::Input calls = input.part(input.left() < 32 ? input.left() : input.left() - 32);
  while (!calls.is_empty()) pool.step(calls);
  pool.finish(input);
  return 0;
}
