// SPDX-License-Identifier: MIT
//
// TLSF: creating pools, regions that come and go, and the arena that grows through a callback, also one that refuses.
#include "tlsf_fixture.h"

namespace {

TEST(TlsfRegions, CreateWorksAtEachAlignmentAndUsesAllBytes) {
  alignas(64) std::byte memory[32768];
  for (std::size_t skip = 0; skip < 20; ++skip) {
    brimful_tlsf* const pool = brimful_tlsf_create(memory + skip, sizeof(memory) - skip);
    ASSERT_NE(pool, nullptr);
    EXPECT_TRUE(is_aligned(pool, 16));
    const auto stats = stats_of(pool);
    EXPECT_EQ(stats.regions, 1);
    EXPECT_GE(stats.total + brimful_tlsf_control_bytes() + 2 * 16, sizeof(memory) - skip);
    void* const block = brimful_tlsf_malloc(pool, stats.largest_free);
    std::memset(block, 1, stats.largest_free);
    EXPECT_LE(static_cast<std::byte*>(block) + stats.largest_free, memory + sizeof(memory));
    EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
  }
}

TEST(TlsfRegions, CreateRefusesTooFewBytesAndNull) {
  std::vector<std::byte> memory(65536);
  EXPECT_EQ(brimful_tlsf_create(nullptr, 65536), nullptr);
  EXPECT_EQ(brimful_tlsf_create(memory.data(), brimful_tlsf_control_bytes() - 1), nullptr);
  brimful_tlsf* const pool = brimful_tlsf_create(memory.data(), brimful_tlsf_control_bytes());
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(stats_of(pool).regions, 0);
  EXPECT_EQ(brimful_tlsf_malloc(pool, 0), nullptr);
  EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
}

TEST(TlsfRegions, ControlStructureIsAboutEightKibibytes) {
  EXPECT_GT(brimful_tlsf_control_bytes(), 7000);
  EXPECT_LT(brimful_tlsf_control_bytes(), 8192);
}

TEST(TlsfRegions, AddRefusesWhatIsTooSmallOrTooLarge) {
  const TlsfPool pool(0);
  alignas(16) std::byte memory[256];
  EXPECT_FALSE(brimful_tlsf_add_region(pool, nullptr, 4096));
  EXPECT_FALSE(brimful_tlsf_add_region(pool, memory, 63));
  EXPECT_FALSE(brimful_tlsf_add_region(pool, memory + 1, 64));
  EXPECT_FALSE(brimful_tlsf_add_region(pool, memory, BRIMFUL_TLSF_MOST_BYTES + 1));
  EXPECT_FALSE(brimful_tlsf_add_region(pool, memory, SIZE_MAX));
  EXPECT_TRUE(brimful_tlsf_add_region(pool, memory, 64));
  EXPECT_NE(brimful_tlsf_malloc(pool, 24), nullptr);
  EXPECT_EQ(brimful_tlsf_malloc(pool, 24), nullptr);
  brimful_tlsf_reset(pool);
  EXPECT_TRUE(brimful_tlsf_remove_region(pool, memory));
}

TEST(TlsfRegions, RegionsThatTouchAreNotJoined) {
  const TlsfPool pool(0);
  alignas(16) std::byte memory[2048];
  EXPECT_TRUE(brimful_tlsf_add_region(pool, memory, 1024));
  EXPECT_TRUE(brimful_tlsf_add_region(pool, memory + 1024, 1024));
  EXPECT_EQ(brimful_tlsf_malloc(pool, 1024), nullptr);
  void* const a = brimful_tlsf_malloc(pool, 900);
  void* const b = brimful_tlsf_malloc(pool, 900);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(b, nullptr);
  EXPECT_FALSE(brimful_tlsf_remove_region(pool, memory)) << "a block in it is live";
  EXPECT_FALSE(brimful_tlsf_remove_region(pool, memory + 1024));
  brimful_tlsf_free(pool, a);
  brimful_tlsf_free(pool, b);
  EXPECT_FALSE(brimful_tlsf_remove_region(pool, memory + 512)) << "no such region";
  EXPECT_TRUE(brimful_tlsf_remove_region(pool, memory));
  EXPECT_FALSE(brimful_tlsf_remove_region(pool, memory)) << "not twice";
  EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
  EXPECT_EQ(pool.stats().total, 1024);
  EXPECT_TRUE(brimful_tlsf_remove_region(pool, memory + 1024));
  EXPECT_EQ(pool.stats().regions, 0);
  EXPECT_EQ(pool.stats().free_blocks, 0);
}

TEST(TlsfRegions, RegionsAreRemovedInAnyOrder) {
  constexpr int kOrders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : kOrders) {
    const TlsfPool pool(4096);
    std::byte memory[3][512];
    for (auto& region : memory) EXPECT_TRUE(brimful_tlsf_add_region(pool, region + 1, sizeof(region) - 1));
    for (const int i : order) {
      EXPECT_TRUE(brimful_tlsf_remove_region(pool, memory[i] + 1)) << "named as it was added";
      EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
    }
    EXPECT_EQ(pool.stats().regions, 1);
  }
}

