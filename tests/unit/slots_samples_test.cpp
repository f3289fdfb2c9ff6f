// SPDX-License-Identifier: MIT
//
// Sampling: what is estimated from samples against what was asked for, object by object; and the life of a sample.
//
// The estimate of a sum of bytes is the sum of u / p over the samples, p = 1 - exp(-u / interval), so its variance is the
// sum of u^2 (1 - p) / p over all blocks. Each test of the arithmetic compares the difference with that, over rounds of
// independent draws: their mean must lie within 3 standard errors of its own, 0.3 of one round's. So a bias of a third of
// what one round scatters fails, and with fixed seeds no run fails by chance.
#include "slots/samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "base/exponential.h"
#include "brimful/brimful.h"
#include "meta/granule_table.h"
#include "os/calls.h"
#include "slots/front_end.h"
#include "slots/sampling.h"
#include "slots/thread.h"
#include "slots_test_support.h"

namespace brimful::slots {
namespace {

using brimful::testing::use_of;
using meta::sample_control;
using meta::SampleRecord;

TEST(Exponential, LogarithmIsThatOfLibm) {
  for (double x = 1e-17; x < 1e6; x *= 1.37)
    EXPECT_NEAR(natural_log(x), std::log(x), 1e-12 * (1 + std::abs(std::log(x))));
}

TEST(Exponential, ChanceIsThatOfLibm) {
  for (double x = 1e-12; x < 100; x *= 1.31) EXPECT_NEAR(chance_below(x) / -std::expm1(-x), 1, 1e-10);
  EXPECT_EQ(chance_below(0), 0);
}

TEST(Exponential, WaitsHaveMeanAndVarianceOne) {
  constexpr int kCount = 1'000'000;
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double wait = exponential(random_of(42 + i * kRandomStep));
    sum += wait;
    squares += wait * wait;
  }
  EXPECT_NEAR(sum / kCount, 1, 0.003);       // 3 standard errors
  EXPECT_NEAR(squares / kCount, 2, 0.0135);  // likewise: a square's deviation is sqrt(20)
}

std::uint64_t usable(std::size_t bytes) {
  return bytes <= kMaxClassBytes ? kSizeClasses[class_of(bytes)].bytes : round_up(bytes, os::page_bytes());
}

class Samples : public ::testing::Test {
 protected:
  void SetUp() override { brimful_free(brimful_malloc(1)); }
  void TearDown() override { set_sample_interval(0); }

  // As if a tool had written it: the context notices at its next slow path, so that is taken.
  static void turn_on(std::uint64_t interval) {
    set_sample_interval(interval);
    Context* context = current_context();
    ASSERT_NE(context, nullptr);
    const sync::MutexLock guard(context->lock);
    takes_sample(context, 0);
  }

  // Allocations of one round, and how far the estimate is from them, in standard errors.
  template <class Work>
  static double deviation(std::uint64_t interval, Work work) {
    const std::uint64_t before = sample_control.allocated_bytes.load();
    double exact = 0;
    double variance = 0;
    const auto note = [&](std::size_t bytes) {
      const auto u = static_cast<double>(usable(bytes));
      const double p = -std::expm1(-u / static_cast<double>(interval));
      exact += u;
      variance += u * u * (1 - p) / p;
    };
    work(note);
    return (static_cast<double>(sample_control.allocated_bytes.load() - before) - exact) / std::sqrt(variance);
  }

