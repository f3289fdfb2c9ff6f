// SPDX-License-Identifier: MIT
//
// The memory itself: programs of a few accesses whose outcomes under C++'s memory model are known (Lahav et al., PLDI 2017;
// Alglave et al., "Herding cats", TOPLAS 2014). Each must have exactly the outcomes that are listed: one that is missing
// would hide faults of the library, one too many would report what can't be.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "explorer.h"

namespace brimful::weak {
namespace {

using std::atomic_thread_fence;
constexpr auto kRlx = std::memory_order_relaxed;
constexpr auto kAcq = std::memory_order_acquire;
constexpr auto kRel = std::memory_order_release;
constexpr auto kAcqRelease = std::memory_order_acq_rel;
constexpr auto kSc = std::memory_order_seq_cst;

std::atomic<int> x{0};
std::atomic<int> y{0};
std::atomic<int> z{0};
int data = 0;
int r[4];

struct Litmus {
  const char* name;
  unsigned threads;
  void (*run)(unsigned);
  unsigned results;      // of r[], and then x or y as they end where `ends`
  bool ends;
  const char* expected;  // all outcomes, in order; "race": what must be reported
};

// Threads write what they read into cells of their own.
template <auto kStore, auto kLoad>
void message(unsigned t) {  // MP
  if (t == 0) {
    x.store(1, kRlx);
    y.store(1, kStore);
  } else {
    r[0] = y.load(kLoad);
    r[1] = x.load(kRlx);
  }
}
template <auto kStore, auto kLoad>
void plain_message(unsigned t) {
  if (t == 0) {
    data = 1;
    y.store(1, kStore);
  } else if (y.load(kLoad) == 1) {
    r[0] = data;
  }
}
template <auto kBefore, auto kBehind>
void message_by_fences(unsigned t) {
  if (t == 0) {
    x.store(1, kRlx);
    atomic_thread_fence(kBefore);
    y.store(1, kRlx);
  } else {
    r[0] = y.load(kRlx);
    atomic_thread_fence(kBehind);
    r[1] = x.load(kRlx);
  }
}
template <auto kStore, auto kLoad>
void store_buffer(unsigned t) {  // SB
  (t == 0 ? x : y).store(1, kStore);
  r[t] = (t == 0 ? y : x).load(kLoad);
}
template <auto kFirst, auto kSecond>
void store_buffer_by_fences(unsigned t) {
  (t == 0 ? x : y).store(1, kRlx);
  if (t == 0) atomic_thread_fence(kFirst);
  if (t == 1) atomic_thread_fence(kSecond);
  r[t] = (t == 0 ? y : x).load(kRlx);
}
void store_buffer_fence_and_rmw(unsigned t) {
  if (t == 0) {
    x.store(1, kRlx);
    atomic_thread_fence(kSc);
    r[0] = y.load(kRlx);
  } else {
    y.fetch_or(1, kSc);
    r[1] = x.load(kSc);
  }
}
void load_buffer(unsigned t) {  // LB
  r[t] = (t == 0 ? x : y).load(kRlx);
  (t == 0 ? y : x).store(1, kRlx);
}
template <auto kStore, auto kLoad>
void independent_reads(unsigned t) {  // IRIW
  if (t == 0) x.store(1, kStore);
  if (t == 1) y.store(1, kStore);
  if (t == 2) r[0] = x.load(kLoad), r[1] = y.load(kLoad);
  if (t == 3) r[2] = y.load(kLoad), r[3] = x.load(kLoad);
}
template <auto kLoad, auto kStore>
void causality(unsigned t) {  // WRC
  if (t == 0) x.store(1, kRel);
  if (t == 1) {
    r[0] = x.load(kLoad);
    y.store(r[0], kStore);
  }
  if (t == 2) {
    r[1] = y.load(kAcq);
    r[2] = x.load(kRlx);
  }
}
template <auto kLoad>
void plain_causality(unsigned t) {
  if (t == 0) {
    data = 1;
    x.store(1, kRel);
  }
  if (t == 1) y.store(x.load(kLoad), kRel);
  if (t == 2 && y.load(kAcq) == 1) r[0] = data;
}
template <auto kStore>
void two_writes(unsigned t) {  // 2+2W
  std::atomic<int>& first = t == 0 ? x : y;
  std::atomic<int>& second = t == 0 ? y : x;
  first.store(1, kStore);
  second.store(2, kStore);
}
void coherent_reads(unsigned t) {  // CoRR
  if (t == 0) {
    x.store(1, kRlx);
    x.store(2, kRlx);
  } else {
    r[0] = x.load(kRlx);
    r[1] = x.load(kRlx);
  }
}
void read_own_write(unsigned t) {  // CoWR, CoRW
  if (t == 0) x.store(1, kRlx);
  if (t == 1) {
    x.store(2, kRlx);
    r[0] = x.load(kRlx);
  }
}
template <auto kOrder>
void release_sequence(unsigned t) {
  if (t == 0) {
    data = 1;
    x.store(1, kRel);
  }
  if (t == 1) x.fetch_add(2, kOrder);
  if (t == 2 && x.load(kAcq) == 3) r[0] = data;
}
void broken_release_sequence(unsigned t) {
  if (t == 0) {
    data = 1;
    x.store(1, kRel);
    x.store(2, kRlx);  // ends it since C++20
  }
  if (t == 1 && x.load(kAcq) == 2) r[0] = data;
}
void counting(unsigned t) { r[t] = x.fetch_add(1, kRlx); }
template <auto kFail>
void failed_exchange(unsigned t) {
  if (t == 0) {
    data = 1;
    x.store(1, kRel);
  } else {
    int expected = 7;
    if (!x.compare_exchange_strong(expected, 8, kAcqRelease, kFail) && expected == 1) r[0] = data;
  }
}
void racing_writes(unsigned t) { data = static_cast<int>(t); }
void mixed_access(unsigned t) {
  if (t == 0) reinterpret_cast<volatile int&>(x) = 1;
  if (t == 1) x.store(2, kRlx);
}
template <auto kOrder>
void lock(unsigned t) {
  int expected = 0;
  if (!x.compare_exchange_strong(expected, 1, kOrder, kRlx)) return;
  ++data;
  x.store(0, kRel);
  (void)t;
}
template <auto kOrder>
void store_and_fence(unsigned t) {  // a seq_cst store before another location's relaxed load orders nothing
  (t == 0 ? x : y).store(1, kOrder);
  r[t] = (t == 0 ? y : x).load(kRlx);
}

const Litmus kTests[] = {
    {"MP relaxed", 2, message<kRlx, kRlx>, 2, false, "00 01 10 11"},
    {"MP release only", 2, message<kRel, kRlx>, 2, false, "00 01 10 11"},
    {"MP acquire only", 2, message<kRlx, kAcq>, 2, false, "00 01 10 11"},
    {"MP release, acquire", 2, message<kRel, kAcq>, 2, false, "00 01 11"},
    {"MP of plain data", 2, plain_message<kRel, kAcq>, 1, false, "0 1"},
    {"MP of plain data, relaxed store", 2, plain_message<kRlx, kAcq>, 1, false, "race"},
    {"MP of plain data, relaxed load", 2, plain_message<kRel, kRlx>, 1, false, "race"},
    {"MP by fences", 2, message_by_fences<kRel, kAcq>, 2, false, "00 01 11"},
    {"MP by fences, both release", 2, message_by_fences<kRel, kRel>, 2, false, "00 01 10 11"},
    {"MP by fences, both acquire", 2, message_by_fences<kAcq, kAcq>, 2, false, "00 01 10 11"},
    {"SB relaxed", 2, store_buffer<kRlx, kRlx>, 2, false, "00 01 10 11"},
    {"SB release, acquire", 2, store_buffer<kRel, kAcq>, 2, false, "00 01 10 11"},
    {"SB seq_cst", 2, store_buffer<kSc, kSc>, 2, false, "01 10 11"},
    {"SB seq_cst stores, relaxed loads", 2, store_and_fence<kSc>, 2, false, "00 01 10 11"},
    {"SB by fences", 2, store_buffer_by_fences<kSc, kSc>, 2, false, "01 10 11"},
    {"SB by one fence", 2, store_buffer_by_fences<kSc, kRlx>, 2, false, "00 01 10 11"},
    {"SB by acq_rel fences", 2, store_buffer_by_fences<kAcqRelease, kAcqRelease>, 2, false, "00 01 10 11"},
    {"SB by a fence and a seq_cst RMW", 2, store_buffer_fence_and_rmw, 2, false, "01 10 11"},
    {"LB", 2, load_buffer, 2, false, "00 01 10"},
    {"IRIW release, acquire", 4, independent_reads<kRel, kAcq>, 4, false,
     "0000 0001 0010 0011 0100 0101 0110 0111 1000 1001 1010 1011 1100 1101 1110 1111"},
    {"IRIW seq_cst", 4, independent_reads<kSc, kSc>, 4, false,
     "0000 0001 0010 0011 0100 0101 0110 0111 1000 1001 1011 1100 1101 1110 1111"},
    {"WRC acquire, release", 3, causality<kAcq, kRel>, 3, false, "000 001 100 101 111"},
    {"WRC relaxed load", 3, causality<kRlx, kRel>, 3, false, "000 001 100 101 111"},
    {"WRC relaxed store", 3, causality<kAcq, kRlx>, 3, false, "000 001 100 101 110 111"},
    {"WRC of plain data", 3, plain_causality<kAcq>, 1, false, "0 1"},
    {"WRC of plain data, relaxed load", 3, plain_causality<kRlx>, 1, false, "race"},
    {"2+2W relaxed", 2, two_writes<kRlx>, 0, true, "11 12 21 22"},
    {"2+2W release", 2, two_writes<kRel>, 0, true, "11 12 21 22"},
    {"2+2W seq_cst", 2, two_writes<kSc>, 0, true, "12 21 22"},
    {"CoRR", 2, coherent_reads, 2, false, "00 01 02 11 12 22"},
    {"CoWR", 2, read_own_write, 1, true, "110 210 220"},
    {"a release sequence", 3, release_sequence<kRlx>, 1, false, "0 1"},
    {"a store ends a release sequence", 2, broken_release_sequence, 1, false, "race"},
    {"counting", 3, counting, 3, false, "012 021 102 120 201 210"},
    {"a failed exchange that acquires", 2, failed_exchange<kAcq>, 1, false, "0 1"},
    {"a failed exchange that does not", 2, failed_exchange<kRlx>, 1, false, "race"},
    {"racing writes", 2, racing_writes, 0, false, "race"},
    {"a plain and an atomic write", 2, mixed_access, 0, false, "race"},
    {"a lock", 3, lock<kAcq>, 0, false, ""},
    {"a lock that does not acquire", 2, lock<kRlx>, 0, false, "race"},
};

const Litmus* current = nullptr;

void clear(unsigned) {
  x = y = z = 0;
  data = 0;
  std::memset(r, 0, sizeof r);
}

void collect() {
  char outcome[8] = {};
  unsigned length = 0;
  for (unsigned i = 0; i < current->results; ++i) outcome[length++] = static_cast<char>('0' + r[i]);
  if (current->ends) {
    outcome[length++] = static_cast<char>('0' + x.load());
    outcome[length++] = static_cast<char>('0' + y.load());
  }
  record(outcome);
}

bool holds(const Litmus& test) {
  current = &test;
  const Scenario scenario = {test.name, test.threads, clear, test.run, collect, kUnbounded};
  const Result result = explore(scenario, kUnbounded, 1000000);
  std::string text = outcomes();
  if (!result.fault.empty()) text = result.fault.substr(0, 4);
  const bool good = text == test.expected && (result.is_complete || !result.fault.empty());
  std::printf("%s  %6lu runs  %s: %s\n", good ? "ok    " : "FAILED", static_cast<unsigned long>(result.runs), test.name,
              text.c_str());
  if (!good) std::printf("        expected: %s; %s\n", test.expected, result.fault.c_str());
  return good;
}

}  // namespace
}  // namespace brimful::weak

int main() {
  unsigned failed = 0;
  for (const brimful::weak::Litmus& test : brimful::weak::kTests) failed += brimful::weak::holds(test) ? 0 : 1;
  std::printf("%zu tests, %u failed\n", std::size(brimful::weak::kTests), failed);
  return failed == 0 ? 0 : 1;
}
