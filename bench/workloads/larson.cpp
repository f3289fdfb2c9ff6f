// SPDX-License-Identifier: MIT
//
// larson: a server under load. Every thread owns a table of objects; a step frees a random one and puts a new one of a
// random size in its place. After a while the thread dies and hands the table to a successor that it starts itself:
// objects "bleed" from one thread to the next, and are freed by threads that did not make them.
//
// Imitates the simulation in Larson and Krishnan, "Memory allocation for long-running server applications", ISMM 1998,
// with the work fixed instead of the time. As there, the main thread makes the first objects of all tables.
//
// It shows what freeing another thread's object costs, and whether the memory of a dead thread is used again.
//
// A successor joins its predecessor at the end of its own life only: so the two may overlap, and there are never more
// than two threads of one table.
//
//   --size BYTES (largest, default 1000)  --objects N (per table; default 5000, at most 200000 in all tables)
//   --generations N (threads that live one after another on a table, default 10)
//   --delete plain|sized (which operator delete; objects come from operator new)
#include <semaphore.h>

#include <new>

#include "many_threads.h"

// clang 14 declares the sized form only when told to.
void operator delete(void* object, std::size_t bytes) noexcept;

using namespace workload;

namespace {

constexpr std::size_t kLeast = 8;

struct Shared {
  Shared(unsigned threads, std::size_t most, std::uint64_t all, unsigned lives, bool by_size)
      : largest(most), steps(all), generations(lives), sized(by_size), live(threads), start(threads) {
    if (sem_init(&ended, 0, 0) != 0) fail("cannot make a semaphore");
  }

  const std::size_t largest;
  const std::uint64_t steps;  // of all tables and generations
  const unsigned generations;
  const bool sized;
  LiveBytes live;
  Barrier start;
  sem_t ended;  // posted by the last thread of each table
};

Object make_new(std::size_t bytes, LiveCounter& counter) {
  counter.made(bytes);
  const Object object = {::operator new(bytes), bytes};
  stamp(object.at, bytes);
  return object;
}

void drop_new(const Object& object, bool sized, LiveCounter& counter) {
  counter.freed(object.bytes);
  check(object.at, object.bytes);
  if (sized) {
    ::operator delete(object.at, object.bytes);
  } else {
    ::operator delete(object.at);
  }
}

// One table and the threads that own it one after another.
class Chain {
 public:
  Chain(Shared& shared, Object* table, std::size_t count, std::uint64_t seed, std::uint64_t steps)
      : shared_(shared), table_(table), count_(count), steps_(steps), random_(seed) {}

  // The life of one thread.
  void operator()() {
    if (generation_ == 0) {
      shared_.start.wait();
    }
    {
      LiveCounter counter(shared_.live);
      const std::uint64_t steps = share(steps_, generation_, shared_.generations);
      for (std::uint64_t i = 0; i < steps; i++) {
        Object& object = table_[random_.below(count_)];
        drop_new(object, shared_.sized, counter);
        object = make_new(random_.between(kLeast, shared_.largest), counter);
      }
    }
    if (generation_ > 0) pthread_join(last_, nullptr);
    last_ = pthread_self();
    generation_++;
    if (generation_ < shared_.generations) {
      start_thread(*this);
    } else {
      sem_post(&shared_.ended);
    }
  }

  // Called when the last thread has posted.
  void join() const { pthread_join(last_, nullptr); }

 private:
  Shared& shared_;
  Object* const table_;
  const std::size_t count_;
  const std::uint64_t steps_;
  Random random_;
  unsigned generation_ = 0;
  pthread_t last_ = {};  // the thread that handed the table on
};

// The objects of all tables, made by the main thread and dealt out like cards.
void fill(Object* tables, std::size_t count, std::size_t largest, std::uint64_t seed, LiveCounter& counter) {
  Random random(seed);
  for (std::size_t i = 0; i < count; i++) tables[i] = make_new(random.between(kLeast, largest), counter);
  for (std::size_t i = count - 1; i > 0; i--) std::swap(tables[i], tables[random.below(i + 1)]);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 2);
  const auto largest = arguments.integer("size", 1000, kLeast, 1U << 20);
  const auto objects = arguments.integer("objects", std::min(5000U, 200000U / common.threads), 1, 1U << 24);
  const auto generations = static_cast<unsigned>(arguments.integer("generations", 10, 1, 1U << 20));
  const bool sized = choice(arguments, "delete", {"plain", "sized"}) == 1;
  arguments.check();
  std::set_new_handler([] { fail("operator new found no memory"); });

  Report report("larson", common.threads);
  Shared shared(common.threads, largest, common.scaled(20e6), generations, sized);
  const std::size_t all = objects * common.threads;
  {
    LiveCounter counter(shared.live);
    auto* tables = make_table<Object>(all, counter);
    auto* chains = make_table<Chain*>(common.threads, counter);
    report.start();
    fill(tables, all, largest, common.seed, counter);
    for (unsigned i = 0; i < common.threads; i++) {
      chains[i] = new Chain(shared, tables + i * objects, objects, common.seed * 4099 + i + 1,
                            share(shared.steps, i, common.threads));
    }
    for (unsigned i = 0; i < common.threads; i++) {
      // The first of a table; its id reaches the successor through pthread_self().
      start_thread(*chains[i]);
    }
    for (unsigned i = 0; i < common.threads; i++) {
      while (sem_wait(&shared.ended) != 0) {
      }
    }
    for (unsigned i = 0; i < common.threads; i++) {
      chains[i]->join();
      delete chains[i];
    }
    report.stop();
    for (std::size_t i = 0; i < all; i++) drop_new(tables[i], sized, counter);
    drop_table(chains, common.threads, counter);
    drop_table(tables, all, counter);
  }
  shared.live.finish(report, shared.steps + all);
  report.extra("threads_started", static_cast<double>(common.threads) * generations);
  return report.print();
}
