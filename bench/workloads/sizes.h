// SPDX-License-Identifier: MIT
//
// Sizes drawn from a distribution, computed once and read from a table: a logarithm or a power for every object would
// be measured with it. Threads share the table, each walks it from a place of its own and comes round.
//
// The distributions are those of the benchmarks that use them (see rptest.cpp and glibc_thread.cpp):
//   even          every size as likely as any other
//   linear        the density falls in a straight line, to zero at the greatest size
//   exponential   the density falls to a thousandth at the greatest size
//   logarithmic   the density falls as 1 / size: as many objects in each octave of sizes
//   power         the density falls as 1 / size²: the sum of the bytes in each octave of sizes is the same
#pragma once

#include <cmath>

#include "workload.h"

namespace workload {

enum class Distribution { kEven, kLinear, kExponential, kLogarithmic, kPower };

class Sizes {
 public:
  Sizes(Distribution distribution, std::size_t least, std::size_t most, std::uint64_t seed) {
    Random random(seed);
    const auto low = static_cast<double>(least);
    const auto high = static_cast<double>(most) + 1;
    for (std::uint32_t& size : sizes_) {
      const auto drawn = static_cast<std::size_t>(draw(distribution, random.unit(), low, high));
      size = static_cast<std::uint32_t>(drawn < least ? least : drawn > most ? most : drawn);
    }
  }

  static constexpr std::size_t kCount = 8192;
  std::size_t operator[](std::uint64_t i) const { return sizes_[i % kCount]; }

 private:
  // The size below which a share `u` of the objects lies.
  static double draw(Distribution distribution, double u, double low, double high) {
    constexpr double kFall = 1e-3;
    switch (distribution) {
      case Distribution::kLinear:
        return low + (high - low) * (1 - std::sqrt(1 - u));
      case Distribution::kExponential:
        return low + (high - low) * std::log(1 - u * (1 - kFall)) / std::log(kFall);
      case Distribution::kLogarithmic:
        return low * std::pow(high / low, u);
      case Distribution::kPower:
        return 1 / (1 / low - u * (1 / low - 1 / high));
      case Distribution::kEven:
        break;
    }
    return low + (high - low) * u;
  }

  std::uint32_t sizes_[kCount];
};

}  // namespace workload
