// SPDX-License-Identifier: MIT
//
// The page pool call by call: sizes, joining, pages that come and go, misuse, a host that fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "brimful/pagepool.h"
#include "pools/page_pool/block.h"
#include "test_host.h"

namespace brimful::pools {
namespace {

class PagePool : public testing::TestWithParam<std::size_t> {
 protected:
  PagePool() : host_(GetParam()), pool_(brimful_page_pool_create(host_.table())) {}
  ~PagePool() override {
    brimful_page_pool_destroy(pool_);
    EXPECT_EQ(host_.bytes(), 0);
    EXPECT_FALSE(host_.has_fault());
  }

  brimful_page_pool_stats stats() {
    brimful_page_pool_stats stats{};
    stats.size = sizeof stats;
    brimful_page_pool_get_stats(pool_, &stats);
    return stats;
  }
  char* allocate(std::size_t bytes) { return static_cast<char*>(brimful_page_pool_malloc(pool_, bytes)); }
  bool release(void* pointer) { return brimful_page_pool_free(pool_, pointer); }
  void expect_sound() { EXPECT_STREQ(brimful_page_pool_check(pool_, nullptr), nullptr); }
  std::size_t page_bytes() { return GetParam(); }

  TestHost host_;
  brimful_page_pool* pool_;
};

INSTANTIATE_TEST_SUITE_P(Bytes, PagePool, testing::Values(4096, 8192, 65536), testing::PrintToStringParamName());

TEST_P(PagePool, GivesEachSizeAlignedInsideOnePageAndTakesItBack) {
  for (std::size_t bytes = 0; bytes <= brimful_page_pool_most_bytes(pool_); bytes += bytes < 200 ? 1 : 61) {
    char* block = allocate(bytes);
    ASSERT_NE(block, nullptr) << bytes;
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    EXPECT_EQ(address % BRIMFUL_PAGE_POOL_ALIGNMENT, 0);
    const std::size_t usable = brimful_page_pool_usable_size(pool_, block);
    EXPECT_GE(usable, bytes);
    EXPECT_LE(usable, bytes + 12);
    EXPECT_EQ(address / page_bytes(), (address + usable) / page_bytes());
    std::memset(block, 0xFF, usable);
    expect_sound();
    EXPECT_TRUE(release(block));
    EXPECT_EQ(stats().pages, 0);
  }
}

TEST_P(PagePool, RefusesMoreThanAPage) {
  const std::size_t most = brimful_page_pool_most_bytes(pool_);
  EXPECT_EQ(most, page_bytes() - 12);
  void* largest = allocate(most);
  EXPECT_NE(largest, nullptr);
  EXPECT_EQ(allocate(most + 1), nullptr);
  volatile std::size_t huge = SIZE_MAX;
  EXPECT_EQ(allocate(huge), nullptr);
  EXPECT_TRUE(release(largest));
}

TEST_P(PagePool, TakesThePageThatFitsBest) {
  // Holes of 48 and 112 bytes, in this order.
  char* blocks[6];
  const std::size_t sizes[] = {44, 12, 108, 12, 76, 12};
  for (int i = 0; i < 6; ++i) blocks[i] = allocate(sizes[i]);
  EXPECT_TRUE(release(blocks[0]));
  EXPECT_TRUE(release(blocks[2]));
  EXPECT_TRUE(release(blocks[4]));
  EXPECT_EQ(allocate(70), blocks[4]);
  EXPECT_EQ(allocate(40), blocks[0]);
  EXPECT_EQ(allocate(40), blocks[2]);
  EXPECT_EQ(allocate(50), blocks[2] + 48);
  expect_sound();
}

TEST_P(PagePool, JoinsWithBothNeighboursWhateverTheOrder) {
  std::vector<int> order{0, 1, 2, 3};
  do {
    std::vector<char*> blocks;
    blocks.reserve(5);
    for (int i = 0; i < 5; ++i) blocks.push_back(allocate(100));
    for (const int i : order) {
      EXPECT_TRUE(release(blocks[static_cast<std::size_t>(i)]));
      expect_sound();
    }
    EXPECT_EQ(stats().free_blocks, 2);
    EXPECT_EQ(stats().live_blocks, 1);
    EXPECT_TRUE(release(blocks[4]));
    EXPECT_EQ(stats().pages, 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(PagePool, GivesEachPageBackWithItsLastBlockAndTheTableShrinks) {
  const std::size_t half = page_bytes() / 2 - 12;
  std::vector<char*> blocks;
  const std::size_t at_first = stats().metadata_bytes;
  blocks.reserve(4000);
  for (int i = 0; i < 4000; ++i) blocks.push_back(allocate(half));
  const brimful_page_pool_stats full = stats();
  EXPECT_EQ(full.pages, 2000);
  EXPECT_EQ(full.gets, 2000);
  EXPECT_LE(full.metadata_bytes, 4 * page_bytes() + 32000);
  expect_sound();
  std::mt19937 random(1);
  std::shuffle(blocks.begin(), blocks.end(), random);
  std::set<std::uintptr_t> pages;
  for (char* block : blocks) pages.insert(reinterpret_cast<std::uintptr_t>(block) / page_bytes());
  std::map<std::uintptr_t, int> live;
  for (char* block : blocks) ++live[reinterpret_cast<std::uintptr_t>(block) / page_bytes()];
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(blocks[i]) / page_bytes();
    EXPECT_TRUE(release(blocks[i]));
    if (--live[page] == 0) pages.erase(page);
    ASSERT_EQ(stats().pages, pages.size());
    if (i % 500 == 0) expect_sound();
  }
  EXPECT_EQ(stats().gives, 2000);
  EXPECT_EQ(stats().peak_pages, 2000);
  EXPECT_LE(stats().metadata_bytes, at_first + page_bytes());
}

TEST_P(PagePool, CountsWhatItHolds) {
  char* one = allocate(100);
  char* two = allocate(1);
  EXPECT_EQ(stats().live_blocks, 2);
  EXPECT_EQ(stats().used, 104 + 16);
  EXPECT_EQ(stats().free_blocks, 1);
  const std::uint64_t before = stats().lock.acquisitions;
  EXPECT_TRUE(release(one));
  EXPECT_EQ(stats().used, 16);
  EXPECT_EQ(stats().lock.acquisitions, before + 3);
  EXPECT_TRUE(release(two));
  EXPECT_EQ(stats().used, 0);
}

TEST_P(PagePool, RefusesForeignMisalignedAndInteriorPointers) {
  char* block = allocate(200);
  char* other = allocate(200);
  std::memset(block, 0, 200);
  brimful_page_pool* second = brimful_page_pool_create(host_.table());
  EXPECT_FALSE(brimful_page_pool_free(second, block));
  void* theirs = brimful_page_pool_malloc(second, 200);
  EXPECT_FALSE(release(theirs));
  brimful_page_pool_destroy(second);
  int local = 0;
  EXPECT_FALSE(release(&local));
  EXPECT_FALSE(release(reinterpret_cast<void*>(std::uintptr_t{8})));
  EXPECT_FALSE(release(reinterpret_cast<void*>(UINTPTR_MAX)));
  EXPECT_FALSE(release(reinterpret_cast<void*>(UINTPTR_MAX - 7)));
  for (int i = 1; i < 200; ++i) EXPECT_FALSE(release(block + i)) << i;
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(block) & ~(page_bytes() - 1);
  for (std::size_t offset = 0; offset < page_bytes(); ++offset) {
    void* pointer = reinterpret_cast<void*>(page + offset);
    if (pointer != block && pointer != other) {
      ASSERT_FALSE(release(pointer)) << offset;
    }
  }
  EXPECT_EQ(stats().live_blocks, 2);
  expect_sound();
  EXPECT_TRUE(release(nullptr));
  EXPECT_TRUE(release(block));
  EXPECT_TRUE(release(other));
}

TEST_P(PagePool, FindsADoubleFreeAsLongAsTheMemoryIsFree) {
  std::mt19937 random(2);
  std::vector<char*> live;
  std::set<char*> dead;
  // One long-lived block keeps its page; blocks of a few sizes come and go beside it.
  for (int turn = 0; turn < 3000; ++turn) {
    if (random() % 2 == 0 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      char* block = live.back();
      live.pop_back();
      EXPECT_TRUE(release(block));
      dead.insert(block);
      ASSERT_FALSE(release(block));
    } else {
      char* block = allocate(random() % 60);
      ASSERT_NE(block, nullptr);
      const std::size_t usable = brimful_page_pool_usable_size(pool_, block);
      std::memset(block, 0xFF, usable);
      // Handed out again: from the header on, which stands before the block.
      dead.erase(dead.lower_bound(block), dead.lower_bound(block + usable + 4));
      live.push_back(block);
    }
    if (turn % 16 == 0) {
      for (char* block : dead) ASSERT_FALSE(release(block));
      expect_sound();
    }
  }
}

TEST_P(PagePool, StaysSoundWhenTheHostFailsAtAnyCall) {
  for (std::size_t calls = 0; calls < 12; ++calls) {
    TestHost poor(page_bytes());
    poor.fail_after(calls);
    brimful_page_pool* pool = brimful_page_pool_create(poor.table());
    if (calls < 2) {
      EXPECT_EQ(pool, nullptr);
      EXPECT_EQ(poor.bytes(), 0);
      continue;
    }
    ASSERT_NE(pool, nullptr);
    std::vector<void*> blocks;
    const std::size_t most = brimful_page_pool_most_bytes(pool);
    while (void* block = brimful_page_pool_malloc(pool, most)) blocks.push_back(block);
    EXPECT_EQ(blocks.size(), calls < 3 ? 0 : calls - 3);
    EXPECT_STREQ(brimful_page_pool_check(pool, nullptr), nullptr);
    poor.fail_never();
    void* block = brimful_page_pool_malloc(pool, 1);
    EXPECT_NE(block, nullptr);
    EXPECT_STREQ(brimful_page_pool_check(pool, nullptr), nullptr);
    EXPECT_TRUE(brimful_page_pool_free(pool, block));
    for (void* each : blocks) EXPECT_TRUE(brimful_page_pool_free(pool, each));
    brimful_page_pool_destroy(pool);
    EXPECT_EQ(poor.bytes(), 0);
    EXPECT_FALSE(poor.has_fault());
  }
}

TEST(PagePoolTable, GrowsItsDirectoryAndFailsWithoutHarmWhenItCannot) {
  // 256 chunks of 256 pages are in the pool itself; the directory's first growth is one call more.
  constexpr std::size_t kPages = 65536;
  brimful_pool_host host = *brimful_pool_host_linux();
  struct Context {
    bool fail = false;
  } context;
  host.context = &context;
  host.get_pages = [](void* context, std::size_t bytes) {
    const bool fail = static_cast<Context*>(context)->fail;
    return fail ? nullptr : brimful_pool_host_linux()->get_pages(nullptr, bytes);
  };
  host.wait = nullptr;
  host.wake = nullptr;
  // Mappings that touch are one: the limit on their number is not reached.
  brimful_page_pool* pool = brimful_page_pool_create(&host);
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < kPages; ++i) {
    blocks.push_back(brimful_page_pool_malloc(pool, 4000));
    ASSERT_NE(blocks.back(), nullptr);
  }
  context.fail = true;
  EXPECT_EQ(brimful_page_pool_malloc(pool, 4000), nullptr);
  EXPECT_STREQ(brimful_page_pool_check(pool, nullptr), nullptr);
  context.fail = false;
  for (std::size_t i = 0; i < 1000; ++i) blocks.push_back(brimful_page_pool_malloc(pool, 4000));
  EXPECT_STREQ(brimful_page_pool_check(pool, nullptr), nullptr);
  std::reverse(blocks.begin(), blocks.end());
  for (void* block : blocks) ASSERT_TRUE(brimful_page_pool_free(pool, block));
  EXPECT_STREQ(brimful_page_pool_check(pool, nullptr), nullptr);
  brimful_page_pool_destroy(pool);
}

TEST(PagePoolBlock, LinksHoldEachAddressOf49BitsAndRefuseOthers) {
  using page_pool::Block;
  std::mt19937_64 random(5);
  Block block{};
  for (int turn = 0; turn < 10000; ++turn) {
    const auto spread = static_cast<std::int64_t>(random() << 15) >> 15;
    Block* const next = Block::at(static_cast<std::uintptr_t>(spread) & ~std::uintptr_t{3});
    Block* const previous = Block::at(reinterpret_cast<std::uintptr_t>(next) ^ random() % 4096 * 4);
    ASSERT_TRUE(Block::is_linkable(next));
    block.set_next(next);
    block.set_previous(previous);
    ASSERT_EQ(block.next(), next);
    ASSERT_EQ(block.previous(), previous);
    // What lies where a header may have been never says that it is live.
    ASSERT_TRUE(block.has_clear_bits());
    ASSERT_FALSE(Block::at(reinterpret_cast<std::uintptr_t>(&block.next_high))->is_live());
  }
  for (int bit = 48; bit < 64; ++bit) EXPECT_FALSE(Block::is_linkable(Block::at(std::uintptr_t{1} << bit))) << bit;
}

TEST(PagePoolBlock, PagesThatNoLinkReachesAreGivenBack) {
  TestHost host;
  host.hand_out(reinterpret_cast<void*>(std::uintptr_t{1} << 52));
  brimful_page_pool* pool = brimful_page_pool_create(host.table());
  // The third get_pages() is for the table of pages.
  EXPECT_EQ(brimful_page_pool_malloc(pool, 1), nullptr);
  EXPECT_STREQ(brimful_page_pool_check(pool, nullptr), nullptr);
  void* block = brimful_page_pool_malloc(pool, 1);
  EXPECT_NE(block, nullptr);
  EXPECT_TRUE(brimful_page_pool_free(pool, block));
  brimful_page_pool_destroy(pool);
  EXPECT_EQ(host.bytes(), 0);
  EXPECT_FALSE(host.has_fault());
}

TEST(PagePoolCreate, RefusesAHostThatIsNotUsable) {
  TestHost host;
  const brimful_pool_host good = *host.table();
  EXPECT_EQ(brimful_page_pool_create(nullptr), nullptr);
  for (const std::size_t bytes : {0, 2048, 4097, 6144, 131072}) {
    host.table()->page_bytes = bytes;
    EXPECT_EQ(brimful_page_pool_create(host.table()), nullptr);
  }
  *host.table() = good;
  host.table()->size = 8;
  EXPECT_EQ(brimful_page_pool_create(host.table()), nullptr);
  *host.table() = good;
  host.table()->get_pages = nullptr;
  EXPECT_EQ(brimful_page_pool_create(host.table()), nullptr);
  *host.table() = good;
  host.table()->wake = nullptr;
  EXPECT_EQ(brimful_page_pool_create(host.table()), nullptr);
  *host.table() = good;
  brimful_page_pool_destroy(nullptr);
}

}  // namespace
}  // namespace brimful::pools
