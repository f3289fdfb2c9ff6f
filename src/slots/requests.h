// SPDX-License-Identifier: MIT
//
// What programs ask for, by class, as far as slow paths see it: the statistics' only source for the waste inside objects,
// because nothing is noted on a hit, and an object does not know how many of its bytes were asked for.
//
// A request that missed is as good a sample of its class as any other: whether malloc hits depends on how many objects
// the class has left, not on the bytes that are asked for. Of classes of small objects about one request in a slab is
// seen, of those above 8 KiB most, of large and huge blocks all. Counted like events (slots/events.h): per context, by
// plain loads and stores, lossy by design.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "classes/size_classes.h"

namespace brimful::slots {

// Beside the classes one kind more: blocks of their own.
inline constexpr std::size_t kLargeRequests = kClassCount;
inline constexpr std::size_t kRequestKinds = kClassCount + 1;

struct RequestSums {
  std::uint64_t count;
  std::uint64_t requested_bytes;
  std::uint64_t granted_bytes;
};
using RequestCounts = std::array<RequestSums, kRequestKinds>;

class Requests {
 public:
  void count(std::size_t kind, std::size_t requested, std::size_t granted) {
    Sums& sums = sums_[kind];
    add(sums.count, 1);
    add(sums.requested_bytes, requested);
    add(sums.granted_bytes, granted);
  }

  // For a context of fresh zeros, which will be counted in at once: one fault, where reading first makes two.
  void begin() { sums_[0].count.store(0, std::memory_order_relaxed); }  // relaxed: zero as it was

  void add_to(RequestCounts& into) const {
    for (std::size_t i = 0; i < kRequestKinds; ++i) {
      into[i].count += read(sums_[i].count);
      into[i].requested_bytes += read(sums_[i].requested_bytes);
      into[i].granted_bytes += read(sums_[i].granted_bytes);
    }
  }

 private:
  struct Sums {
    std::atomic<std::uint64_t> count;
    std::atomic<std::uint64_t> requested_bytes;
    std::atomic<std::uint64_t> granted_bytes;
  };

  static std::uint64_t read(const std::atomic<std::uint64_t>& sum) {
    return sum.load(std::memory_order_relaxed);  // relaxed: a count for reports
  }
  static void add(std::atomic<std::uint64_t>& sum, std::uint64_t value) {
    sum.store(read(sum) + value, std::memory_order_relaxed);  // relaxed: a count for reports
  }

  Sums sums_[kRequestKinds] = {};
};

// Notes a request that the slow path serves, and the bytes that its block has. For the context that this thread runs in, as count(Event).
void count_request(std::size_t kind, std::size_t requested, std::size_t granted);

// Sums over all contexts. O(contexts · classes), no lock.
RequestCounts count_requests();

}  // namespace brimful::slots
