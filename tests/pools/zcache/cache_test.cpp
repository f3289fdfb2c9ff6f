// SPDX-License-Identifier: MIT
//
// The cache of examples/zcache on both memories and by each codec, against a map; and what happens when memory is short or
// a stored value is damaged.
#include "cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace zcache {
namespace {

constexpr std::size_t kMostBytes = 4096;
constexpr std::size_t kKeys = 500;

std::vector<std::byte> bytes_of(std::size_t count, std::uint64_t seed, bool compressible) {
  std::minstd_rand random(static_cast<std::uint32_t>(seed + 1));
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> (compressible ? 29 : 8));
  return bytes;
}

// A cache and what reads it. The value of a key, or nothing.
struct Bed {
  Bed(bool handles, CodecKind kind, Cache::Settings settings)
      : codec(make_codec(kind, 0, kMostBytes)),
        memory(handles ? make_handle_memory({kMostBytes, 3, 16}) : make_malloc_memory()),
        cache(settings, *codec, *memory) {}

  std::vector<std::byte> get(std::uint64_t key) {
    std::vector<std::byte> into(kMostBytes);
    std::size_t bytes = 0;
    const Got got = cache.get(key, into, &bytes);
    EXPECT_NE(got, Got::kDamaged);
    into.resize(got == Got::kFound ? bytes : 0);
    return into;
  }

  std::unique_ptr<Codec> codec;
  std::unique_ptr<ValueMemory> memory;
  Cache cache;
};

class EachCache : public testing::TestWithParam<std::tuple<bool, CodecKind>> {
 protected:
  Bed make(std::size_t most_stored = ~std::size_t{0}) {
    return {std::get<0>(GetParam()), std::get<1>(GetParam()), {kKeys, kMostBytes, most_stored}};
  }
};

TEST_P(EachCache, AgreesWithAMapOverRandomPutsAndErases) {
  Bed bed = make();
  std::map<std::uint64_t, std::vector<std::byte>> model;
  std::mt19937_64 random(7);
  for (int round = 0; round < 5000; ++round) {
    const std::uint64_t key = random() % kKeys * 0x100000001;
    if (random() % 3 == 0) {
      EXPECT_EQ(bed.cache.erase(key), model.erase(key) != 0);
    } else {
      model[key] = bytes_of(1 + random() % kMostBytes, random(), round % 4 != 0);
      ASSERT_TRUE(bed.cache.put(key, model[key]));
    }
    const std::uint64_t looked_at = random() % kKeys * 0x100000001;
    const auto found = model.find(looked_at);
    ASSERT_EQ(bed.get(looked_at), found == model.end() ? std::vector<std::byte>() : found->second);
  }
  std::size_t source_bytes = 0;
  for (const auto& [key, value] : model) {
    ASSERT_EQ(bed.get(key), value);
    source_bytes += value.size();
  }
  EXPECT_EQ(bed.cache.use().keys, model.size());
  EXPECT_EQ(bed.cache.use().source_bytes, source_bytes);
}

TEST_P(EachCache, EvictsWhatWasUsedLongestAgoAndStaysBelowItsLimit) {
  Bed bed = make(10 * kMostBytes);
  for (std::uint64_t key = 0; key < 10; ++key) {
    ASSERT_TRUE(bed.cache.put(key, bytes_of(kMostBytes, key, false)));
  }
  EXPECT_EQ(bed.cache.use().evicted, 0U);
  EXPECT_FALSE(bed.get(0).empty());
  ASSERT_TRUE(bed.cache.put(10, bytes_of(kMostBytes, 10, false)));
  EXPECT_EQ(bed.cache.use().evicted, 1U);
  EXPECT_FALSE(bed.get(0).empty()) << "was read since, so it is not the oldest";
  EXPECT_TRUE(bed.get(1).empty());
  EXPECT_LE(bed.cache.use().stored_bytes, 10 * kMostBytes);
}

TEST_P(EachCache, EvictsWhenItHasNoKeyLeft) {
  Bed bed = make();
  for (std::uint64_t key = 0; key <= kKeys; ++key) ASSERT_TRUE(bed.cache.put(key, bytes_of(10, key, true)));
  EXPECT_EQ(bed.cache.use().keys, kKeys);
  EXPECT_TRUE(bed.get(0).empty());
  EXPECT_EQ(bed.get(kKeys), bytes_of(10, kKeys, true));
}

