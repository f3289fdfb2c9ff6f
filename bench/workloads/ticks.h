// SPDX-License-Identifier: MIT
//
// Time of single calls: the processor's time-stamp counter, in nanoseconds, and counters in HdrHistogram's layout.
//
// clock_gettime costs more than a malloc; the counter costs less than most and ticks at a constant rate. begin() and
// end() keep the processor from starting the call before the first reading or reading again before the call is done
// (G. Paoloni, "How to Benchmark Code Execution Times on Intel IA-32 and IA-64", Intel, 2010; on 64-bit ARM an
// instruction barrier does the same). What a measurement costs by itself is measured, too, and subtracted: the median
// of many empty ones. A result below zero counts as zero.
//
// The layout is HdrHistogram's for two significant digits from 1 ns (G. Tene, hdrhistogram.org): buckets of 1 ns up to
// 255 ns, then 128 buckets for each power of two, so that a value is known to better than 1 %. Recording the
// lowest value of each bucket, count times, into an HdrHistogram(1, 2^34, 2) gives the same histogram there. The C
// library of that name is not in Debian 12, and a static array keeps the measurement from allocating.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "workload.h"

namespace workload {

#if defined(__x86_64__)
inline std::uint64_t begin_ticks() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
  return std::uint64_t{high} << 32 | low;
}
inline std::uint64_t end_ticks() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high) : : "rcx", "memory");
  return std::uint64_t{high} << 32 | low;
}
#elif defined(__aarch64__)
inline std::uint64_t begin_ticks() {
  std::uint64_t now = 0;
  asm volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(now) : : "memory");
  return now;
}
inline std::uint64_t end_ticks() { return begin_ticks(); }
#else
#error "no time-stamp counter is known for this processor"
#endif

// Ticks of the counter as nanoseconds, less what a measurement costs.
class Ticker {
 public:
  // Takes a fifteenth of a second.
  Ticker() {
    const double from_s = now_s();
    const std::uint64_t from = begin_ticks();
    sleep_s(0.05);
    const double spent_s = now_s() - from_s;
    const std::uint64_t ticks = end_ticks() - from;
    ns_per_tick_ = spent_s * 1e9 / static_cast<double>(ticks);
    factor_ = static_cast<std::uint64_t>(ns_per_tick_ * 0x1p32);
    static std::uint64_t empty[kEmpty];
    for (std::uint64_t& one : empty) {
      const std::uint64_t begin = begin_ticks();
      one = end_ticks() - begin;
    }
    std::nth_element(empty, empty + kEmpty / 2, empty + kEmpty);
    overhead_ = empty[kEmpty / 2];
  }

  std::uint64_t nanoseconds(std::uint64_t begin, std::uint64_t end) const {
    const std::uint64_t ticks = end > begin + overhead_ ? end - begin - overhead_ : 0;
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(ticks) * factor_ >> 32);
  }
  double ns_per_tick() const { return ns_per_tick_; }
  double overhead_ns() const { return static_cast<double>(overhead_) * ns_per_tick_; }

 private:
  static constexpr std::size_t kEmpty = 100001;
  double ns_per_tick_;
  std::uint64_t factor_;  // nanoseconds for each tick, in units of 2^-32
  std::uint64_t overhead_;
};

class Histogram {
 public:
  static constexpr unsigned kHalfBits = 7;  // 128 buckets for each power of two
  static constexpr unsigned kMostBits = 34;
  static constexpr std::size_t kBuckets = (kMostBits - kHalfBits + 1) << kHalfBits;

  void record(std::uint64_t ns) {
    count_++;
    if (ns > max_) max_ = ns;
    counts_[bucket_of(ns)]++;
  }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; i++) counts_[i] += other.counts_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t max() const { return max_; }
  std::uint64_t count_in(std::size_t bucket) const { return counts_[bucket]; }

  // The lowest value of the bucket in which the quantile (0 … 1) lies.
  std::uint64_t quantile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; i++) {
      seen += counts_[i];
      if (seen > wanted) return lowest_in(i);
    }
    return max_;
  }

  static std::size_t bucket_of(std::uint64_t value) {
    const std::uint64_t most = (std::uint64_t{1} << kMostBits) - 1;
    const std::uint64_t held = value < most ? value : most;
    const auto bits = static_cast<unsigned>(std::bit_width(held | ((1U << (kHalfBits + 1)) - 1)));
    const unsigned shift = bits - kHalfBits - 1;
    return (std::size_t{shift} << kHalfBits) + static_cast<std::size_t>(held >> shift);
  }
  static std::uint64_t lowest_in(std::size_t bucket) {
    if (bucket < std::size_t{1} << (kHalfBits + 1)) return bucket;
    const std::size_t shift = (bucket >> kHalfBits) - 1;
    return (std::uint64_t{bucket} - (std::uint64_t{shift} << kHalfBits)) << shift;
  }

 private:
  std::uint64_t counts_[kBuckets];
  std::uint64_t count_;
  std::uint64_t max_;
};

// `count` zeroed objects straight from the kernel, resident from the start if `resident`.
template <class T>
T* map_zeroed(std::size_t count, bool resident) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (resident ? MAP_POPULATE : 0);
  void* pages = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages == MAP_FAILED) fail("mmap failed");
  return static_cast<T*>(pages);
}

}  // namespace workload
