// SPDX-License-Identifier: MIT
//
// TLSF: what each call promises, on pools over one region.
#include <cstdlib>

#include "pools/tlsf/lists.h"
#include "tlsf_fixture.h"

namespace {

constexpr std::size_t kEnds = 32;  // what a region loses: its entry and its sentinel

TEST(Tlsf, ListsRoundRequestsUpByAtMostOnePartIn32) {
  using namespace brimful::tlsf;
  for (std::size_t stride = 32; stride < std::size_t{1} << 37; stride += (stride / 97 + 16) & ~std::size_t{15}) {
    const std::size_t asked = least_of(list_above(stride));
    EXPECT_GE(asked, stride);
    EXPECT_LE(asked - stride, stride < 1024 ? 0 : stride / 32) << stride;
    EXPECT_LE(least_of(list_of(stride)), stride);
  }
}

TEST(Tlsf, FreshPoolIsOneFreeBlock) {
  const TlsfPool pool(4096);
  const auto stats = pool.stats();
  EXPECT_EQ(stats.total, 4096);
  EXPECT_EQ(stats.overhead, kEnds);
  EXPECT_EQ(stats.used, 0);
  EXPECT_EQ(stats.free_blocks, 1);
  EXPECT_EQ(stats.regions, 1);
  EXPECT_EQ(stats.largest_free, 4096 - kEnds - 8);
  EXPECT_EQ(stats.fragmentation, 0);
}

TEST(Tlsf, BlocksAreAlignedDistinctAndCostEightBytes) {
  const TlsfPool pool(4096);
  auto* const a = static_cast<std::byte*>(brimful_tlsf_malloc(pool, 24));
  auto* const b = static_cast<std::byte*>(brimful_tlsf_malloc(pool, 40));
  auto* const c = static_cast<std::byte*>(brimful_tlsf_malloc(pool, 1));
  EXPECT_TRUE(is_aligned(a, 16) && is_aligned(b, 16) && is_aligned(c, 16));
  EXPECT_EQ(b - a, 32);
  EXPECT_EQ(c - b, 48);
  EXPECT_EQ(brimful_tlsf_usable_size(a), 24);
  EXPECT_EQ(brimful_tlsf_usable_size(b), 40);
  EXPECT_EQ(brimful_tlsf_usable_size(c), 24);
  EXPECT_EQ(pool.stats().used, 32 + 48 + 32);
}

TEST(Tlsf, ZeroBytesIsABlockOfItsOwn) {
  const TlsfPool pool(4096);
  void* const a = brimful_tlsf_malloc(pool, 0);
  void* const b = brimful_tlsf_malloc(pool, 0);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a, b);
}

TEST(Tlsf, NullIsNoBlock) {
  const TlsfPool pool(4096);
  brimful_tlsf_free(pool, nullptr);
  EXPECT_EQ(brimful_tlsf_usable_size(nullptr), 0);
  EXPECT_EQ(pool.stats().live_blocks, 0);
}

TEST(Tlsf, FreeJoinsBothNeighboursInEachOrder) {
  for (int order = 0; order < 6; ++order) {
    const TlsfPool pool(4096);
    void* blocks[] = {brimful_tlsf_malloc(pool, 100), brimful_tlsf_malloc(pool, 200), brimful_tlsf_malloc(pool, 300)};
    constexpr int kOrders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (const int i : kOrders[order]) {
      brimful_tlsf_free(pool, blocks[i]);
      EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
    }
    EXPECT_EQ(pool.stats().free_blocks, 1);
    EXPECT_EQ(pool.stats().used, 0);
    EXPECT_EQ(pool.stats().largest_free, 4096 - kEnds - 8);
  }
}

TEST(Tlsf, LeftoverOfSixteenBytesStaysInTheBlock) {
  const TlsfPool pool(4096);
  void* const a = brimful_tlsf_malloc(pool, 56);  // 64 bytes
  void* const fence = brimful_tlsf_malloc(pool, 24);
  const std::size_t used = pool.stats().used;
  brimful_tlsf_free(pool, a);
  pool.settle();
  EXPECT_EQ(brimful_tlsf_malloc(pool, 40), a) << "48 of 64 bytes";
  EXPECT_EQ(brimful_tlsf_usable_size(a), 56);
  EXPECT_EQ(pool.stats().used, used);
  brimful_tlsf_free(pool, fence);
}

TEST(Tlsf, FindsABlockThatFitsExactlyThoughRoundingPassesItBy) {
  const TlsfPool pool(4096);
  void* const a = brimful_tlsf_malloc(pool, 1064);  // 1072: between the lists at 1056 and 1088
  void* const fence = brimful_tlsf_malloc(pool, 24);
  brimful_tlsf_free(pool, a);
  pool.settle();
  EXPECT_EQ(brimful_tlsf_malloc(pool, 1064), a);
  brimful_tlsf_free(pool, fence);
}