  template <class Work>
  static void expect_unbiased(std::uint64_t interval, Work work) {
    constexpr int kRounds = 100;
    turn_on(interval);
    double sum = 0;
    double squares = 0;
    for (int round = 0; round < kRounds; ++round) {
      const double z = deviation(interval, [&](auto note) { work(round, note); });
      sum += z;
      squares += z * z;
    }
    EXPECT_NEAR(sum / kRounds, 0, 3 / std::sqrt(kRounds));
    EXPECT_NEAR(squares / kRounds, 1, 3 * std::sqrt(2.0 / kRounds));  // and it scatters as it must
    EXPECT_EQ(sample_control.lost.load(), 0U);
  }
};

TEST_F(Samples, OfOneSmallClassStandForAllItsObjects) {
  seed_samples(1);
  expect_unbiased(4096, [](int, auto note) {
    for (int i = 0; i < 3000; ++i) {
      void* object = brimful_malloc(48);
      note(48);
      brimful_free(object);
    }
  });
}

TEST_F(Samples, OfCoarseClassesStandForAllTheirObjects) {
  seed_samples(2);
  expect_unbiased(65536, [](int round, auto note) {
    std::vector<void*> held(20, nullptr);
    for (int i = 0; i < 500; ++i) {
      void*& place = held[static_cast<std::size_t>(i * 7 + round) % held.size()];
      brimful_free(place);
      const std::size_t bytes = i % 3 == 0 ? 6000 : 20000;
      place = brimful_malloc(bytes);
      note(bytes);
    }
    for (void* object : held) brimful_free(object);
  });
}

TEST_F(Samples, OfManyClassesAtOnceStandForAllObjects) {
  seed_samples(3);
  expect_unbiased(8192, [](int round, auto note) {
    std::vector<void*> held(200, nullptr);
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const std::uint64_t random = random_of(i + static_cast<std::uint64_t>(round) * 100000);
      void*& place = held[random % held.size()];
      brimful_free(place);
      const std::size_t bytes = 1 + (random >> 20) % (1ULL << ((random >> 10) % 14));
      place = brimful_malloc(bytes);
      note(bytes);
    }
    for (void* object : held) brimful_free(object);
  });
}

// Offers that are cut, and are taken back before they are used up, are dropped without a trace.
TEST_F(Samples, StayRightWhenOffersAreTakenBack) {
  seed_samples(4);
  expect_unbiased(2048, [](int round, auto note) {
    for (int i = 0; i < 100; ++i) {
      for (int n = 0; n < 1 + (i + round) % 60; ++n) {
        brimful_free(brimful_malloc(32));
        note(32);
      }
      reclaim_all();
    }
  });
}

TEST_F(Samples, OfLargeBlocksStandForAllOfThem) {
  seed_samples(5);
  expect_unbiased(524288, [](int round, auto note) {
    void* held[4] = {};
    for (int i = 0; i < 300; ++i) {
      void*& place = held[(i * 5 + round) % 4];
      brimful_free(place);
      const std::size_t bytes = i % 5 == 0 ? 300000 : 70000 + static_cast<std::size_t>(i % 7) * 10000;
      place = i % 4 == 0 ? brimful_calloc(1, bytes) : brimful_malloc(bytes);
      note(bytes);
    }
    for (void* block : held) brimful_free(block);
  });
}

TEST_F(Samples, OfEachAllocationWhenTheIntervalIsAByte) {
  turn_on(1);
  const std::uint64_t before = sample_control.taken.load();
  for (int i = 0; i < 1000; ++i) brimful_free(brimful_malloc(100));
  EXPECT_EQ(sample_control.taken.load() - before, 1000U);
}

SampleRecord* record_of(void* object) {
  for (std::uint32_t slot = 1; SampleRecord* record = sample_record(slot); ++slot) {
    if (record->address == reinterpret_cast<std::uint64_t>(object)) return record;
  }
  return nullptr;
}

TEST_F(Samples, AreWrittenDownWithTheirSizesAndTimesAndFrees) {
  turn_on(1);
  void* object = brimful_malloc(100);
  ASSERT_NE(object, nullptr);
  SampleRecord* record = record_of(object);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->state.load(), static_cast<std::uint32_t>(meta::SampleState::kLive));
  EXPECT_EQ(record->requested_bytes, 100U);
  EXPECT_EQ(record->usable_bytes, brimful_usable_size(object));
  EXPECT_EQ(record->interval_bytes, 1U);
  EXPECT_GT(record->allocated_ns, 0U);
  EXPECT_EQ(record->freed_ns, 0U);
  EXPECT_EQ(record->sequence.load() % 2, 0U);
  EXPECT_GT(record->allocation.stack_bytes, 100U);
  brimful_free(object);
  EXPECT_EQ(record->state.load(), static_cast<std::uint32_t>(meta::SampleState::kFreed));
  EXPECT_GE(record->freed_ns, record->allocated_ns);
  EXPECT_GT(record->release.stack_bytes, 100U);
  EXPECT_EQ(record->release.tid, record->allocation.tid);
}