TEST_P(EachCache, RefusesSizesThatItCannotHoldAndForgetsTheKey) {
  Bed bed = make();
  ASSERT_TRUE(bed.cache.put(1, bytes_of(10, 1, true)));
  EXPECT_FALSE(bed.cache.put(1, bytes_of(kMostBytes + 1, 1, true)));
  EXPECT_FALSE(bed.cache.put(2, {}));
  EXPECT_EQ(bed.cache.use().keys, 0U);
  EXPECT_EQ(bed.cache.use().stored_bytes, 0U);
}

std::string name_of(const testing::TestParamInfo<EachCache::ParamType>& info) {
  constexpr std::array<const char*, 3> kCodecs{"Zstd", "Lz4", "None"};
  const auto [handles, kind] = info.param;
  return std::string(handles ? "Handles" : "Malloc") + kCodecs[static_cast<std::size_t>(kind)];
}
INSTANTIATE_TEST_SUITE_P(Zcache, EachCache,
                         testing::Combine(testing::Bool(),
                                          testing::Values(CodecKind::kZstd, CodecKind::kLz4, CodecKind::kNone)),
                         name_of);

TEST(Zcache, StoresWhatDoesNotCompressAsItCame) {
  Bed bed(false, CodecKind::kZstd, {kKeys, kMostBytes});
  ASSERT_TRUE(bed.cache.put(1, bytes_of(kMostBytes, 1, false)));
  ASSERT_TRUE(bed.cache.put(2, bytes_of(kMostBytes, 2, true)));
  EXPECT_EQ(bed.cache.use().raw, 1U);
  EXPECT_LT(bed.cache.use().stored_bytes, 2 * kMostBytes * 3 / 4);
}

TEST(Zcache, GivesPagesBackWhenValuesWereErasedHereAndThere) {
  constexpr std::size_t kMany = 20000;
  Bed bed(true, CodecKind::kNone, {kMany, kMostBytes});
  for (std::uint64_t key = 0; key < kMany; ++key) ASSERT_TRUE(bed.cache.put(key, bytes_of(300 + key % 600, key, true)));
  const std::size_t peak = bed.memory->use().held;
  for (std::uint64_t key = 0; key < kMany; ++key) {
    if (key % 4 != 0) bed.cache.erase(key);
  }
  for (std::uint64_t key = 0; key < kMany; key += 4) ASSERT_EQ(bed.get(key), bytes_of(300 + key % 600, key, true));
  EXPECT_LT(bed.memory->use().held, peak * 2 / 5) << "a quarter of the values is left";
  EXPECT_GT(bed.memory->use().moved, 0U);
}

// Memory that fails when told to, and whose bytes the test can reach.
class Frail final : public ValueMemory {
 public:
  Place store(Bytes bytes) override {
    if (full) return 0;
    values.emplace_back(bytes.begin(), bytes.end());
    return values.size();
  }
  const std::byte* open(Place place) override { return lost ? nullptr : values[place - 1].data(); }
  void close(Place /*place*/) override {}
  void drop(Place /*place*/) override { ++dropped; }
  void tidy(std::size_t /*stored_bytes*/) override {}
  [[nodiscard]] Use use() const override { return {}; }

  std::vector<std::vector<std::byte>> values;
  std::size_t dropped = 0;
  bool full = false;
  bool lost = false;
};

TEST(Zcache, SaysThatAValueIsDamaged) {
  const auto codec = make_codec(CodecKind::kZstd, 0, kMostBytes);
  Frail memory;
  Cache cache({kKeys, kMostBytes}, *codec, memory);
  std::vector<std::byte> into(kMostBytes);
  std::size_t bytes = 0;
  ASSERT_TRUE(cache.put(1, bytes_of(kMostBytes, 1, true)));
  ASSERT_EQ(cache.get(1, into, &bytes), Got::kFound);
  std::ranges::fill(memory.values[0], std::byte{0});
  EXPECT_EQ(cache.get(1, into, &bytes), Got::kDamaged);
  memory.lost = true;
  EXPECT_EQ(cache.get(1, into, &bytes), Got::kDamaged);
}

TEST(Zcache, APutThatFindsNoMemoryLeavesTheKeyAbsent) {
  const auto codec = make_codec(CodecKind::kNone, 0, kMostBytes);
  Frail memory;
  Cache cache({kKeys, kMostBytes}, *codec, memory);
  ASSERT_TRUE(cache.put(1, bytes_of(100, 1, true)));
  memory.full = true;
  EXPECT_FALSE(cache.put(1, bytes_of(100, 2, true)));
  EXPECT_EQ(memory.dropped, 1U);
  EXPECT_EQ(cache.use().keys, 0U);
  EXPECT_EQ(cache.use().stored_bytes, 0U);
}

}  // namespace
}  // namespace zcache
