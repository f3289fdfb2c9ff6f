// SPDX-License-Identifier: MIT
//
// What was freed last is put back by the next free, in the library that does not check misuse (and not in an arena).
// Nobody is to see it but by addresses: here each call that could miss the block, right after its free.
#include "tlsf_fixture.h"

namespace {

constexpr std::size_t kPool = 4096;

TEST(TlsfLate, MallocThatFindsNothingTakesWhatWasFreedLast) {
  const TlsfPool pool(kPool);
  const std::vector<void*> blocks = pool.fill(120);
  brimful_tlsf_free(pool, blocks[7]);
  EXPECT_EQ(brimful_tlsf_malloc(pool, 120), blocks[7]);
  EXPECT_EQ(brimful_tlsf_malloc(pool, 120), nullptr);
}

TEST(TlsfLate, MallocThatFindsNothingTakesItTogetherWithItsNeighbours) {
  const TlsfPool pool(kPool);
  const std::vector<void*> blocks = pool.fill(120);  // strides of 128
  brimful_tlsf_free(pool, blocks[6]);
  brimful_tlsf_free(pool, blocks[8]);
  brimful_tlsf_free(pool, blocks[7]);
  EXPECT_EQ(brimful_tlsf_malloc(pool, 3 * 128), nullptr);
  EXPECT_EQ(brimful_tlsf_malloc(pool, 3 * 128 - 8), blocks[6]);
  EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
}

TEST(TlsfLate, AlignedAllocFindsIt) {
  const TlsfPool pool(kPool);
  const std::vector<void*> blocks = pool.fill(1000);
  brimful_tlsf_free(pool, blocks[1]);
  EXPECT_NE(brimful_tlsf_aligned_alloc(pool, 64, 256), nullptr);
}

TEST(TlsfLate, ReallocGrowsIntoItAndTheFreeOneBehind) {
  const TlsfPool pool(kPool);
  const std::vector<void*> blocks = pool.fill(120);
  brimful_tlsf_free(pool, blocks[8]);
  brimful_tlsf_free(pool, blocks[7]);
  EXPECT_EQ(brimful_tlsf_realloc(pool, blocks[6], 300), blocks[6]);
  EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
  brimful_tlsf_free(pool, blocks[9]);
  EXPECT_EQ(brimful_tlsf_realloc(pool, blocks[6], 5 * 128), nullptr) << "too short, and listed again";
  EXPECT_EQ(brimful_tlsf_realloc(pool, blocks[6], 4 * 128 - 8), blocks[6]);
}

TEST(TlsfLate, ReallocSlidesDownIntoIt) {
  const TlsfPool pool(kPool);
  const std::vector<void*> blocks = pool.fill(120);
  std::memset(blocks[7], 0x5A, 120);
  brimful_tlsf_free(pool, blocks[6]);
  auto* const moved = static_cast<unsigned char*>(brimful_tlsf_realloc(pool, blocks[7], 200));
  EXPECT_EQ(moved, blocks[6]);
  EXPECT_EQ(std::count(moved, moved + 120, 0x5A), 120);
}

TEST(TlsfLate, StatisticsAndWalkKnowItAsFree) {
  const TlsfPool pool(kPool);
  void* const a = brimful_tlsf_malloc(pool, 100);
  brimful_tlsf_free(pool, a);
  EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
  const auto is_free = [](void*, void*, std::size_t, bool live) {
    EXPECT_FALSE(live);
    return true;
  };
  brimful_tlsf_walk(pool, is_free, nullptr);
  void* const b = brimful_tlsf_malloc(pool, 100);
  brimful_tlsf_free(pool, b);
  EXPECT_EQ(pool.stats().used, 0U);
  EXPECT_EQ(pool.stats().free_blocks, 1U);
  EXPECT_EQ(pool.stats().peak, 112U) << "both were never live at a time";
}

TEST(TlsfLate, RegionThatItLiesInIsEmpty) {
  const TlsfPool pool(kPool);
  brimful_tlsf_free(pool, brimful_tlsf_malloc(pool, 100));
  EXPECT_TRUE(brimful_tlsf_remove_region(pool, pool.region()));
}

TEST(TlsfLate, ResetForgetsIt) {
  const TlsfPool pool(kPool);
  brimful_tlsf_free(pool, brimful_tlsf_malloc(pool, 100));
  brimful_tlsf_reset(pool);
  EXPECT_EQ(pool.stats().used, 0U);
  EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
}

}  // namespace
