// SPDX-License-Identifier: MIT
//
// smart-heap: objects of mixed sizes made in runs. Every other object of a run is freed at once, the last made first,
// as a stack of temporaries is; the rest of the run stays a while and is then freed the other way round, the first
// made first. With --hand-over yes, what stays goes through places that all threads share, so it is mostly freed by
// another thread than the one that made it.
//
// Imitates sh6bench and sh8bench of MicroQuill (the makers of SmartHeap), as the README of mimalloc-bench describes
// them: some objects freed in LIFO order and others in reverse order; in sh8bench some by other threads besides.
//
// It shows free lists under both orders at once, holes left between objects that stay, and (with hand-over) batches of
// remote frees.
//
//   --hand-over no|yes  --size BYTES (largest, default 1000)  --run N (objects of a run, default 100)
//   --kept N (runs that stay, of each thread; default 64, at most 4096 in all)
#include "many_threads.h"

using namespace workload;

namespace {

constexpr std::size_t kMostRun = 1000;

struct Run {
  std::size_t count;
  Object objects[kMostRun];
};

using Place = std::atomic<Run*>;

struct Shared {
  const std::size_t largest;
  const std::size_t run;
  const std::size_t kept;
  const std::size_t place_count;
  const bool hand_over;
  Place* places;
  LiveBytes live;
  Barrier barrier;
};

std::size_t bytes_of(std::size_t objects) { return offsetof(Run, objects) + objects * sizeof(Object); }

// `count` objects, of which those in odd places are left when it returns.
Run* make_run(std::size_t count, std::size_t largest, Random& random, LiveCounter& counter) {
  auto* run = static_cast<Run*>(std::malloc(bytes_of(count)));
  if (run == nullptr) fail("malloc returned NULL");
  counter.grew(bytes_of(count));
  run->count = count;
  for (std::size_t i = 0; i < count; i++) run->objects[i] = make_object(random.between(1, largest), counter);
  for (std::size_t i = count; i-- > 0;) {
    if (i % 2 == 0) drop_object(run->objects[i], counter);
  }
  return run;
}

void drop_run(Run* run, LiveCounter& counter) {
  if (run == nullptr) return;
  for (std::size_t i = 1; i < run->count; i += 2) drop_object(run->objects[i], counter);
  counter.freed(bytes_of(run->count));
  std::free(run);
}

void work(Shared& shared, unsigned index, std::uint64_t objects, Random random) {
  LiveCounter counter(shared.live);
  const std::size_t mine = index * shared.kept;
  shared.barrier.wait();
  for (std::uint64_t i = 0; objects > 0; i++) {
    const std::size_t count = std::min<std::uint64_t>(objects, shared.run);
    objects -= count;
    Run* run = make_run(count, shared.largest, random, counter);
    const std::size_t place = shared.hand_over ? random.below(shared.place_count) : mine + i % shared.kept;
    // acq_rel, pairs with: every other exchange of a place (the run and its objects)
    drop_run(shared.places[place].exchange(run, std::memory_order_acq_rel), counter);
  }
  counter.settle();
  shared.barrier.wait();
  for (std::size_t i = 0; i < shared.kept; i++) {
    // relaxed: the barrier has ordered all that was written before it
    drop_run(shared.places[mine + i].exchange(nullptr, std::memory_order_relaxed), counter);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 2);
  const bool hand_over = choice(arguments, "hand-over", {"no", "yes"}) == 1;
  const auto largest = arguments.integer("size", 1000, 1, 1U << 24);
  const auto run = arguments.integer("run", 100, 1, kMostRun);
  const auto kept = arguments.integer("kept", std::min(64U, 4096U / common.threads), 1, 1U << 20);
  arguments.check();

  Report report(hand_over ? "sh8" : "sh6", common.threads);
  const std::uint64_t objects = common.scaled(32e6);
  const std::size_t place_count = kept * common.threads;
  auto* places = static_cast<Place*>(std::calloc(place_count, sizeof(Place)));
  if (places == nullptr) fail("calloc returned NULL");
  Shared shared = {
      largest, run, kept, place_count, hand_over, places, LiveBytes(common.threads), Barrier(common.threads)};
  const auto body = [&](unsigned index) {
    work(shared, index, share(objects, index, common.threads), Random(common.seed * 4099 + index));
  };
  report.start();
  run_threads(common.threads, body);
  report.stop();
  std::free(places);
  shared.live.finish(report, objects);
  return report.print();
}