TEST_F(Samples, OfLargeBlocksEndWithThemAndMoveWithRealloc) {
  turn_on(1);
  void* block = brimful_malloc(100000);
  SampleRecord* record = record_of(block);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->flags & meta::kSampleLarge, meta::kSampleLarge);
  block = brimful_realloc(block, 120000);
  EXPECT_EQ(record->state.load(), static_cast<std::uint32_t>(meta::SampleState::kFreed)) << "the block of the old size";
  brimful_free(block);
  void* huge = brimful_malloc(std::size_t{6} << 30);
  if (huge == nullptr) GTEST_SKIP() << "the system has no address space for a huge block";
  record = record_of(huge);
  ASSERT_NE(record, nullptr);
  brimful_free(huge);
  EXPECT_EQ(record->state.load(), static_cast<std::uint32_t>(meta::SampleState::kFreed));
}

TEST_F(Samples, OfASlabThatIsEmptyGiveItBack) {
  turn_on(1);
  std::vector<void*> objects;
  for (int i = 0; i < 3000; ++i) objects.push_back(brimful_malloc(2000));
  EXPECT_GE(use_of(2000).live, 3000U);
  for (void* object : objects) brimful_free(object);
  set_sample_interval(0);
  reclaim_all();
  EXPECT_EQ(use_of(2000).live, 0U);
  EXPECT_EQ(use_of(2000).slabs, 0U);
}

TEST_F(Samples, OfAPeakGiveTheirRecordsBack) {
  static std::size_t purged_bytes;
  purged_bytes = 0;
  const auto purge = os::calls.purge;
  turn_on(1);
  std::vector<void*> objects;
  const auto allocate = [&objects](int count) {
    for (int i = 0; i < count; ++i) objects.push_back(brimful_malloc(2000));
  };
  allocate(5000);
  for (void* object : objects) brimful_free(object);
  objects.clear();
  os::calls.purge = [](std::uintptr_t address, std::size_t bytes) {
    if (bytes == meta::kSampleSlotBytes) purged_bytes += bytes;
    memset(reinterpret_cast<void*>(address), 0, bytes);
    return true;
  };
  allocate(1);  // collects what was freed
  os::calls.purge = purge;
  EXPECT_GE(purged_bytes, 3900 * meta::kSampleSlotBytes);
  // They serve again, each for one sample, and before others do.
  const std::uint64_t before = sample_control.used.load();
  allocate(4999);
  const std::uint64_t used = sample_control.used.load();
  EXPECT_LE(used, before + 1024);  // that many of the freed ones are kept
  std::set<std::uint64_t> addresses;
  for (std::uint32_t slot = 1; slot <= used; ++slot) {
    const SampleRecord* record = sample_record(slot);
    if (record->state.load() == static_cast<std::uint32_t>(meta::SampleState::kLive)) addresses.insert(record->address);
  }
  for (void* object : objects) EXPECT_TRUE(addresses.contains(reinterpret_cast<std::uint64_t>(object)));
  for (void* object : objects) brimful_free(object);
}

TEST_F(Samples, GoWithoutWhenTheSystemRefusesTheirMemory) {
  const auto map = os::calls.map;
  os::calls.map = [](std::uintptr_t, std::size_t, os::Access) -> void* { return nullptr; };
  turn_on(1);
  void* object = brimful_malloc(100);
  os::calls.map = map;
  EXPECT_NE(object, nullptr);
  EXPECT_EQ(sample_control.lost.load(), 1U);
  brimful_free(object);
}

TEST_F(Samples, EstimateWhatWasAskedFor) {
  seed_samples(6);
  turn_on(2048);
  std::vector<void*> objects;
  for (int i = 0; i < 20000; ++i) objects.push_back(brimful_malloc(65));  // of 80 bytes
  const SampledUse use = sampled_use();
  ASSERT_GT(use.samples, 500U);
  EXPECT_NEAR(static_cast<double>(use.requested_bytes) / static_cast<double>(use.usable_bytes), 65.0 / 80, 1e-6);
  EXPECT_NEAR(static_cast<double>(use.usable_bytes), 20000.0 * 80, 20000.0 * 80 * 0.12);  // 3 standard errors
  for (void* object : objects) brimful_free(object);
}

using SamplesDeathTest = Samples;

TEST_F(SamplesDeathTest, AreFreedOnce) {
  turn_on(1);
  void* object = brimful_malloc(100);
  brimful_free(object);
  EXPECT_DEATH(brimful_free(object), "double free: free");
}

}  // namespace
}  // namespace brimful::slots
