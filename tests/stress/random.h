// SPDX-License-Identifier: MIT
//
// The stress programs' random numbers: splitmix64, seeded per thread from one printed seed.
//
// Every decision of a worker is drawn from its own generator, so a seed fixes each thread's sequence of
// wishes; what the scheduler makes of them is not reproducible, which is why a failure prints the history as
// well. std::mt19937 would do, but is 2.5 KiB of state per thread and slower than the allocator under test.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::stress {

// One round of splitmix64's finaliser: every input bit reaches every output bit.
constexpr uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

class Random {
 public:
  Random() = default;
  Random(uint64_t seed, uint64_t stream) : state_(mix(seed + 0x9E3779B97F4A7C15u * (stream + 1))) {}

  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    return mix(state_);
  }

  // Uniform in [0, bound); bound > 0. The bias of the multiplication is below 2⁻³², of no importance here.
  uint64_t below(uint64_t bound) { return (static_cast<unsigned __int128>(next()) * bound) >> 64; }

  // Uniform in [low, high].
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }

  // True once in `n` calls on average.
  bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  uint64_t state_ = 0;
};

}  // namespace brimful::stress
