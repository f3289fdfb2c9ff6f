// SPDX-License-Identifier: MIT
//
// What every workload of the bench is made of: arguments, clock, random numbers, checked objects, threads, the report.
//
// A workload is one program that does a FIXED amount of work (so many operations, not so many seconds: then its time,
// its instructions and its faults can be compared between allocators) under whichever malloc serves it:
//
//   workload [--threads N] [--scale X] [--seed S] [--size BYTES] [--NAME VALUE]...
//
// `--scale 1` takes about half a second on a slow core; the work grows in proportion. It prints one line of JSON to
// standard output as its last act, and exits with 0. Nothing is printed when the work could not be done: a message on
// standard error and exit code 1, 2 for bad arguments.
//
//   {"workload": "larson", "threads": 2, "operations": 4000000, "seconds": 0.512, "peak_live_bytes": 1048576,
//    "failed_allocations": 0, "malloc": "/usr/lib/libx.so", "phases": [{"name": "idle", "at_s": 0.31}], "extra": {}}
//
// - `operations`: what the workload counts (a malloc and its free are one); `seconds`: of the timed part alone.
// - `peak_live_bytes`: the bytes asked for and not freed, at their most; set against the resident size by the bench.
// - `failed_allocations`: never timed as successes; a workload that meets one stops, unless failing is its subject.
// - `malloc`: the file whose malloc this process calls, as the dynamic loader bound it: the proof of the preload.
//
// Every object is stamped when it is made and looked at before it is freed, so an allocator that hands out memory twice
// fails the run instead of winning it. Stamp and look cost two accesses to a line that a real program touches anyway.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace workload {

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "workload: %s\n", what);
  std::_Exit(1);
}

[[noreturn]] inline void usage(const char* argument) {
  std::fprintf(stderr, "workload: bad argument: %s\n", argument);
  std::_Exit(2);
}

// Seconds on the monotonic clock.
inline double now_s() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline void sleep_s(double seconds) {
  timespec t = {static_cast<time_t>(seconds),
                static_cast<long>((seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e9)};
  while (nanosleep(&t, &t) != 0) {
  }
}

// Arguments as `--name value` pairs; an unknown or unread one ends the program with 2 (call check() after reading).
class Arguments {
 public:
  Arguments(int argc, char** argv) : argc_(argc), argv_(argv) {
    if (argc % 2 == 0) usage(argv[argc - 1]);
    if (argc > 2 * kMost) usage("too many");
  }

  double number(const char* name, double otherwise, double least, double most) {
    const char* text = find(name);
    if (text == nullptr) return otherwise;
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (end == text || *end != 0 || !(value >= least) || !(value <= most)) usage(name);
    return value;
  }
  std::uint64_t integer(const char* name, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) {
    return static_cast<std::uint64_t>(
        number(name, static_cast<double>(otherwise), static_cast<double>(least), static_cast<double>(most)));
  }
  const char* text(const char* name, const char* otherwise) {
    const char* found = find(name);
    return found != nullptr ? found : otherwise;
  }

  void check() const {
    for (int i = 1; i < argc_; i += 2) {
      if (!read_[i / 2]) usage(argv_[i]);
    }
  }

 private:
  static constexpr int kMost = 32;

  const char* find(const char* name) {
    const char* found = nullptr;
    for (int i = 1; i < argc_; i += 2) {
      if (std::strncmp(argv_[i], "--", 2) != 0 || std::strcmp(argv_[i] + 2, name) != 0) continue;
      read_[i / 2] = true;
      found = argv_[i + 1];
    }
    return found;
  }

  int argc_;
  char** argv_;
  bool read_[kMost] = {};
};

// xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016. A few cycles a
// number, so that the generator is not what is measured.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 0x6A09E667F3BCC909U) {
    if (state_ == 0) state_ = 1;
  }
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DU;
  }
  // Uniform in [0, bound), bound < 2^32, without a division.
  std::uint32_t below(std::uint64_t bound) { return static_cast<std::uint32_t>((next() >> 32) * bound >> 32); }
  // Uniform in [least, most].
  std::size_t between(std::size_t least, std::size_t most) { return least + below(most - least + 1); }
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