TEST(TlsfRegions, TheFirstRegionIsNamedByThePoolsMemory) {
  std::vector<std::byte> memory(65536);
  brimful_tlsf* const pool = brimful_tlsf_create(memory.data() + 3, memory.size() - 3);
  void* const block = brimful_tlsf_malloc(pool, 100);
  EXPECT_FALSE(brimful_tlsf_remove_region(pool, memory.data() + 3));
  brimful_tlsf_free(pool, block);
  EXPECT_TRUE(brimful_tlsf_remove_region(pool, memory.data() + 3));
  EXPECT_FALSE(brimful_tlsf_remove_region(pool, memory.data() + 3));
  EXPECT_EQ(stats_of(pool).total, 0);
}

// An arena in a buffer; refuses when told to, and beyond the buffer's end. What it takes away it overwrites, as if it were
// gone.
struct Arena {
  std::vector<std::byte> memory = std::vector<std::byte>(std::size_t{1} << 20);
  std::size_t skip = 0;
  std::size_t bytes = 0;
  int calls = 0;
  bool refuses = false;
  bool moves = false;

  static void* resize(void* context, std::size_t bytes) {
    auto* const arena = static_cast<Arena*>(context);
    ++arena->calls;
    EXPECT_EQ(bytes % 4096, 0);
    if (arena->refuses || bytes + arena->skip > arena->memory.size()) return nullptr;
    std::byte* const start = arena->memory.data() + arena->skip;
    if (bytes < arena->bytes) std::memset(start + bytes, 0xEE, arena->bytes - bytes);
    arena->bytes = bytes;
    return arena->moves ? start + 64 : start;
  }
};

class TlsfArena : public testing::Test {
 protected:
  void SetUp() override {
    pool = brimful_tlsf_create_growable(control.data(), control.size(), Arena::resize, &arena);
    ASSERT_NE(pool, nullptr);
  }
  void TearDown() override { check(); }
  void check() const { EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr); }

  std::vector<std::byte> control = std::vector<std::byte>(brimful_tlsf_control_bytes());
  Arena arena;
  brimful_tlsf* pool = nullptr;
};

TEST_F(TlsfArena, CreateNeedsACallbackAndRoom) {
  EXPECT_EQ(brimful_tlsf_create_growable(control.data(), control.size(), nullptr, nullptr), nullptr);
  EXPECT_EQ(brimful_tlsf_create_growable(control.data(), 100, Arena::resize, nullptr), nullptr);
  EXPECT_EQ(arena.calls, 0) << "the arena begins empty";
}