TEST(Tlsf, WholePoolCanBeOneBlock) {
  const TlsfPool pool(65536);
  const std::size_t largest = pool.stats().largest_free;
  EXPECT_EQ(brimful_tlsf_malloc(pool, largest + 1), nullptr);
  void* const block = brimful_tlsf_malloc(pool, largest);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(pool.stats().free_blocks, 0);
  EXPECT_EQ(pool.stats().largest_free, 0);
  EXPECT_EQ(pool.stats().fragmentation, 0);
  EXPECT_EQ(brimful_tlsf_malloc(pool, 0), nullptr);
  std::memset(block, 0xFF, brimful_tlsf_usable_size(block));
  brimful_tlsf_free(pool, block);
}

TEST(Tlsf, ImpossibleSizesFailAndChangeNothing) {
  const TlsfPool pool(4096);
  for (const std::size_t bytes :
       {SIZE_MAX, SIZE_MAX - 7, SIZE_MAX - 23, std::size_t{1} << 63, std::size_t{1} << 40, BRIMFUL_TLSF_MOST_BYTES,
        BRIMFUL_TLSF_MOST_BYTES - 1, BRIMFUL_TLSF_MOST_BYTES - 64, BRIMFUL_TLSF_MOST_BYTES + 1, std::size_t{4096}}) {
    EXPECT_EQ(brimful_tlsf_malloc(pool, bytes), nullptr) << bytes;
    EXPECT_EQ(brimful_tlsf_calloc(pool, bytes, 1), nullptr) << bytes;
    EXPECT_EQ(brimful_tlsf_aligned_alloc(pool, 64, bytes), nullptr) << bytes;
    EXPECT_EQ(brimful_tlsf_aligned_alloc(pool, BRIMFUL_TLSF_MOST_ALIGNMENT, bytes), nullptr) << bytes;
    EXPECT_EQ(brimful_tlsf_realloc(pool, nullptr, bytes), nullptr) << bytes;
  }
  EXPECT_EQ(pool.stats().free_blocks, 1);
  EXPECT_EQ(pool.stats().peak, 0);
}

TEST(Tlsf, CallocZeroesUsedMemoryAndKnowsOverflow) {
  const TlsfPool pool(4096);
  void* const dirty = brimful_tlsf_malloc(pool, 1000);
  std::memset(dirty, 0xAA, 1000);
  brimful_tlsf_free(pool, dirty);
  auto* const clean = static_cast<unsigned char*>(brimful_tlsf_calloc(pool, 10, 100));
  EXPECT_EQ(std::count(clean, clean + 1000, 0), 1000);
  EXPECT_EQ(brimful_tlsf_calloc(pool, unseen(std::size_t{1} << 32), std::size_t{1} << 32), nullptr);
  EXPECT_EQ(brimful_tlsf_calloc(pool, unseen(SIZE_MAX), 2), nullptr);
  EXPECT_NE(brimful_tlsf_calloc(pool, 0, 100), nullptr);
}

TEST(Tlsf, AlignedAllocReachesEachAlignmentAndReturnsWhatItSkips) {
  const TlsfPool pool(1 << 20);
  for (std::size_t alignment = 1; alignment <= 1 << 18; alignment *= 2) {
    // Begins at each of the places that are possible modulo the alignment's first multiples.
    for (std::size_t lead = 0; lead < 6; ++lead) {
      void* const before = brimful_tlsf_malloc(pool, 24 + 16 * lead);
      void* const block = brimful_tlsf_aligned_alloc(pool, alignment, 100);
      ASSERT_NE(block, nullptr) << alignment;
      EXPECT_TRUE(is_aligned(block, alignment));
      EXPECT_GE(brimful_tlsf_usable_size(block), 100);
      EXPECT_LE(brimful_tlsf_usable_size(block), 100 + 31);
      std::memset(block, 0x55, brimful_tlsf_usable_size(block));
      EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
      brimful_tlsf_free(pool, block);
      brimful_tlsf_free(pool, before);
      EXPECT_EQ(pool.stats().free_blocks, 1);
    }
  }
}

TEST(Tlsf, AlignmentsThatAreNoneOrTooLargeFail) {
  const TlsfPool pool(4096);
  for (const std::size_t alignment :
       {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{48}, 2 * BRIMFUL_TLSF_MOST_ALIGNMENT, SIZE_MAX}) {
    EXPECT_EQ(brimful_tlsf_aligned_alloc(pool, alignment, 8), nullptr) << alignment;
  }
  EXPECT_EQ(brimful_tlsf_aligned_alloc(pool, 4096, 100), nullptr) << "no room to skip";
}