// --- checked objects --------------------------------------------------------------------------------------------------

inline std::uint64_t stamp_of(const void* object, std::size_t bytes) {
  return (reinterpret_cast<std::uint64_t>(object) ^ bytes) * 0x9E3779B97F4A7C15U;
}

// Writes an object's mark into its first word (and last, from 16 bytes on); smaller ones get one byte.
inline void stamp(void* object, std::size_t bytes) {
  const std::uint64_t mark = stamp_of(object, bytes);
  auto* at = static_cast<unsigned char*>(object);
  if (bytes < sizeof mark) {
    if (bytes > 0) *at = static_cast<unsigned char>(mark);
    return;
  }
  std::memcpy(at, &mark, sizeof mark);
  if (bytes >= 2 * sizeof mark) std::memcpy(at + bytes - sizeof mark, &mark, sizeof mark);
}

// Ends the program if the mark is not what stamp() wrote.
inline void check(const void* object, std::size_t bytes) {
  const std::uint64_t mark = stamp_of(object, bytes);
  const auto* at = static_cast<const unsigned char*>(object);
  if (bytes < sizeof mark) {
    if (bytes > 0 && *at != static_cast<unsigned char>(mark)) fail("an object was overwritten");
    return;
  }
  std::uint64_t first = 0;
  std::uint64_t last = mark;
  std::memcpy(&first, at, sizeof first);
  if (bytes >= 2 * sizeof mark) std::memcpy(&last, at + bytes - sizeof last, sizeof last);
  if (first != mark || last != mark) fail("an object was overwritten");
}

// malloc, checked and stamped. Ends the program when there is no memory.
inline void* make(std::size_t bytes) {
  void* object = std::malloc(bytes);
  if (object == nullptr) fail("malloc returned NULL");
  stamp(object, bytes);
  return object;
}

// free, after a look at the mark. NULL is allowed.
inline void drop(void* object, std::size_t bytes) {
  if (object != nullptr) check(object, bytes);
  std::free(object);
}

// --- threads ----------------------------------------------------------------------------------------------------------

constexpr std::size_t kStackBytes = std::size_t{256} << 10;  // thousands of threads must fit

// Starts a thread that calls body() and ends. `body` must outlive it; the caller joins it.
template <class Body>
pthread_t start_thread(Body& body, std::size_t stack_bytes = kStackBytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const auto enter = [](void* argument) -> void* {
    (*static_cast<Body*>(argument))();
    return nullptr;
  };
  pthread_t thread;
  if (pthread_create(&thread, &attributes, enter, &body) != 0) fail("cannot create a thread");
  pthread_attr_destroy(&attributes);
  return thread;
}

// Runs body(index) in `count` threads (0 … count-1) and waits for them all. With one thread the caller runs it, as a
// single-threaded program would: some allocators are faster there.
template <class Body>
void run_threads(unsigned count, Body& body) {
  if (count == 1) return static_cast<void>(body(0U));
  struct Start {
    Body* body;
    unsigned index;
    pthread_t thread;
    void operator()() { (*body)(index); }
  };
  auto* starts = static_cast<Start*>(std::calloc(count, sizeof(Start)));
  if (starts == nullptr) fail("calloc returned NULL");
  for (unsigned i = 0; i < count; i++) {
    starts[i] = {&body, i, {}};
    starts[i].thread = start_thread(starts[i]);
  }
  for (unsigned i = 0; i < count; i++) pthread_join(starts[i].thread, nullptr);
  std::free(starts);
}

// --- the report -------------------------------------------------------------------------------------------------------

class Report {
 public:
  Report(const char* workload, unsigned threads) : workload_(workload), threads_(threads), begin_s_(now_s()) {}

