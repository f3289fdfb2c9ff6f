// SPDX-License-Identifier: MIT
//
// hold_times: how long the locks of the slow paths are held on this computer when nobody else wants them, as one line of
// JSON in ns. The whole call is timed, so each figure is an upper bound; of many rounds the shortest counts, because other
// work on the computer can only make a round longer. For docs/scaling.md.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "brimful/brimful.h"
#include "slots/central.h"
#include "slots/front_end.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful {
namespace {

constexpr int kRounds = 101;
constexpr int kCalls = 1000;

// ns for one call.
template <class Action>
double least_ns(Action action) {
  double least = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int n = 0; n < kCalls; ++n) action();
    const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
    least = std::min(least, passed.count() / kCalls);
  }
  return least;
}

// A slab made and released among others that stay: two acquisitions of the heap lock.
double slab_ns(std::size_t bytes) {
  const slots::SlowScope scope;
  constexpr std::size_t kNeighbours = 200;
  const ClassId id = class_of(bytes);
  std::vector<Slab*> kept;
  std::vector<Slab*> holes;
  for (std::size_t i = 0; i < kNeighbours; ++i) {
    kept.push_back(slots::make_slab(id, kOwnerMoving));
    holes.push_back(slots::make_slab(id, kOwnerMoving));
  }
  for (Slab* slab : holes) slots::release_slab(slab);
  const double ns = least_ns([id] { slots::release_slab(slots::make_slab(id, kOwnerMoving)); });
  for (Slab* slab : kept) slots::release_slab(slab);
  return ns;
}

// A slab put into the index and taken out again: two acquisitions of a central lock.
double central_ns() {
  const slots::SlowScope scope;
  const ClassId id = class_of(64);
  slots::Central& index = slots::central[id];
  Slab* slab = slots::make_slab(id, kOwnerMoving);
  const double ns = least_ns([&index, &slab] {
    index.add(slab);
    slab = index.take(kOwnerMoving);
  });
  slots::release_slab(slab);
  return ns;
}

double hit_ns() {
  return least_ns([] {
    void* object = brimful_malloc(64);
    __asm__ volatile("" : : "r"(object) : "memory");
    brimful_free(object);
  });
}

}  // namespace
}  // namespace brimful

int main() {
  using namespace brimful;
  brimful_free(brimful_malloc(1));
  std::printf(
      "{\"malloc_free_hit_ns\": %.1f, \"slab_64_ns\": %.1f, \"slab_1024_ns\": %.1f, \"slab_32768_ns\": %.1f, "
      "\"central_add_take_ns\": %.1f}\n",
      hit_ns(), slab_ns(64), slab_ns(1024), slab_ns(32768), central_ns());
}
