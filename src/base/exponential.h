// SPDX-License-Identifier: MIT
//
// Random waits of mean 1: the distances between points that are strewn evenly and independently (a Poisson process).
//
// By inversion, -ln(u) of a uniform u (Devroye 1986, II.2). The logarithm is written out, because the library is linked
// without libm: u = m · 2^e with m around 1, and ln m = 2 artanh((m - 1) / (m + 1)) by its series, whose first term left
// out is below 1e-13 there.
#pragma once

#include <bit>
#include <cstdint>

namespace brimful {

// The natural logarithm of a positive, normal number.
constexpr double natural_log(double x) {
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr double kSqrt2 = 1.41421356237309504880;
  constexpr int kMantissaBits = 52;
  constexpr int kBias = 1023;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> kMantissaBits) - kBias;
  constexpr std::uint64_t kMantissa = (std::uint64_t{1} << kMantissaBits) - 1;
  double m = std::bit_cast<double>((bits & kMantissa) | std::uint64_t{kBias} << kMantissaBits);
  if (m > kSqrt2) {
    m /= 2;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int n = 15; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return 2 * s * sum + exponent * kLn2;
}

// A wait of mean 1, from 64 random bits.
constexpr double exponential(std::uint64_t random) {
  constexpr double kStep = 1.0 / (std::uint64_t{1} << 53);
  return -natural_log((static_cast<double>(random >> 11) + 0.5) * kStep);
}

// The part of exponential waits that are shorter than x, 1 - exp(-x), for x >= 0: by its series below a small step, and
// from there by doubling, (1 - q)^2 = 1 - (2q - q^2), which loses nothing where x is small.
constexpr double chance_below(double x) {
  constexpr double kCertain = 40;
  constexpr double kStepWidth = 1.0 / 64;
  if (x > kCertain) return 1;
  int doublings = 0;
  for (; x > kStepWidth; x /= 2) ++doublings;
  double q = 0;
  for (int n = 6; n >= 1; --n) q = x / n * (1 - q);
  for (; doublings > 0; --doublings) q = q * (2 - q);
  return q;
}

// The n-th of a sequence of random numbers: SplitMix64 (Steele, Lea & Flood 2014), whose state is a counter.
inline constexpr std::uint64_t kRandomStep = 0x9E3779B97F4A7C15;
constexpr std::uint64_t random_of(std::uint64_t state) {
  state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9;
  state = (state ^ state >> 27) * 0x94D049BB133111EB;
  return state ^ state >> 31;
}

}  // namespace brimful
