// SPDX-License-Identifier: MIT
//
// pages/decay.h: the curve by which free memory goes, the delay that learns, and the rate.
#include "pages/decay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace brimful::pages {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::uint64_t kDelayMs = 1000;

// Purges what the curve has let go of. Returns what is left of `dirty`.
std::size_t step(Decay& decay, std::uint64_t now_ms, std::size_t dirty) {
  const std::size_t left = dirty - decay.excess(now_ms, dirty, kDelayMs);
  decay.settle(left);
  return left;
}

TEST(Decay, GivesBackHalfInHalfTheDelayAndAllInAllOfIt) {
  Decay decay;
  std::size_t dirty = step(decay, 5000, 1024 * kMiB);
  EXPECT_EQ(dirty, 1024 * kMiB) << "what was freed just now stays";
  std::size_t at_once = 0;
  for (std::uint64_t now = 5010; now <= 6010; now += 10) {
    const std::size_t left = step(decay, now, dirty);
    at_once = std::max(at_once, dirty - left);
    dirty = left;
    if (now == 5100) {
      EXPECT_GT(dirty, 1000 * kMiB);
    }
    if (now == 5500) {
      EXPECT_NEAR(static_cast<double>(dirty), 512.0 * kMiB, 64.0 * kMiB);
    }
  }
  EXPECT_EQ(dirty, 0U);
  EXPECT_LE(at_once, 32 * kMiB) << "a step takes more than a slice";
}

TEST(Decay, GivesBackAllAfterALongTimeWithoutALook) {
  Decay decay;
  const std::size_t dirty = step(decay, 5000, 64 * kMiB);
  EXPECT_EQ(decay.excess(50000, dirty, kDelayMs), dirty);
}

TEST(Decay, KeepsWhatIsFreedAndUsedInTurns) {
  Decay decay;
  std::size_t given_back = 0;
  for (std::uint64_t now = 5000; now < 15000; now += 20) {
    const std::size_t dirty = now / 20 % 2 == 0 ? 64 * kMiB : 0;
    const std::size_t excess = decay.excess(now, dirty, kDelayMs);
    given_back += excess;
    decay.settle(dirty - excess);
  }
  EXPECT_EQ(given_back, 0U);
}

TEST(Decay, GivesBackThatToo) {
  Decay decay;
  for (std::uint64_t now = 5000; now < 7000; now += 20) step(decay, now, now / 20 % 2 == 0 ? 64 * kMiB : 0);
  std::size_t dirty = 64 * kMiB;
  for (std::uint64_t now = 7000; now <= 8100; now += 20) dirty = step(decay, now, dirty);
  EXPECT_EQ(dirty, 0U);
}

TEST(Decay, CountsAgainWhatCouldNotBeGivenBack) {
  Decay decay;
  decay.excess(5000, 8 * kMiB, kDelayMs);
  EXPECT_EQ(decay.excess(6100, 8 * kMiB, kDelayMs), 8 * kMiB);
  decay.settle(8 * kMiB);  // locked in memory
  EXPECT_EQ(decay.excess(6200, 8 * kMiB, kDelayMs), 8 * kMiB);
}

TEST(Decay, GivesBackAtOnceWithoutADelay) {
  Decay decay;
  EXPECT_EQ(decay.excess(5000, 3 * kMiB, 0), 3 * kMiB);
}

TEST(Decay, KnowsThatWhatItSeesLateIsOld) {
  Decay decay;
  decay.excess(5000, kMiB, kDelayMs);
  // Freed at once after that look, and nobody looked for five seconds.
  EXPECT_EQ(decay.excess(10000, 64 * kMiB, kDelayMs, 4990), 64 * kMiB);
  EXPECT_LT(decay.excess(10100, 128 * kMiB, kDelayMs, 50), 2 * kMiB + 64 * kMiB);
}

TEST(Delay, GrowsToTwiceWhenPurgedMemoryIsAskedForAgain) {
  AdaptiveDelay delay;
  EXPECT_EQ(delay.delay_ms(1000), 1000U);
  std::uint64_t purged = 0;
  for (std::uint64_t now = 1000; now < 10000; now += 250) {
    purged += 8 * kMiB;
    delay.learn(now, purged, purged / 2);
  }
  EXPECT_EQ(delay.delay_ms(1000), 2000U);
}

TEST(Delay, ShrinksToAQuarterWhenItIsNot) {
  AdaptiveDelay delay;
  std::uint64_t purged = 0;
  for (std::uint64_t now = 1000; now < 10000; now += 250) {
    purged += 8 * kMiB;
    delay.learn(now, purged, 0);
  }
  EXPECT_EQ(delay.delay_ms(1000), 250U);
  EXPECT_EQ(delay.delay_ms(4000), 1000U) << "the option is the middle";
}

TEST(Delay, StaysInBetween) {
  AdaptiveDelay delay;
  std::uint64_t purged = 0;
  for (std::uint64_t now = 1000; now < 10000; now += 250) {
    purged += 8 * kMiB;
    delay.learn(now, purged, purged / 8);
  }
  EXPECT_EQ(delay.delay_ms(1000), 1000U);
}

TEST(Delay, LearnsNothingFromLittle) {
  AdaptiveDelay delay;
  for (std::uint64_t now = 1000; now < 10000; now += 250) delay.learn(now, 4096, 4096);
  EXPECT_EQ(delay.delay_ms(1000), 1000U);
}

TEST(ReleaseRate, AllowsSoMuchASecondAndSavesASecondsWorth) {
  ReleaseRate rate;
  EXPECT_EQ(rate.allowed(5000, 0), SIZE_MAX);
  ReleaseRate limited;
  EXPECT_EQ(limited.allowed(50000, 10 * kMiB), 10 * kMiB) << "never more than a second's worth";
  limited.spend(10 * kMiB);
  EXPECT_EQ(limited.allowed(50000, 10 * kMiB), 0U);
  EXPECT_EQ(limited.allowed(50500, 10 * kMiB), 5 * kMiB);
  limited.spend(5 * kMiB);
  std::size_t total = 0;
  for (std::uint64_t now = 50510; now <= 52500; now += 10) {
    const std::size_t allowed = limited.allowed(now, 10 * kMiB);
    total += allowed;
    limited.spend(allowed);
  }
  EXPECT_LE(total, 20 * kMiB);
  EXPECT_GE(total, 19 * kMiB);
}

}  // namespace
}  // namespace brimful::pages