TEST(Tlsf, ReallocOfNullAllocatesAndToNothingFrees) {
  const TlsfPool pool(4096);
  void* const block = brimful_tlsf_realloc(pool, nullptr, 100);
  EXPECT_GE(brimful_tlsf_usable_size(block), 100);
  EXPECT_EQ(brimful_tlsf_realloc(pool, block, 0), nullptr);
  EXPECT_EQ(pool.stats().live_blocks, 0);
}

TEST(Tlsf, ReallocShrinksInPlaceAndGivesTheTailBack) {
  const TlsfPool pool(4096);
  void* const block = brimful_tlsf_malloc(pool, 1000);
  void* const fence = brimful_tlsf_malloc(pool, 24);
  paint(block, 1000, 1);
  EXPECT_EQ(brimful_tlsf_realloc(pool, block, 100), block);
  EXPECT_TRUE(is_painted(block, 100, 1));
  EXPECT_EQ(pool.stats().free_blocks, 2);
  EXPECT_EQ(pool.stats().used, 112 + 32);
  EXPECT_EQ(pool.stats().live_blocks, 2);
  // 16 bytes less are no block behind a live one, but join a free one.
  EXPECT_EQ(brimful_tlsf_realloc(pool, block, 88), block);
  EXPECT_EQ(pool.stats().used, 96 + 32);
  void* const filler = brimful_tlsf_malloc(pool, 1008 - 96 - 8);
  EXPECT_EQ(brimful_tlsf_realloc(pool, filler, 1008 - 96 - 8 - 16), filler);
  EXPECT_EQ(brimful_tlsf_usable_size(filler), 1008 - 96 - 8);
  brimful_tlsf_free(pool, fence);
}

TEST(Tlsf, ReallocGrowsIntoTheFreeBlockBehind) {
  const TlsfPool pool(4096);
  void* const block = brimful_tlsf_malloc(pool, 100);
  paint(block, 100, 2);
  EXPECT_EQ(brimful_tlsf_realloc(pool, block, 2000), block);
  EXPECT_TRUE(is_painted(block, 100, 2));
  EXPECT_EQ(pool.stats().used, 2016);
  EXPECT_EQ(pool.stats().peak, 2016);
  EXPECT_EQ(brimful_tlsf_realloc(pool, block, 4096 - kEnds - 8), block) << "to the region's last byte";
  EXPECT_EQ(pool.stats().free_blocks, 0);
}

TEST(Tlsf, ReallocGrowsIntoTheFreeBlockInFrontAndKeepsTheContent) {
  // In front alone, and with both neighbours.
  for (const bool both : {false, true}) {
    const TlsfPool pool(4096);
    void* const front = brimful_tlsf_malloc(pool, 1000);
    void* const block = brimful_tlsf_malloc(pool, 500);
    void* const behind = brimful_tlsf_malloc(pool, 600);
    void* const rest = brimful_tlsf_malloc(pool, pool.stats().largest_free);
    paint(block, 500, 3);
    brimful_tlsf_free(pool, front);
    if (both) brimful_tlsf_free(pool, behind);
    const std::size_t wanted = both ? 2000 : 1400;
    EXPECT_EQ(brimful_tlsf_realloc(pool, block, wanted), front);
    EXPECT_TRUE(is_painted(front, 500, 3));
    EXPECT_GE(brimful_tlsf_usable_size(front), wanted);
    EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
    EXPECT_EQ(pool.stats().live_blocks, both ? 2 : 3);
    brimful_tlsf_free(pool, rest);
  }
}

TEST(Tlsf, ReallocMovesWhenItMustAndFreesTheOldPlace) {
  const TlsfPool pool(4096);
  void* const block = brimful_tlsf_malloc(pool, 500);
  void* const fence = brimful_tlsf_malloc(pool, 24);
  paint(block, 500, 4);
  void* const moved = brimful_tlsf_realloc(pool, block, 600);
  EXPECT_GT(moved, fence);
  EXPECT_TRUE(is_painted(moved, 500, 4));
  EXPECT_EQ(pool.stats().live_blocks, 2);
  EXPECT_EQ(brimful_tlsf_malloc(pool, 500), block) << "the old place is free";
}

