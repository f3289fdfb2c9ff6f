// SPDX-License-Identifier: MIT
//
// TLSF's sizing helper is never wrong: pools of exactly the bytes it gives, against an adversary that keeps within what it
// announced and otherwise does its worst: it fills the pool, leaves survivors as far apart as they can be, fills what is
// between them with blocks that make the holes a little too short, and asks for the largest.
#include "tlsf_fixture.h"

namespace {

struct Live {
  void* block;
  std::size_t demand;
};

// Plays against a pool of `bytes` bytes. Returns how many requests failed.
class Adversary {
 public:
  Adversary(std::vector<brimful_tlsf_demand> demands, std::size_t bytes, std::size_t skip, std::uint64_t seed)
      : demands_(std::move(demands)), random_(seed), memory_(bytes + skip), live_(demands_.size()) {
    pool_ = brimful_tlsf_create(memory_.data() + skip, bytes);
  }

  int play(int rounds) {
    for (int round = 0; round < rounds && failures_ == 0; ++round) {
      fill(next() % 3);
      const std::size_t kept = 2 + next() % 7;
      keep_each(kept, next() % kept);
      // Holes become a little too short: small blocks in front of them.
      if (round % 2 == 0) {
        for (std::size_t i = 0; i < demands_.size(); ++i) fill_one(i, 1);
        keep_each(2, next() % 2);
      }
      if (round % 5 == 0) resize_some();
      fill(0);
      if (round % 7 == 0) keep_each(SIZE_MAX, 1);
    }
    EXPECT_EQ(brimful_tlsf_check(pool_, nullptr), nullptr);
    return failures_;
  }

 private:
  std::uint64_t next() {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    return random_ >> 33;
  }

  // As many blocks as were announced. manner 0: the largest, 1: the smallest, 2: any.
  void fill(std::uint64_t manner) {
    const std::size_t first = next() % demands_.size();
    for (std::size_t i = 0; i < demands_.size(); ++i) fill_one((first + i) % demands_.size(), manner);
  }

  void fill_one(std::size_t demand, std::uint64_t manner) {
    const brimful_tlsf_demand& wanted = demands_[demand];
    while (live_[demand] < wanted.blocks) {
      const std::size_t bytes = manner == 0 ? wanted.bytes : manner == 1 ? 1 : next() % (wanted.bytes + 1);
      void* const block = wanted.alignment > 16 && next() % 4 != 0
                              ? brimful_tlsf_aligned_alloc(pool_, wanted.alignment, bytes)
                              : brimful_tlsf_malloc(pool_, bytes);
      if (block == nullptr) {
        ++failures_;
        return;
      }
      blocks_.push_back({block, demand});
      ++live_[demand];
    }
  }

  // Frees all but each `step`-th in order of address.
  void keep_each(std::size_t step, std::size_t first) {
    std::sort(blocks_.begin(), blocks_.end(), [](const Live& a, const Live& b) { return a.block < b.block; });
    std::vector<Live> kept;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (i % step == first) {
        kept.push_back(blocks_[i]);
      } else {
        brimful_tlsf_free(pool_, blocks_[i].block);
        --live_[blocks_[i].demand];
      }
    }
    blocks_ = kept;
  }

  // realloc within the demand, while one block fewer than announced is live.
  void resize_some() {
    for (Live& one : blocks_) {
      const brimful_tlsf_demand& wanted = demands_[one.demand];
      if (live_[one.demand] == wanted.blocks || wanted.bytes == 0) continue;
      void* const block = brimful_tlsf_realloc(pool_, one.block, 1 + next() % wanted.bytes);
      if (block == nullptr) {
        ++failures_;
      } else {
        one.block = block;
      }
    }
  }

  std::vector<brimful_tlsf_demand> demands_;
  std::uint64_t random_;
  std::vector<std::byte> memory_;
  brimful_tlsf* pool_;
  std::vector<Live> blocks_;
  std::vector<std::size_t> live_;  // of each demand
  int failures_ = 0;
};

