// SPDX-License-Identifier: MIT
//
// What the workloads of several threads share: live bytes over all threads, tables of objects, a barrier.
//
// An object that one thread makes and another frees makes per-thread peaks meaningless: the maker's count only grows,
// the freer's only falls. So every thread counts its net change in a LiveCounter of its own and adds it to the common
// sum whenever it has grown or fallen by a grain (4 to 64 KiB, less with many threads). The peak of that sum is off by
// at most threads x grain, about 1 MiB, and the common line is touched once in hundreds of objects. The rejected
// alternative, one atomic addition per object, would have made the counter the thing that is measured.
//
// Nothing here spins: a thread that waits sleeps in the kernel, so that thousands of threads can share two CPUs.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "workload.h"

namespace workload {

// An object and its size; `at` is NULL when there is none (then `bytes` is 0).
struct Object {
  void* at;
  std::size_t bytes;
};

// The sum over all threads. Threads write through their LiveCounter; the main thread reads when they have ended.
class LiveBytes {
 public:
  explicit LiveBytes(unsigned threads)
      : grain_(std::clamp<std::int64_t>((std::int64_t{1} << 20) / threads, 4096, 65536)) {}

  std::int64_t grain() const { return grain_; }

  void add(std::int64_t change, std::uint64_t made) {
    objects_.fetch_add(made, std::memory_order_relaxed);  // relaxed: a statistic, read after the threads have ended
    // relaxed: the sum and its peak publish nothing; each addition sees the sum that it makes
    const std::int64_t now = sum_.fetch_add(change, std::memory_order_relaxed) + change;
    std::int64_t peak = peak_.load(std::memory_order_relaxed);  // relaxed: the exchange below decides
    // relaxed: only the greatest value matters
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }

  // Puts operations (objects made) and the peak into the report; ends the program unless all bytes were freed.
  void finish(Report& report) const {
    // relaxed: the threads have ended
    if (sum_.load(std::memory_order_relaxed) != 0) fail("the bytes freed are not the bytes made");
    report.operations = objects_.load(std::memory_order_relaxed);                                // relaxed: as above
    report.peak_live_bytes = static_cast<std::uint64_t>(peak_.load(std::memory_order_relaxed));  // relaxed: as above
  }

  // Also ends the program unless exactly `expected` objects were made.
  void finish(Report& report, std::uint64_t expected) const {
    finish(report);
    if (report.operations != expected) fail("the number of objects is not the expected one");
  }

 private:
  const std::int64_t grain_;
  alignas(64) std::atomic<std::int64_t> sum_{0};
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::uint64_t> objects_{0};
};

// One thread's part. Settles when it is destroyed, so it must not outlive its thread.
class LiveCounter {
 public:
  explicit LiveCounter(LiveBytes& all) : all_(all), grain_(all.grain()) {}
  LiveCounter(const LiveCounter&) = delete;
  LiveCounter& operator=(const LiveCounter&) = delete;
  ~LiveCounter() { settle(); }

  // An object that counts as an operation.
  void made(std::size_t bytes) {
    made_++;
    grew(bytes);
  }
  // Memory that does not: tables, batches.
  void grew(std::size_t bytes) {
    change_ += static_cast<std::int64_t>(bytes);
    if (change_ >= grain_) settle();
  }
  void freed(std::size_t bytes) {
    change_ -= static_cast<std::int64_t>(bytes);
    if (change_ <= -grain_) settle();
  }

  void settle() {
    all_.add(change_, made_);
    change_ = 0;
    made_ = 0;
  }

