// SPDX-License-Identifier: MIT
//
// pages/decay.h.
#include "pages/decay.h"

#include <array>

namespace brimful::pages {
namespace {

constexpr unsigned kCurveSteps = 64;
constexpr std::uint64_t kCurveOne = 1 << 16;

// What is kept of bytes that were freed i steps ago, in 1/65536. Ends below the first step that is not kept at all.
constexpr std::array<std::uint64_t, kCurveSteps> make_curve() {
  std::array<std::uint64_t, kCurveSteps> curve = {};
  for (unsigned i = 0; i < kCurveSteps; ++i) {
    const double x = static_cast<double>(i + 1) / kCurveSteps;
    const double gone = x * x * x * (x * (x * 6 - 15) + 10);
    curve[i] = static_cast<std::uint64_t>((1 - gone) * static_cast<double>(kCurveOne));
  }
  return curve;
}
constexpr auto kCurve = make_curve();
static_assert(kCurve[0] > kCurveOne * 99 / 100 && kCurve[31] == kCurveOne / 2 && kCurve[kCurveSteps - 1] == 0);

constexpr std::uint64_t kLearnEveryMs = 250;
constexpr std::uint64_t kLeastFactor = 64;
constexpr std::uint64_t kMostFactor = 512;
// Less than this says nothing.
constexpr std::uint64_t kLeastEvidence = std::uint64_t{1} << 20;

}  // namespace

void Decay::advance(std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps && i < kSteps; ++i) {
    newest_ = (newest_ + 1) % kSteps;
    freed_[newest_] = 0;
  }
}

std::size_t Decay::sum() const {
  std::size_t kept = 0;
  for (unsigned age = 1; age < kSteps; ++age) {
    kept += static_cast<std::size_t>((freed_[(newest_ - age) % kSteps] >> 8) * kCurve[age] >> 8);
  }
  return kept;
}

std::size_t Decay::excess(std::uint64_t now_ms, std::size_t dirty_bytes, std::uint64_t delay_ms, std::uint64_t age_ms) {
  if (delay_ms == 0) return dirty_bytes;
  const std::uint64_t step_ms = delay_ms < kSteps ? 1 : delay_ms / kSteps;
  const std::uint64_t steps = now_ms < began_ms_ ? 0 : (now_ms - began_ms_) / step_ms;
  if (steps != 0) {
    advance(steps);
    began_ms_ += steps * step_ms;
    limit_ = sum();
  }
  const std::uint64_t back = age_ms / step_ms;
  if (dirty_bytes > known_bytes_ && back < kSteps) {
    freed_[(newest_ - back) % kSteps] += dirty_bytes - known_bytes_;
    if (back != 0) limit_ = sum();
  }
  known_bytes_ = dirty_bytes;
  const std::size_t limit = limit_ + freed_[newest_];
  return dirty_bytes > limit ? dirty_bytes - limit : 0;
}

void AdaptiveDelay::learn(std::uint64_t now_ms, std::uint64_t purged_bytes, std::uint64_t refaulted_bytes) {
  if (now_ms < next_ms_) return;
  next_ms_ = now_ms + kLearnEveryMs;
  purged_ += purged_bytes - last_purged_;
  refaulted_ += refaulted_bytes - last_refaulted_;
  last_purged_ = purged_bytes;
  last_refaulted_ = refaulted_bytes;
  if (purged_ < kLeastEvidence && refaulted_ < kLeastEvidence) return;
  if (refaulted_ * 4 > purged_) {
    factor_ += factor_ / 4;
  } else if (refaulted_ * 16 < purged_) {
    factor_ -= factor_ / 8;
  }
  if (factor_ < kLeastFactor) factor_ = kLeastFactor;
  if (factor_ > kMostFactor) factor_ = kMostFactor;
  purged_ -= purged_ / 8;
  refaulted_ -= refaulted_ / 8;
}

std::size_t ReleaseRate::allowed(std::uint64_t now_ms, std::uint64_t bytes_per_s) {
  if (bytes_per_s == 0) return SIZE_MAX;
  std::uint64_t elapsed = now_ms > last_ms_ ? now_ms - last_ms_ : 0;
  if (elapsed > 1000) elapsed = 1000;
  last_ms_ = now_ms;
  std::uint64_t earned = 0;
  if (__builtin_mul_overflow(bytes_per_s, elapsed, &earned)) earned = SIZE_MAX;
  earned /= 1000;
  saved_ = saved_ + earned > bytes_per_s ? bytes_per_s : saved_ + earned;
  return saved_;
}

}  // namespace brimful::pages