const std::vector<std::vector<brimful_tlsf_demand>> kDemands = {
    {{1, 0, 0}},
    {{100, 24, 0}},
    {{1, 100000, 0}},
    {{200, 25, 0}},
    {{200, 1000, 0}},
    {{200, 1064, 0}},
    {{100, 10000, 0}},
    {{64, 100, 256}},
    {{10, 100, 65536}},
    {{50, 16, 0}, {50, 64, 0}, {50, 256, 0}, {50, 1024, 0}},
    {{100, 24, 0}, {3, 20000, 0}},
    {{100, 40, 0}, {20, 500, 64}, {2, 30000, 4096}},
    {{0, 1000000, 0}, {10, 10, 0}},
};

TEST(TlsfBytesFor, NoRequestFailsWithinWhatWasAnnounced) {
  for (std::size_t i = 0; i < kDemands.size(); ++i) {
    const std::size_t bytes = brimful_tlsf_bytes_for(kDemands[i].data(), kDemands[i].size());
    for (std::uint64_t seed = 1; seed <= 16; ++seed) {
      EXPECT_EQ(Adversary(kDemands[i], bytes, seed % 16, seed * 77777).play(60), 0)
          << "demands " << i << " seed " << seed;
    }
  }
}

TEST(TlsfBytesFor, TheAdversaryWinsAgainstWhatIsLiveAlone) {
  // 200 blocks of 1008 bytes and nothing more: enough for them in order, not for what the adversary does.
  const std::vector<brimful_tlsf_demand> demands = {{200, 1064, 0}};
  const std::size_t alone = brimful_tlsf_control_bytes() + 200 * 1072 + 64;
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) failures += Adversary(demands, alone, 0, seed).play(60);
  EXPECT_GT(failures, 0);
}

TEST(TlsfBytesFor, IsLittleMoreThanTwiceWhatIsLiveForOneSize) {
  for (const std::size_t bytes : {100, 1000, 5000, 100000, 3000000}) {
    const brimful_tlsf_demand demand = {1000, bytes, 0};
    const auto pool = static_cast<double>(brimful_tlsf_bytes_for(&demand, 1) - brimful_tlsf_control_bytes());
    const auto strides = static_cast<double>(1000 * ((bytes + 8 + 15) / 16 * 16));
    EXPECT_LT(pool / strides, 2.04) << bytes;
  }
}

TEST(TlsfBytesFor, SmallestBlocksHaveNoGaps) {
  const brimful_tlsf_demand demand = {1000, 24, 0};
  EXPECT_LT(brimful_tlsf_bytes_for(&demand, 1), brimful_tlsf_control_bytes() + 1000 * 48 + 100);
}

TEST(TlsfBytesFor, NothingNeedsTheControlStructureAlone) {
  EXPECT_EQ(brimful_tlsf_bytes_for(nullptr, 0), brimful_tlsf_control_bytes());
  const brimful_tlsf_demand none = {0, 100, 0};
  EXPECT_EQ(brimful_tlsf_bytes_for(&none, 1), brimful_tlsf_control_bytes());
}

TEST(TlsfBytesFor, SaysWhatNoPoolCanHold) {
  const auto of = [](std::size_t blocks, std::size_t bytes, std::size_t alignment) {
    const brimful_tlsf_demand demand = {blocks, bytes, alignment};
    return brimful_tlsf_bytes_for(&demand, 1);
  };
  EXPECT_EQ(of(1, SIZE_MAX, 0), SIZE_MAX);
  EXPECT_EQ(of(1, BRIMFUL_TLSF_MOST_BYTES, 0), SIZE_MAX);
  EXPECT_EQ(of(SIZE_MAX, 1, 0), SIZE_MAX);
  EXPECT_EQ(of(SIZE_MAX / 1000, 1000, 0), SIZE_MAX);
  EXPECT_EQ(of(std::size_t{1} << 30, 128, 0), SIZE_MAX);
  EXPECT_EQ(of(1, 8, 48), SIZE_MAX);
  EXPECT_EQ(of(1, 8, 2 * BRIMFUL_TLSF_MOST_ALIGNMENT), SIZE_MAX);
  EXPECT_LT(of(1, std::size_t{1} << 36, 0), BRIMFUL_TLSF_MOST_BYTES);
}

}  // namespace
