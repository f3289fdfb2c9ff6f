// SPDX-License-Identifier: MIT
//
// meta/arena.h on an instance of its own, over a system that fails on demand.
#include "meta/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "fake_os.h"

namespace brimful::meta {
namespace {

using testing::Call;
using testing::FakeOs;

bool is_zero(const void* memory, std::size_t bytes) {
  const auto* c = static_cast<const char*>(memory);
  return std::all_of(c, c + bytes, [](char value) { return value == 0; });
}

alignas(4096) char spare[65536];
int spare_left = 0;
std::uintptr_t one_spare_chunk() { return spare_left-- > 0 ? reinterpret_cast<std::uintptr_t>(spare) : 0; }

class ArenaTest : public ::testing::Test {
 protected:
  ~ArenaTest() override { os_.unmap_everything(); }

  FakeOs os_;
  Arena arena_{nullptr};
};

TEST_F(ArenaTest, GivesZeroedAlignedPiecesThatDoNotOverlap) {
  std::vector<std::pair<char*, std::size_t>> pieces;
  for (std::size_t i = 0; i < 2000; ++i) {
    const std::size_t bytes = 1 + i * 37 % Arena::kMaxBytes;
    auto* piece = static_cast<char*>(arena_.allocate(bytes));
    ASSERT_NE(piece, nullptr);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(piece) % Arena::kUnit, 0U);
    ASSERT_TRUE(is_zero(piece, bytes));
    std::memset(piece, static_cast<int>(i % 255 + 1), bytes);
    pieces.emplace_back(piece, bytes);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto [piece, bytes] = pieces[i];
    const char value = static_cast<char>(i % 255 + 1);
    ASSERT_TRUE(std::all_of(piece, piece + bytes, [value](char c) { return c == value; })) << i;
  }
}

TEST_F(ArenaTest, ReusesFreedPiecesForTheirOwnSizeOnly) {
  void* small = arena_.allocate(64);
  void* large = arena_.allocate(128);
  std::memset(small, 0xAA, 64);
  std::memset(large, 0xAA, 128);
  arena_.free(small, 64);
  arena_.free(large, 128);
  EXPECT_NE(arena_.allocate(192), large);
  void* again = arena_.allocate(65);  // rounded to 128
  EXPECT_EQ(again, large);
  EXPECT_TRUE(is_zero(again, 128));
  again = arena_.allocate(1);
  EXPECT_EQ(again, small);
  EXPECT_TRUE(is_zero(again, 64));
  EXPECT_NE(arena_.allocate(64), small);
}

TEST_F(ArenaTest, TakesChunksThatDoubleUpToTwoMegabytes) {
  for (int i = 0; i < 3000; ++i) ASSERT_NE(arena_.allocate(Arena::kMaxBytes), nullptr);
  const auto chunks = os_.log(Call::kMap);
  ASSERT_GE(chunks.size(), 6U);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i].bytes, std::min<std::size_t>(std::size_t{256} << 10 << std::min<std::size_t>(i, 3), 2 << 20));
    sum += chunks[i].bytes;
  }
  EXPECT_EQ(arena_.mapped_bytes(), sum);
}

TEST_F(ArenaTest, ReturnsNullWhenTheSystemRefusesAndGoesOnWhenItGivesAgain) {
  os_.fail(Call::kMap, 1, FakeOs::kAlways);
  EXPECT_EQ(arena_.allocate(64), nullptr);
  EXPECT_EQ(arena_.mapped_bytes(), 0U);
  os_.succeed();
  void* piece = arena_.allocate(64);
  ASSERT_NE(piece, nullptr);
  os_.fail(Call::kMap, 1, FakeOs::kAlways);
  std::set<void*> pieces = {piece};
  while (void* next = arena_.allocate(64)) EXPECT_TRUE(pieces.insert(next).second);
  EXPECT_EQ(pieces.size(), (std::size_t{256} << 10) / 64 - 1) << "the rest of the chunk is used first";
  arena_.free(piece, 64);
  EXPECT_EQ(arena_.allocate(64), piece) << "a freed piece needs no system";
}

TEST_F(ArenaTest, FallsBackToTheHeapsOwnMemoryWhenTheSystemRefuses) {
  Arena arena(one_spare_chunk);
  spare_left = 1;
  os_.fail(Call::kMap, 1, FakeOs::kAlways);
  std::size_t count = 0;
  while (void* piece = arena.allocate(1024)) {
    ASSERT_GE(static_cast<char*>(piece), spare);
    ASSERT_LE(static_cast<char*>(piece) + 1024, spare + sizeof spare);
    ++count;
  }
  EXPECT_EQ(count, 63U) << "the chunk says itself where it is";
  EXPECT_EQ(arena.mapped_bytes(), sizeof spare);
  os_.succeed();
  EXPECT_NE(arena.allocate(1024), nullptr);
}

}  // namespace
}  // namespace brimful::meta