  // The timed part. Call start() again to leave out what came before, e.g. a warm-up.
  void start() { start_s_ = now_s(); }
  void stop() { stop_s_ = now_s(); }
  // The same when several threads have taken the two times: seconds as of now_s().
  void timed(double start_s, double stop_s) {
    start_s_ = start_s;
    stop_s_ = stop_s;
  }

  // A moment that the bench marks in the curve of memory over time ("peak", "freed", "idle", …). At most 16.
  void phase(const char* name) {
    if (phases_ == kMostPhases) fail("too many phases");
    phase_[phases_++] = {name, now_s() - begin_s_};
  }
  // A further figure, by a name that says its unit. At most 32.
  void extra(const char* name, double value) {
    if (extras_ == kMostExtras) fail("too many extras");
    extra_[extras_++] = {name, value};
  }

  std::uint64_t operations = 0;
  std::uint64_t peak_live_bytes = 0;
  std::uint64_t failed_allocations = 0;

  // Of the timed part, once it has stopped.
  double seconds() const { return stop_s_ - start_s_; }

  // Prints the line; its return value is main's.
  int print() const {
    return print([] {});
  }

  // The same with further keys, which more() prints to standard output, each after a comma and a space.
  template <class More>
  int print(const More& more) const {
    Dl_info info = {};
    const auto function = reinterpret_cast<void*>(&std::malloc);
    const bool found = dladdr(function, &info) != 0 && info.dli_fname != nullptr;
    std::printf("{\"workload\": \"%s\", \"threads\": %u, \"operations\": %" PRIu64 ", \"seconds\": %.9f, ", workload_,
                threads_, operations, seconds());
    std::printf("\"peak_live_bytes\": %" PRIu64 ", \"failed_allocations\": %" PRIu64
                ", \"malloc\": \"%s\", \"phases\": [",
                peak_live_bytes, failed_allocations, found ? info.dli_fname : "");
    for (int i = 0; i < phases_; i++) {
      std::printf("%s{\"name\": \"%s\", \"at_s\": %.6f}", i == 0 ? "" : ", ", phase_[i].name, phase_[i].value);
    }
    std::printf("], \"extra\": {");
    for (int i = 0; i < extras_; i++)
      std::printf("%s\"%s\": %.9g", i == 0 ? "" : ", ", extra_[i].name, extra_[i].value);
    std::printf("}");
    more();
    std::printf("}\n");
    return std::fflush(stdout) == 0 ? 0 : 1;
  }

 private:
  static constexpr int kMostPhases = 16;
  static constexpr int kMostExtras = 32;
  struct Named {
    const char* name;
    double value;
  };

  const char* workload_;
  unsigned threads_;
  double begin_s_;
  double start_s_ = 0;
  double stop_s_ = 0;
  Named phase_[kMostPhases];
  Named extra_[kMostExtras];
  int phases_ = 0;
  int extras_ = 0;
};

// What every workload reads: --threads, --scale, --seed.
struct Common {
  static constexpr unsigned kMostThreads = 16384;
  static constexpr double kFullWait = 0.25;

  explicit Common(Arguments& arguments, unsigned default_threads = 1)
      : threads(static_cast<unsigned>(arguments.integer("threads", default_threads, 1, kMostThreads))),
        scale(arguments.number("scale", 1, 1e-6, 1e6)),
        seed(arguments.integer("seed", 1, 0, std::uint64_t{1} << 53)) {}

  // A time to wait in seconds: as it is, but cut short below a quarter of the work, for tests.
  double waiting(double seconds) const { return scale < kFullWait ? seconds * scale / kFullWait : seconds; }
  // `count` operations at --scale 1, at least 1.
  std::uint64_t scaled(double count) const { return static_cast<std::uint64_t>(count * scale > 1 ? count * scale : 1); }

  unsigned threads;
  double scale;
  std::uint64_t seed;
};

}  // namespace workload