 private:
  LiveBytes& all_;
  const std::int64_t grain_;
  std::int64_t change_ = 0;
  std::uint64_t made_ = 0;
};

// make() and drop() of an object, counted.
inline Object make_object(std::size_t bytes, LiveCounter& counter) {
  counter.made(bytes);
  return {make(bytes), bytes};
}

inline void drop_object(Object& object, LiveCounter& counter) {
  counter.freed(object.bytes);
  drop(object.at, object.bytes);
  object = {};
}

// `count` zeroed T, from calloc, counted as live but not as an operation.
template <class T>
T* make_table(std::size_t count, LiveCounter& counter) {
  auto* table = static_cast<T*>(std::calloc(count, sizeof(T)));
  if (table == nullptr) fail("calloc returned NULL");
  counter.grew(count * sizeof(T));
  return table;
}

template <class T>
void drop_table(T* table, std::size_t count, LiveCounter& counter) {
  counter.freed(count * sizeof(T));
  std::free(table);
}

// An object that carries its own size in its first word, mixed with its address and repeated in each page and in the
// last word: for objects that are found through a shared array, where there is room for the pointer alone. A multiple
// of 8 bytes, at most 16 MiB.
using Described = std::uint64_t;

constexpr std::size_t kDescribedMost = std::size_t{16} << 20;
constexpr std::size_t kDescribedStep = 4096 / sizeof(Described);  // a mark in each page: the object is lived in

inline std::uint64_t description_of(const Described* object, std::size_t bytes) {
  return bytes ^ 0xBF58476D1CE4E5B9U ^ reinterpret_cast<std::uint64_t>(object);
}

inline Described* make_described(std::size_t bytes, LiveCounter& counter) {
  auto* object = static_cast<Described*>(std::malloc(bytes));
  if (object == nullptr) fail("malloc returned NULL");
  counter.made(bytes);
  const std::size_t words = bytes / sizeof(Described);
  const std::uint64_t mark = description_of(object, bytes);
  for (std::size_t i = 0; i < words; i += kDescribedStep) object[i] = mark;
  object[words - 1] = mark;
  return object;
}

// NULL is allowed.
inline void drop_described(Described* object, LiveCounter& counter) {
  if (object == nullptr) return;
  const std::uint64_t mark = object[0];
  const std::size_t bytes = mark ^ description_of(object, 0);
  const std::size_t words = bytes / sizeof(Described);
  if (bytes == 0 || bytes > kDescribedMost || bytes % sizeof(Described) != 0) fail("an object was overwritten");
  for (std::size_t i = 0; i < words; i += kDescribedStep) {
    if (object[i] != mark) fail("an object was overwritten");
  }
  if (object[words - 1] != mark) fail("an object was overwritten");
  counter.freed(bytes);
  std::free(object);
}

// All of `threads` wait for each other, asleep. The workloads that sweep the number of threads wait before and after
// their work: with little work for each, the first threads would be dead before the last are born otherwise.
class Barrier {
 public:
  explicit Barrier(unsigned threads) {
    if (pthread_barrier_init(&barrier_, nullptr, threads) != 0) fail("cannot make a barrier");
  }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  void wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

// The timed part of threads that begin and end it at a barrier: from the first that begins to the last that ends. The
// starts and exits of the threads, and what each does to make itself ready, are left out, so that a sweep over their
// number times the same work at each of its points. Threads call begin() and end() once each.
class TimedPart {
 public:
  void begin() {
    const std::int64_t now = now_ns();
    std::int64_t first = first_.load(std::memory_order_relaxed);  // relaxed: the exchange below decides
    // relaxed: only the least value matters; it is read after the threads have ended
    while (now < first && !first_.compare_exchange_weak(first, now, std::memory_order_relaxed)) {
    }
  }
  void end() {
    const std::int64_t now = now_ns();
    std::int64_t last = last_.load(std::memory_order_relaxed);  // relaxed: the exchange below decides
    // relaxed: only the greatest value matters; it is read after the threads have ended
    while (now > last && !last_.compare_exchange_weak(last, now, std::memory_order_relaxed)) {
    }
  }
  // Called when the threads have ended.
  void finish(Report& report) const {
    // relaxed: the threads have ended
    report.timed(static_cast<double>(first_.load(std::memory_order_relaxed)) * 1e-9,
                 static_cast<double>(last_.load(std::memory_order_relaxed)) * 1e-9);  // relaxed: as above
  }

 private:
  static std::int64_t now_ns() { return static_cast<std::int64_t>(now_s() * 1e9); }

  alignas(64) std::atomic<std::int64_t> first_{INT64_MAX};
  alignas(64) std::atomic<std::int64_t> last_{INT64_MIN};
};

// Which of `names` an argument says; any other word ends the program with 2.
inline unsigned choice(Arguments& arguments, const char* name, std::initializer_list<const char*> names) {
  const char* said = arguments.text(name, *names.begin());
  unsigned index = 0;
  for (const char* each : names) {
    if (std::strcmp(said, each) == 0) return index;
    index++;
  }
  usage(name);
}

// `total` in as equal parts as can be: the part of thread `index` of `threads`.
inline std::uint64_t share(std::uint64_t total, unsigned index, unsigned threads) {
  return total / threads + (index < total % threads ? 1 : 0);
}

}  // namespace workload