TEST_F(TlsfArena, GrowsWhenNothingFitsAndGivesAllBackWhenNothingIsLive) {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) {
    blocks.push_back(brimful_tlsf_malloc(pool, 1000));
    ASSERT_NE(blocks.back(), nullptr);
    paint(blocks.back(), 1000, i);
    check();
  }
  EXPECT_GE(arena.bytes, 100 * 1008);
  EXPECT_LE(arena.bytes, 100 * 1008 + 2 * 4096);
  EXPECT_EQ(stats_of(pool).regions, 1);
  EXPECT_EQ(stats_of(pool).total, arena.bytes);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(is_painted(blocks[i], 1000, i));
    brimful_tlsf_free(pool, blocks[i]);
    check();
  }
  EXPECT_EQ(arena.bytes, 0);
  EXPECT_EQ(stats_of(pool).regions, 0);
  EXPECT_NE(brimful_tlsf_malloc(pool, 5000), nullptr) << "begins anew";
}

TEST_F(TlsfArena, ShrinksFromItsEndDownToTheLastLiveBlock) {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(brimful_tlsf_malloc(pool, 1000));
  while (blocks.size() > 1) {
    brimful_tlsf_free(pool, blocks.back());
    blocks.pop_back();
    EXPECT_LE(arena.bytes, blocks.size() * 1008 + 2 * 4096);
    check();
  }
}

TEST_F(TlsfArena, RefusedGrowthFailsTheRequestAndChangesNothing) {
  void* const block = brimful_tlsf_malloc(pool, 1000);
  paint(block, 1000, 1);
  arena.refuses = true;
  EXPECT_EQ(brimful_tlsf_malloc(pool, 100000), nullptr);
  EXPECT_EQ(brimful_tlsf_realloc(pool, block, 100000), nullptr);
  EXPECT_EQ(brimful_tlsf_aligned_alloc(pool, 8192, 10), nullptr);
  EXPECT_TRUE(is_painted(block, 1000, 1));
  check();
  arena.refuses = false;
  EXPECT_NE(brimful_tlsf_malloc(pool, 100000), nullptr);
  EXPECT_EQ(brimful_tlsf_malloc(pool, 2 << 20), nullptr) << "more than there is";
  EXPECT_EQ(brimful_tlsf_malloc(pool, unseen(BRIMFUL_TLSF_MOST_BYTES - 64)), nullptr);
}

TEST_F(TlsfArena, RefusedShrinkingLeavesTheArenaAsItIs) {
  void* const first = brimful_tlsf_malloc(pool, 1000);
  void* const last = brimful_tlsf_malloc(pool, 100000);
  const std::size_t bytes = arena.bytes;
  arena.refuses = true;
  brimful_tlsf_free(pool, last);
  EXPECT_EQ(stats_of(pool).total, bytes);
  check();
  EXPECT_EQ(brimful_tlsf_malloc(pool, 90000), last) << "and is still used";
  arena.refuses = false;
  brimful_tlsf_free(pool, last);
  EXPECT_LE(arena.bytes, 8192);
  brimful_tlsf_free(pool, first);
}

TEST_F(TlsfArena, RefusesAnArenaThatMoved) {
  void* const block = brimful_tlsf_malloc(pool, 1000);
  arena.moves = true;
  EXPECT_EQ(brimful_tlsf_malloc(pool, 100000), nullptr);
  check();
  arena.moves = false;
  brimful_tlsf_free(pool, block);
}

TEST_F(TlsfArena, WorksWhereTheArenaIsNotAligned) {
  arena.skip = 5;
  void* const a = brimful_tlsf_malloc(pool, 4000);
  void* const b = brimful_tlsf_malloc(pool, 4000);
  EXPECT_TRUE(is_aligned(a, 16) && is_aligned(b, 16));
  std::memset(b, 1, brimful_tlsf_usable_size(b));
  check();
  brimful_tlsf_free(pool, b);
  check();
  brimful_tlsf_free(pool, a);
  EXPECT_EQ(arena.bytes, 0);
}

TEST_F(TlsfArena, ReallocOfTheLastBlockGrowsTheArenaAndStays) {
  void* const block = brimful_tlsf_malloc(pool, 1000);
  paint(block, 1000, 1);
  EXPECT_EQ(brimful_tlsf_realloc(pool, block, 50000), block);
  EXPECT_TRUE(is_painted(block, 1000, 1));
  check();
  EXPECT_EQ(brimful_tlsf_realloc(pool, block, 100), block);
  EXPECT_EQ(arena.bytes, 4096) << "and shrinks it";
}

