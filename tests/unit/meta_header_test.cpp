// SPDX-License-Identifier: MIT
//
// meta/header.h: the layout of headers, and the pointer that a failed division still gives away.
#include "meta/header.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>

namespace brimful {
namespace {

void fill(Slab& slab, ClassId id, std::uint64_t start) {
  slab.start = start;
  slab.multiplier = kSizeClasses[id].multiplier;
  slab.size_class = id;
  slab.bytes = kSizeClasses[id].bytes;
  slab.groups = kSizeClasses[id].groups;
}

TEST(IndexOf, IsBelowTheCountForStartsOfObjectsOnly) {
  for (std::size_t id = 0; id < kClassCount; ++id) {
    Slab slab = {};
    fill(slab, static_cast<ClassId>(id), 0x7F1234560000);
    const std::int64_t size = kSizeClasses[id].bytes;
    for (std::int64_t offset = -70000; offset < 140000; offset += id % 8 == 0 ? 1 : 7) {
      const bool starts = offset >= 0 && offset % size == 0 && offset / size < static_cast<std::int64_t>(slab.count());
      const std::uint64_t index = slab.index_of(slab.start + static_cast<std::uint64_t>(offset));
      ASSERT_EQ(index < slab.count(), starts) << size << " " << offset;
      if (starts) {
        ASSERT_EQ(index, static_cast<std::uint64_t>(offset / size));
      }
    }
  }
}

TEST(IndexOf, IsNotBelowTheCountForAddressesFarAway) {
  std::mt19937_64 random(3);
  for (std::size_t id = 0; id < kClassCount; ++id) {
    for (int i = 0; i < 5000; ++i) {
      Slab slab = {};
      fill(slab, static_cast<ClassId>(id), random() >> 16 & ~std::uint64_t{0xFFFF});  // 48 bits, as user space has
      const std::uint64_t address = random() >> (13 + random() % 40);                 // up to 51 bits
      if (address - slab.start < slab.count() * slab.bytes) continue;
      ASSERT_GE(slab.index_of(address), slab.count()) << kSizeClasses[id].bytes;
      ASSERT_GE(slab.index_of(0), slab.count()) << "NULL";
    }
  }
}

// What malloc_usable_size() relies on, which asks for no owner: the table leads to a header from other addresses, too.
TEST(IndexOf, OfALargeBlockIsSmallForItsStartOnly) {
  std::mt19937_64 random(7);
  Slab run = {};
  run.multiplier = kRunMultiplier;
  for (int i = 0; i < 100000; ++i) {
    run.start = random() >> 16 & ~std::uint64_t{0xFFFF};  // 48 bits, as user space has
    ASSERT_EQ(run.index_of(run.start), 0U);
    for (const std::uint64_t granules : {std::uint64_t{1}, std::uint64_t{512}, random() % 4096 + 1, random() >> 33}) {
      ASSERT_GE(run.index_of(run.start + granules * kGranuleBytes), std::uint64_t{BRIMFUL_MAX_OBJECTS}) << granules;
      ASSERT_GE(run.index_of(run.start - granules * kGranuleBytes), std::uint64_t{BRIMFUL_MAX_OBJECTS}) << granules;
    }
    ASSERT_GE(run.index_of(random() >> 16), std::uint64_t{BRIMFUL_MAX_OBJECTS});
  }
}

TEST(Slab, PlacesItsWordsAndMasksWithoutOverlapForAnyNumberOfGroups) {
  alignas(64) static char memory[4096];
  for (unsigned groups = 1; groups <= 64; ++groups) {
    auto* slab = reinterpret_cast<Slab*>(memory);
    slab->groups = static_cast<std::uint16_t>(groups);
    const auto at = [](const void* p) {
      return static_cast<std::size_t>(static_cast<const char*>(p) - static_cast<const char*>(memory));
    };
    EXPECT_GE(at(&slab->words()[0]), sizeof(Slab));
    const std::size_t words_end = at(&slab->words()[groups]);
    const std::size_t offered = at(&slab->words()[BRIMFUL_OFFERED_BEHIND / sizeof(std::uint64_t)]);
    EXPECT_LE(words_end, offered);
    const std::size_t remote = at(&slab->remote(0));
    EXPECT_LE(offered + groups * sizeof(std::uint64_t), remote);
    EXPECT_EQ(remote % 64, 0U) << "remote frees share a cache line with the owner's words";
    EXPECT_LE(at(&slab->remote(groups - 1)) + 8, Slab::bytes_for(groups));
    EXPECT_LE(Slab::bytes_for(groups), sizeof memory);
  }
}

}  // namespace
}  // namespace brimful
