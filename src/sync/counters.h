// SPDX-License-Identifier: MIT
//
// How much a lock is used and waited for. Holders count under the lock, so a plain load and store suffices: no locked
// instruction, and the counters lie in the line that the lock word brought. Only "busy" is counted by threads that do
// not hold the lock, by an atomic add, which is rare and comes behind a failed exchange on the same line.
//
// Readers take no lock and see each number whole, but not all of one moment.
#pragma once

#include <atomic>
#include <cstdint>

namespace brimful {
struct Anatomy;  // debug/anatomy.h
}

namespace brimful::sync {

// Numbers of one lock, or sums over many, since the process began.
struct LockUse {
  std::uint64_t acquisitions;  // times taken, contended or not; fork() is not counted
  std::uint64_t contended;     // of those: somebody else held it, so the thread span or slept
  std::uint64_t sleeps;        // futex waits; one acquisition can sleep more than once
  std::uint64_t wait_ns;       // from the failed first attempt until it was taken
  std::uint64_t busy;          // attempts that would not wait and found it held

  LockUse& operator+=(const LockUse& other) {
    acquisitions += other.acquisitions;
    contended += other.contended;
    sleeps += other.sleeps;
    wait_ns += other.wait_ns;
    busy += other.busy;
    return *this;
  }
};

class LockCounters {
  friend struct ::brimful::Anatomy;

 public:
  // The holder took the lock at once.
  void count() { add(acquisitions_, 1); }

  // The holder had to wait.
  void count_wait(std::uint64_t sleeps, std::uint64_t ns) {
    add(acquisitions_, 1);
    add(contended_, 1);
    add(sleeps_, sleeps);
    add(wait_ns_, ns);
  }

  // The caller does not hold the lock and will not wait for it.
  void count_busy() { busy_.fetch_add(1, std::memory_order_relaxed); }  // relaxed: a count for reports

  [[nodiscard]] LockUse read() const {
    // relaxed: counts for reports, each by itself
    const auto value = [](const std::atomic<std::uint64_t>& c) { return c.load(std::memory_order_relaxed); };
    return {value(acquisitions_), value(contended_), value(sleeps_), value(wait_ns_), value(busy_)};
  }

 private:
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
    // relaxed: the lock orders the writers
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> acquisitions_{0};
  std::atomic<std::uint64_t> contended_{0};
  std::atomic<std::uint64_t> sleeps_{0};
  std::atomic<std::uint64_t> wait_ns_{0};
  std::atomic<std::uint64_t> busy_{0};
};

}  // namespace brimful::sync