TEST_F(TlsfArena, AlignedAllocGrowsTheArena) {
  void* const block = brimful_tlsf_aligned_alloc(pool, 65536, 100);
  EXPECT_TRUE(is_aligned(block, 65536));
  check();
  brimful_tlsf_free(pool, block);
  EXPECT_EQ(arena.bytes, 0);
}

TEST_F(TlsfArena, LivesBesideRegionsAndCannotBeRemovedByHand) {
  std::byte memory[4096];
  EXPECT_TRUE(brimful_tlsf_add_region(pool, memory, sizeof(memory)));
  void* const inside = brimful_tlsf_malloc(pool, 3000);
  EXPECT_EQ(arena.calls, 0) << "the region had room";
  void* const beyond = brimful_tlsf_malloc(pool, 3000);
  EXPECT_GT(arena.bytes, 0);
  EXPECT_EQ(stats_of(pool).regions, 2);
  std::byte late[4096];
  EXPECT_TRUE(brimful_tlsf_add_region(pool, late, sizeof(late)));
  check();
  EXPECT_TRUE(brimful_tlsf_remove_region(pool, late));
  brimful_tlsf_free(pool, inside);
  EXPECT_TRUE(brimful_tlsf_remove_region(pool, memory));
  EXPECT_FALSE(brimful_tlsf_remove_region(pool, arena.memory.data()));
  check();
  brimful_tlsf_free(pool, beyond);
  EXPECT_EQ(arena.bytes, 0);
}

TEST_F(TlsfArena, ResetGivesTheArenaBack) {
  brimful_tlsf_malloc(pool, 50000);
  brimful_tlsf_malloc(pool, 50000);
  brimful_tlsf_reset(pool);
  EXPECT_EQ(arena.bytes, 0);
  EXPECT_EQ(stats_of(pool).regions, 0);
  EXPECT_NE(brimful_tlsf_malloc(pool, 50000), nullptr);
}

TEST_F(TlsfArena, RandomWorkWithACallbackThatRefusesAtTimesLosesNothing) {
  struct Live {
    void* block;
    std::size_t bytes;
    int seed;
  };
  std::vector<Live> live;
  std::uint64_t random = 7;
  for (int i = 0; i < 20000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    arena.refuses = (random >> 20) % 4 == 0;
    const std::size_t bytes = 1 + (random >> 33) % ((random >> 28) % 8 == 0 ? 9000 : 300);
    const auto kind = (random >> 57) % 4;
    if (kind < 2 || live.empty()) {
      void* const block =
          (random >> 24) % 8 == 0 ? brimful_tlsf_aligned_alloc(pool, 256, bytes) : brimful_tlsf_malloc(pool, bytes);
      if (block == nullptr) continue;
      paint(block, bytes, i);
      live.push_back({block, bytes, i});
    } else {
      std::swap(live[(random >> 12) % live.size()], live.back());
      Live& one = live.back();
      ASSERT_TRUE(is_painted(one.block, one.bytes, one.seed));
      if (kind == 2) {
        void* const block = brimful_tlsf_realloc(pool, one.block, bytes);
        if (block == nullptr) continue;
        ASSERT_TRUE(is_painted(block, std::min(bytes, one.bytes), one.seed));
        paint(block, bytes, i);
        one = {block, bytes, i};
      } else {
        brimful_tlsf_free(pool, one.block);
        live.pop_back();
      }
      while (live.size() > 60) {
        brimful_tlsf_free(pool, live.back().block);
        live.pop_back();
      }
    }
    ASSERT_EQ(brimful_tlsf_check(pool, nullptr), nullptr) << i;
  }
  arena.refuses = false;
  for (const Live& one : live) brimful_tlsf_free(pool, one.block);
}

}  // namespace
