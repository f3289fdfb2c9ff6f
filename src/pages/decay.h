// SPDX-License-Identifier: MIT
//
// How much free memory may stay resident, as time goes by.
//
//   share of what was freed that is kept
//   1 ┤━━━━━╮
//     │      ╲            smootherstep: 1 − (6x⁵ − 15x⁴ + 10x³), x = age / delay. Level at both ends: memory freed a
//     │       ╲           moment ago is nearly all kept, and the last of it goes without a jolt.
//   0 ┤        ╰━━━━━
//     0        delay      Source: jemalloc's decay (src/decay.c).
//
// A history of what was freed in each 1/64 of the delay is multiplied with the curve; the sum is what may stay. Memory in
// steady use, freed and asked for again, enters the history each time it is freed, so the sum stays above it and none of
// it goes. Rejected: all that is older than the delay at once (docs/design/0007). A gigabyte went in one call of 70 ms.
//
// The delay itself learns. Memory that was given back and is asked for again soon was given back too early: the delay
// grows, to twice the option's value. While nothing comes back for it, it shrinks, to a quarter. Not more than twice,
// because a program that has finished with its memory should be rid of it in two seconds, whatever it did before.
//
// Not synchronised: the owner's lock guards an instance.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::pages {

class Decay {
 public:
  // How many of `dirty_bytes` have to go for the curve to be kept. `delay_ms` may change from call to call. `age_ms`: none
  // of it was freed since; who looks again after a long time must not take all for new. O(64) once in delay / 64, else O(1).
  std::size_t excess(std::uint64_t now_ms, std::size_t dirty_bytes, std::uint64_t delay_ms, std::uint64_t age_ms = 0);

  // What excess() led to: so much is dirty now. More than that, next time, has been freed meanwhile.
  void settle(std::size_t dirty_bytes) { known_bytes_ = dirty_bytes; }

  // So much went without having been asked about: the oldest, which had been looked at before the rest.
  void forget(std::size_t bytes) { known_bytes_ -= bytes < known_bytes_ ? bytes : known_bytes_; }

 private:
  static constexpr unsigned kSteps = 64;

  void advance(std::uint64_t steps);
  [[nodiscard]] std::size_t sum() const;

  std::uint64_t began_ms_ = 0;      // of the newest step
  std::size_t known_bytes_ = 0;     // dirty when it was last looked at
  std::size_t limit_ = 0;           // of dirty bytes, without those of the newest step
  std::size_t freed_[kSteps] = {};  // in each step; a circle
  unsigned newest_ = 0;
};

class AdaptiveDelay {
 public:
  // The delay in force, given the option's value.
  [[nodiscard]] std::uint64_t delay_ms(std::uint64_t option_ms) const { return option_ms * factor_ / kOne; }

  // Looks at how much of what was given back has been asked for again; both numbers count from the process's start.
  // Counts once in 250 ms.
  void learn(std::uint64_t now_ms, std::uint64_t purged_bytes, std::uint64_t refaulted_bytes);

 private:
  static constexpr std::uint64_t kOne = 256;

  std::uint64_t factor_ = kOne;  // 64 … 512: a quarter to twice
  std::uint64_t next_ms_ = 0;
  std::uint64_t last_purged_ = 0;
  std::uint64_t last_refaulted_ = 0;
  std::uint64_t purged_ = 0;  // lately: an eighth is forgotten at each look
  std::uint64_t refaulted_ = 0;
};

// A rate: at most so many bytes a second, with a second's worth saved up at most.
class ReleaseRate {
 public:
  // How many bytes may go now. `bytes_per_s` 0: any number.
  std::size_t allowed(std::uint64_t now_ms, std::uint64_t bytes_per_s);
  void spend(std::size_t bytes) { saved_ = bytes < saved_ ? saved_ - bytes : 0; }

 private:
  std::uint64_t last_ms_ = 0;
  std::size_t saved_ = 0;
};

}  // namespace brimful::pages