TEST(Tlsf, ReallocThatFailsLeavesTheBlock) {
  const TlsfPool pool(4096);
  void* const block = brimful_tlsf_malloc(pool, 500);
  paint(block, 500, 5);
  const auto before = pool.stats();
  EXPECT_EQ(brimful_tlsf_realloc(pool, block, 5000), nullptr);
  EXPECT_EQ(brimful_tlsf_realloc(pool, block, unseen(SIZE_MAX)), nullptr);
  EXPECT_TRUE(is_painted(block, 500, 5));
  EXPECT_EQ(pool.stats().used, before.used);
}

TEST(Tlsf, StatisticsAddUp) {
  const TlsfPool pool(65536);
  std::vector<void*> blocks = pool.fill(200);
  EXPECT_EQ(pool.stats().peak, pool.stats().used);
  for (std::size_t i = 0; i < blocks.size(); i += 2) brimful_tlsf_free(pool, blocks[i]);
  const auto stats = pool.stats();
  EXPECT_EQ(stats.live_blocks, blocks.size() / 2);
  EXPECT_EQ(stats.used, blocks.size() / 2 * 208);
  EXPECT_GE(stats.peak, 2 * stats.used);
  EXPECT_GT(stats.free_blocks, blocks.size() / 2 - 1);
  EXPECT_GT(stats.fragmentation, 0.98);
  EXPECT_LT(stats.fragmentation, 1);
}

TEST(Tlsf, LargestFreeSucceedsAndOneByteMoreFails) {
  const TlsfPool pool(1 << 20);
  std::uint64_t random = 1;
  std::vector<void*> blocks;
  for (int i = 0; i < 3000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    if ((random >> 60) < 10 || blocks.empty()) {
      blocks.push_back(brimful_tlsf_malloc(pool, (random >> 40) % 3000));
      if (blocks.back() == nullptr) blocks.pop_back();
    } else {
      std::swap(blocks[(random >> 30) % blocks.size()], blocks.back());
      brimful_tlsf_free(pool, blocks.back());
      blocks.pop_back();
    }
    const std::size_t largest = pool.stats().largest_free;
    if (largest == 0) continue;
    EXPECT_EQ(brimful_tlsf_malloc(pool, largest + 1), nullptr);
    void* const block = brimful_tlsf_malloc(pool, largest);
    EXPECT_NE(block, nullptr);
    brimful_tlsf_free(pool, block);
  }
}

TEST(Tlsf, StatisticsFillNoMoreThanTheCallerKnows) {
  const TlsfPool pool(4096);
  brimful_tlsf_stats stats{};
  stats.size = offsetof(brimful_tlsf_stats, peak);
  stats.peak = 12345;
  brimful_tlsf_get_stats(pool, &stats);
  EXPECT_EQ(stats.total, 4096);
  EXPECT_EQ(stats.peak, 12345);
  EXPECT_EQ(stats.size, offsetof(brimful_tlsf_stats, peak));
}

struct Seen {
  std::vector<void*> blocks;
  std::size_t live = 0;
  std::size_t bytes = 0;
  std::size_t most = SIZE_MAX;
};

bool note(void* context, void* block, std::size_t bytes, bool live) {
  auto* const seen = static_cast<Seen*>(context);
  seen->blocks.push_back(block);
  seen->live += live ? 1 : 0;
  seen->bytes += bytes + 8;
  return seen->blocks.size() < seen->most;
}

TEST(Tlsf, WalkVisitsEachBlockInOrderAndStopsWhenTold) {
  const TlsfPool pool(4096);
  void* const a = brimful_tlsf_malloc(pool, 100);
  void* const b = brimful_tlsf_malloc(pool, 100);
  void* const c = brimful_tlsf_malloc(pool, 100);
  brimful_tlsf_free(pool, b);
  Seen seen;
  brimful_tlsf_walk(pool, note, &seen);
  ASSERT_EQ(seen.blocks.size(), 4);
  EXPECT_EQ(seen.blocks[0], a);
  EXPECT_EQ(seen.blocks[1], b);
  EXPECT_EQ(seen.blocks[2], c);
  EXPECT_EQ(seen.live, 2);
  EXPECT_EQ(seen.bytes, 4096 - kEnds);
  Seen two;
  two.most = 2;
  brimful_tlsf_walk(pool, note, &two);
  EXPECT_EQ(two.blocks.size(), 2);
}

TEST(Tlsf, ResetForgetsEachBlockAndKeepsThePeak) {
  const TlsfPool pool(4096);
  pool.fill(64);
  const std::size_t peak = pool.stats().peak;
  brimful_tlsf_reset(pool);
  EXPECT_EQ(pool.stats().live_blocks, 0);
  EXPECT_EQ(pool.stats().used, 0);
  EXPECT_EQ(pool.stats().peak, peak);
  EXPECT_EQ(pool.stats().largest_free, 4096 - kEnds - 8);
  EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
}

}  // namespace
