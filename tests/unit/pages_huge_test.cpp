// SPDX-License-Identifier: MIT
//
// pages/huge.h on an instance of its own, over a system that fails on demand.
#include "pages/huge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "fake_os.h"

namespace brimful::pages {
namespace {

using testing::Call;
using testing::FakeOs;

using Block = brimful::Run;  // Test::Run hides the name

class HugeBlocksTest : public ::testing::Test {
 protected:
  HugeBlocksTest() { arena_.free(arena_.allocate(sizeof(Block)), sizeof(Block)); }  // the arena's own mapping first
  ~HugeBlocksTest() override { os_.unmap_everything(); }

  // Bytes that are mapped for blocks.
  std::size_t mapped() { return os_.mapped_bytes() - arena_.mapped_bytes(); }

  FakeOs os_;
  meta::Arena arena_{nullptr};
  HugeBlocks huge_{arena_};
  const std::size_t page_ = os::page_bytes();
};

char* bytes_of(const Block* block) { return reinterpret_cast<char*>(block->start); }

TEST_F(HugeBlocksTest, LieOnTheAlignmentAndMapNoMoreThanTheirPages) {
  for (std::size_t alignment = 16; alignment <= std::size_t{1} << 32; alignment *= 4) {
    for (const std::size_t bytes : {std::size_t{1}, page_, page_ * 5 + 1, std::size_t{3} << 20}) {
      Block* block = huge_.allocate(bytes, alignment);
      ASSERT_NE(block, nullptr) << bytes << " on " << alignment;
      EXPECT_EQ(block->start % alignment, 0U);
      EXPECT_EQ(block->bytes, round_up(bytes, page_));
      EXPECT_EQ(block->kind, Kind::kHuge);
      EXPECT_EQ(mapped(), block->bytes) << "padding stayed mapped";
      bytes_of(block)[0] = 1;
      bytes_of(block)[block->bytes - 1] = 1;
      huge_.free(block);
      EXPECT_EQ(mapped(), 0U);
    }
  }
}

TEST_F(HugeBlocksTest, AreFoundByAnyOfTheirBytesAndNoOther) {
  std::mt19937_64 random(6);
  std::vector<Block*> blocks;
  for (int i = 0; i < 200; ++i) {
    blocks.push_back(huge_.allocate(page_ * (1 + random() % 8), page_ << random() % 6));
    if (i % 3 == 0) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      huge_.free(blocks.back());
      blocks.pop_back();
    }
  }
  const auto owner = [&blocks](std::uint64_t address) -> const Block* {
    const auto holds = [address](const Block* b) { return address - b->start < b->bytes; };
    const auto found = std::find_if(blocks.begin(), blocks.end(), holds);
    return found != blocks.end() ? *found : nullptr;
  };
  std::size_t sum = 0;
  for (const Block* block : blocks) {
    for (const std::uint64_t at : {block->start - 1, block->start, block->start + random() % block->bytes,
                                   block->start + block->bytes - 1, block->start + block->bytes}) {
      ASSERT_EQ(huge_.find(at), owner(at));
    }
    sum += block->bytes;
  }
  EXPECT_EQ(huge_.find(0), nullptr);
  EXPECT_EQ(huge_.find(UINT64_MAX), nullptr);
  EXPECT_EQ(huge_.count(), blocks.size());
  EXPECT_EQ(huge_.used_bytes(), sum);
}

TEST_F(HugeBlocksTest, KeepTheirContentsWhenResized) {
  Block* block = huge_.allocate(page_ * 4, page_);
  std::memset(bytes_of(block), 'x', page_ * 4);
  huge_.allocate(page_, page_);  // often right behind or before it: growth has to move
  for (const std::size_t pages : {std::size_t{5}, std::size_t{900}, std::size_t{2}, std::size_t{2}, std::size_t{64}}) {
    ASSERT_TRUE(huge_.resize(block, page_ * pages - 5));
    EXPECT_EQ(block->bytes, page_ * pages);
    EXPECT_EQ(huge_.find(block->start + block->bytes - 1), block);
    EXPECT_EQ(huge_.used_bytes(), page_ * (pages + 1));
    EXPECT_EQ(mapped(), page_ * (pages + 1));
    EXPECT_EQ(std::count(bytes_of(block), bytes_of(block) + 2 * page_, 'x'), static_cast<long>(2 * page_));
    EXPECT_EQ(bytes_of(block)[block->bytes - 1], pages == 2 ? 'x' : 0);
  }
}

TEST_F(HugeBlocksTest, RefuseSizesThatOverflow) {
  EXPECT_EQ(huge_.allocate(SIZE_MAX, 16), nullptr);
  EXPECT_EQ(huge_.allocate(SIZE_MAX - page_, std::size_t{1} << 40), nullptr);
  EXPECT_EQ(huge_.allocate(std::size_t{1} << 62, 16), nullptr) << "no address space is so large";
  Block* block = huge_.allocate(page_, 16);
  EXPECT_FALSE(huge_.resize(block, SIZE_MAX));
  EXPECT_FALSE(huge_.resize(block, std::size_t{1} << 62));
  EXPECT_EQ(block->bytes, page_);
  EXPECT_EQ(mapped(), page_);
}

TEST_F(HugeBlocksTest, ChangeNothingWhenACallFails) {
  Block* live = huge_.allocate(page_ * 2, 16);
  bytes_of(live)[0] = 'x';
  for (const std::size_t alignment : {std::size_t{16}, std::size_t{1} << 21}) {
    os_.fail(alignment > page_ ? Call::kReserve : Call::kMap, 1);
    EXPECT_EQ(huge_.allocate(page_, alignment), nullptr);
    EXPECT_EQ(os_.succeed(), 1U);
    EXPECT_EQ(mapped(), live->bytes);
  }
  os_.fail(Call::kCommit, 1);
  EXPECT_EQ(huge_.allocate(page_, std::size_t{1} << 21), nullptr);
  EXPECT_EQ(os_.succeed(), 1U);
  EXPECT_EQ(mapped(), live->bytes) << "an aligned block that can't be committed leaves its reservation";
  os_.fail(Call::kResize, 1);
  const std::uint64_t start = live->start;
  EXPECT_FALSE(huge_.resize(live, page_ * 50));
  EXPECT_EQ(os_.succeed(), 1U);
  EXPECT_EQ(live->start, start);
  EXPECT_EQ(live->bytes, page_ * 2);
  EXPECT_EQ(huge_.find(start), live);
  EXPECT_EQ(bytes_of(live)[0], 'x');
  EXPECT_EQ(huge_.count(), 1U);
  EXPECT_EQ(huge_.used_bytes(), page_ * 2);
}

TEST_F(HugeBlocksTest, GiveTheMemoryBackWhereTheAddressesCanNotGo) {
  Block* block = huge_.allocate(page_ * 4, 16);
  const std::uint64_t start = block->start;
  os_.fail(Call::kUnmap, 1);
  huge_.free(block);
  EXPECT_EQ(os_.succeed(), 1U);
  EXPECT_EQ(os_.log(Call::kPurge), (std::vector<testing::Range>{{start, page_ * 4}}));
  EXPECT_EQ(huge_.find(start), nullptr);
  EXPECT_EQ(huge_.count(), 0U);
}

TEST_F(HugeBlocksTest, ServeASecondTimeWhatIsAtMostAQuarterTooLong) {
  Block* block = huge_.allocate(page_ * 100, 16);
  const std::uint64_t start = block->start;
  huge_.keep(block, 1);
  EXPECT_EQ(huge_.used_bytes(), 0U);
  EXPECT_EQ(huge_.kept_bytes(), page_ * 100);
  EXPECT_EQ(huge_.find(start), nullptr) << "a kept block is no block";
  Block* shorter = huge_.allocate(page_ * 79, 16);
  EXPECT_NE(shorter->start, start);
  EXPECT_FALSE(shorter->dirty);
  Block* again = huge_.allocate(page_ * 80, 16);
  EXPECT_EQ(again->start, start);
  EXPECT_TRUE(again->dirty) << "its pages hold what the one before wrote";
  EXPECT_EQ(again->bytes, page_ * 80);
  EXPECT_EQ(huge_.kept_bytes(), 0U);
  EXPECT_EQ(mapped(), page_ * (79 + 80)) << "the rest stayed mapped";
}

TEST_F(HugeBlocksTest, GoWhenTheyHaveBeenKeptLongEnoughSliceBySlice) {
  huge_.keep(huge_.allocate(page_ * 10, 16), 100);
  huge_.keep(huge_.allocate(page_ * 20, 16), 200);
  EXPECT_EQ(huge_.give_back(99, SIZE_MAX), 0U);
  EXPECT_EQ(huge_.give_back(100, page_ * 4), page_ * 4);
  EXPECT_EQ(mapped(), page_ * 26);
  EXPECT_EQ(huge_.give_back(100, SIZE_MAX), page_ * 6);
  EXPECT_EQ(huge_.kept_bytes(), page_ * 20);
  EXPECT_EQ(huge_.give_back(UINT64_MAX, SIZE_MAX), page_ * 20);
  EXPECT_EQ(mapped(), 0U);
}

TEST_F(HugeBlocksTest, AreNotKeptAboveTheMostNorWhenTheSystemRefusesMemory) {
  huge_.keep(huge_.allocate(HugeBlocks::kMostKept + page_, 16), 1);
  EXPECT_EQ(huge_.kept_bytes(), 0U);
  for (int i = 0; i < 3; ++i) huge_.keep(huge_.allocate(HugeBlocks::kMostKept / 2 - page_, 16), 1);
  EXPECT_LE(huge_.kept_bytes(), HugeBlocks::kMostKept);
  os_.fail(Call::kMap, 1);
  Block* block = huge_.allocate(page_, 16);
  EXPECT_EQ(os_.succeed(), 1U);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(huge_.kept_bytes(), 0U);
  EXPECT_EQ(mapped(), page_);
}

TEST_F(HugeBlocksTest, NeedNoSystemCallWhereTheHeaderIsRefused) {
  os_.fail(Call::kMap, 1, FakeOs::kAlways);
  while (arena_.allocate(sizeof(Block)) != nullptr) {
  }
  os_.reset();
  EXPECT_EQ(huge_.allocate(page_, 16), nullptr);
  EXPECT_EQ(os_.total(), 1U) << "the arena's own attempt";
}

}  // namespace
}  // namespace brimful::pages
