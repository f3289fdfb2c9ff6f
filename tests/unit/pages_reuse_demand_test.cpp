// SPDX-License-Identifier: MIT
//
// pages/reuse_demand.h: how much free memory the heap will plausibly want again.
#include "pages/reuse_demand.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace brimful::pages {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Frees from `from` to `to` used bytes in 64 steps within `ms`.
void fall(ReuseDemand& demand, std::uint64_t now_ms, std::uint64_t ms, std::size_t from, std::size_t to) {
  const std::size_t step = (from - to) / 64;
  for (unsigned i = 1; i <= 64; ++i) demand.note_freed(now_ms + ms * i / 64, from - step * i, step);
}

TEST(ReuseDemand, IsTheLeastAfterAPeakThatNothingFollowed) {
  ReuseDemand demand;
  fall(demand, 5000, 10, 1024 * kMiB, 0);
  EXPECT_EQ(demand.plausible_bytes(), ReuseDemand::kLeastBytes);
}

TEST(ReuseDemand, IsAtLeastWhatIsInUse) {
  ReuseDemand demand;
  fall(demand, 5000, 10, 1024 * kMiB, 256 * kMiB);
  EXPECT_EQ(demand.plausible_bytes(), 256 * kMiB);
}

TEST(ReuseDemand, IsAnythingUntilThreeQuartersAreReleasedOfWhatWasInUseAMomentAgo) {
  ReuseDemand demand;
  fall(demand, 5000, 10, 1024 * kMiB, 320 * kMiB);
  EXPECT_EQ(demand.plausible_bytes(), SIZE_MAX);
  fall(demand, 5500, 10, 320 * kMiB, 192 * kMiB);
  EXPECT_EQ(demand.plausible_bytes(), 192 * kMiB);
  demand.note_freed(6600, 192 * kMiB, kMiB);
  EXPECT_EQ(demand.plausible_bytes(), 192 * kMiB) << "that was 1.1 s ago";
  demand.note_freed(7700, 192 * kMiB, kMiB);
  EXPECT_EQ(demand.plausible_bytes(), SIZE_MAX) << "by now it is a smaller heap";
}

TEST(ReuseDemand, DoesNotTakeGrowthForReuseAlthoughSomeIsFreedOnTheWay) {
  ReuseDemand demand;
  std::size_t used = 0;
  for (std::uint64_t now = 5000; used < 1024 * kMiB; ++now, used += 3 * kMiB) {
    demand.note_freed(now, used, kMiB);  // 4 MiB are allocated, one of them is freed
  }
  fall(demand, 5500, 10, used, 0);
  EXPECT_EQ(demand.plausible_bytes(), ReuseDemand::kLeastBytes);
}

TEST(ReuseDemand, IsWhatHasRisenAgainAfterAFall) {
  ReuseDemand demand;
  fall(demand, 5000, 10, 1024 * kMiB, 0);
  demand.note_freed(5200, 700 * kMiB, kMiB);  // 701 MiB were in use again
  fall(demand, 5210, 10, 700 * kMiB, 0);
  EXPECT_EQ(demand.plausible_bytes(), 701 * kMiB);
}

TEST(ReuseDemand, CountsOnlyWhatWasThereBeforeOfARiseAboveThePeak) {
  ReuseDemand demand;
  fall(demand, 5000, 10, 512 * kMiB, 0);
  demand.note_freed(5200, 1023 * kMiB, kMiB);
  fall(demand, 5210, 10, 1023 * kMiB, 0);
  EXPECT_EQ(demand.plausible_bytes(), 512 * kMiB);
}

TEST(ReuseDemand, IsForgottenAfterTwoSecondsAtMost) {
  ReuseDemand demand;
  fall(demand, 5000, 10, 1024 * kMiB, 0);
  demand.note_freed(5200, 700 * kMiB, kMiB);
  fall(demand, 5210, 10, 700 * kMiB, 0);
  demand.note_freed(6100, 0, kMiB);
  EXPECT_EQ(demand.plausible_bytes(), 701 * kMiB);
  demand.note_freed(7200, 0, kMiB);
  EXPECT_EQ(demand.plausible_bytes(), ReuseDemand::kLeastBytes);
}

}  // namespace
}  // namespace brimful::pages
