// SPDX-License-Identifier: MIT
//
// leak-at-thread-exit: thousands of short threads. Each makes a hundred objects, frees a third of them, leaves the rest
// to whoever comes later, frees what earlier threads left in the same places, and ends. At every moment nearly all live
// memory belongs to threads that are dead.
//
// Imitates the question of mleak in mimalloc-bench ("check that terminated threads don't leak memory", its README says)
// with the hand-over of Larson and Krishnan (ISMM 1998) driven to its extreme. If a dead thread's heap is not adopted,
// memory grows with the number of threads that ever lived.
//
// It shows the price of a thread's first malloc and of its exit, and, by the resident size against the live bytes,
// whether what dead threads leave is used again. Nothing is leaked in the end: the main thread frees the rest.
//
// Threads come in waves of --threads and are always true threads, with --threads 1 too.
//
//   --objects N (of a thread, default 100)  --size BYTES (largest, default 2048)  --places N (default 20000)
#include "many_threads.h"

using namespace workload;

namespace {

using Place = std::atomic<Described*>;

struct Shared {
  const std::size_t objects;
  const std::size_t largest;
  const std::size_t place_count;
  Place* places;
  LiveBytes& live;
};

struct Life {
  const Shared* shared;
  std::uint64_t seed;
  pthread_t thread;

  void operator()() {
    Random random(seed);
    LiveCounter counter(shared->live);
    for (std::size_t i = 0; i < shared->objects; i++) {
      Described* object = make_described(8 * random.between(1, shared->largest / 8), counter);
      if (i % 3 == 0) {
        drop_described(object, counter);
      } else {
        Place& place = shared->places[random.below(shared->place_count)];
        // acq_rel, pairs with: every other exchange of a place (the object's size and marks)
        drop_described(place.exchange(object, std::memory_order_acq_rel), counter);
      }
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 2);
  const auto objects = arguments.integer("objects", 100, 1, 1U << 20);
  const auto largest = arguments.integer("size", 2048, 8, 1U << 20);
  const auto place_count = arguments.integer("places", 20000, 1, 1U << 24);
  arguments.check();

  Report report("leak-at-thread-exit", common.threads);
  const std::uint64_t starts = common.scaled(20000);
  LiveBytes live(common.threads);
  {
    LiveCounter counter(live);
    const Shared shared = {objects, largest, place_count, make_table<Place>(place_count, counter), live};
    auto* lives = make_table<Life>(common.threads, counter);
    report.start();
    for (std::uint64_t started = 0; started < starts;) {
      const auto wave = static_cast<unsigned>(std::min<std::uint64_t>(common.threads, starts - started));
      for (unsigned i = 0; i < wave; i++) {
        lives[i] = {&shared, common.seed * 4099 + started++, {}};
        lives[i].thread = start_thread(lives[i]);
      }
      for (unsigned i = 0; i < wave; i++) pthread_join(lives[i].thread, nullptr);
    }
    report.stop();
    report.phase("all threads dead");
    // relaxed: the threads that wrote here were joined
    for (std::size_t i = 0; i < place_count; i++) {
      drop_described(shared.places[i].load(std::memory_order_relaxed), counter);  // relaxed: as above
    }
    drop_table(lives, common.threads, counter);
    drop_table(shared.places, place_count, counter);
  }
  live.finish(report, starts * objects);
  report.extra("threads_started", static_cast<double>(starts));
  return report.print();
}
