// SPDX-License-Identifier: MIT
//
// thread-storm: a million threads start and end, a dozen of them alive at any time. Each makes some objects, frees
// half of them, leaves the other half in a mailbox, and frees what earlier threads left there. Does memory stay flat,
// and does the program reach its end?
//
// Written after servers with a thread for each connection or task. Larson and Krishnan (ISMM 1998) asked first what
// becomes of a dead thread's memory; leak-at-thread-exit asks it in waves in which nobody is alive in between, here a
// thread is always just starting while another ends, and all that a thread leaves in the allocator (its cache, its
// identity, its place in lists) is left a million times.
//
// Each lane is a chain: a thread starts its successor as its last act, and the successor joins it. So at most two
// threads of a lane exist at a time. The resident size is read when a tenth of the threads has started, and at the
// end, both times with all lanes alive.
//
//   --threads N (lanes, default 12)  --objects N (of a thread, default 20)  --size BYTES (largest, default 2048)
//   --places N (of the mailbox, default 4000)
// extra: threads_started, resident_tenth_mib, resident_end_mib, growth_percent.
#include <semaphore.h>

#include "live.h"
#include "many_threads.h"

using namespace workload;

namespace {

using Place = std::atomic<Described*>;

struct Shared {
  const std::uint64_t starts;
  const std::size_t objects;
  const std::size_t largest;
  const std::size_t place_count;
  Place* const places;
  LiveBytes& live;
  sem_t* const ended;  // posted by the last thread of each lane
  std::atomic<std::uint64_t> started{0};
  std::uint64_t resident_tenth = 0;  // written by the one thread whose number is a tenth of all
  std::uint64_t resident_end = 0;    // written by the one thread with the last number
};

// What one thread does with the allocator.
void live_once(Shared& shared, Random& random) {
  LiveCounter counter(shared.live);
  for (std::size_t i = 0; i < shared.objects; i++) {
    Described* object = make_described(8 * random.between(1, shared.largest / 8), counter);
    if (i % 2 == 0) {
      drop_described(object, counter);
      continue;
    }
    // acq_rel, pairs with: every other exchange of a place (the object's size and marks)
    Described* older = shared.places[random.below(shared.place_count)].exchange(object, std::memory_order_acq_rel);
    drop_described(older, counter);
  }
}

class Lane {
 public:
  Lane(Shared& shared, std::uint64_t seed) : shared_(shared), random_(seed) {}

  // The life of one thread.
  void operator()() {
    // relaxed: each number is drawn once; what a thread writes by it is read after all have ended
    const std::uint64_t number = shared_.started.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number <= shared_.starts) live_once(shared_, random_);
    if (number == tenth()) shared_.resident_tenth = exact_resident_bytes();
    if (number == shared_.starts) shared_.resident_end = exact_resident_bytes();
    if (has_predecessor_) pthread_join(last_, nullptr);
    has_predecessor_ = true;
    last_ = pthread_self();
    if (number < shared_.starts) {
      start_thread(*this);
    } else {
      sem_post(shared_.ended);
    }
  }

  // Called when the last thread has posted.
  void join() const { pthread_join(last_, nullptr); }

 private:
  std::uint64_t tenth() const { return std::max<std::uint64_t>(shared_.starts / 10, 1); }

  Shared& shared_;
  Random random_;
  bool has_predecessor_ = false;
  pthread_t last_ = {};
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 12);
  const auto objects = arguments.integer("objects", 20, 1, 1U << 20);
  const auto largest = arguments.integer("size", 2048, 8, 1U << 20);
  const auto place_count = arguments.integer("places", 4000, 1, 1U << 24);
  arguments.check();

  Report report("thread-storm", common.threads);
  const std::uint64_t starts = std::max<std::uint64_t>(common.scaled(1e6), common.threads);
  LiveBytes live(common.threads);
  sem_t ended;
  if (sem_init(&ended, 0, 0) != 0) fail("cannot make a semaphore");
  {
    LiveCounter counter(live);
    auto* places = make_table<Place>(place_count, counter);
    auto* lanes = make_table<Lane*>(common.threads, counter);
    Shared shared = {starts, objects, largest, place_count, places, live, &ended};
    report.start();
    for (unsigned i = 0; i < common.threads; i++) {
      lanes[i] = new Lane(shared, common.seed * 4099 + i);
      start_thread(*lanes[i]);
    }
    for (unsigned i = 0; i < common.threads; i++) {
      while (sem_wait(&ended) != 0) {
      }
    }
    for (unsigned i = 0; i < common.threads; i++) {
      lanes[i]->join();
      delete lanes[i];
    }
    report.stop();
    for (std::size_t i = 0; i < place_count; i++) {
      drop_described(places[i].load(std::memory_order_relaxed), counter);  // relaxed: the threads were joined
    }
    drop_table(lanes, common.threads, counter);
    drop_table(places, place_count, counter);
    report.extra("threads_started", static_cast<double>(starts));
    report.extra("resident_tenth_mib", mib(shared.resident_tenth));
    report.extra("resident_end_mib", mib(shared.resident_end));
    report.extra("growth_percent", growth_percent(shared.resident_tenth, shared.resident_end));
  }
  live.finish(report, starts * objects);
  return report.print();
}
