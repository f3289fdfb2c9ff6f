// SPDX-License-Identifier: MIT
//
// random-slots: each thread owns a table of slots; a step picks one at random and frees what is in it, or fills it with
// an object of a random size if it is empty.
//
// Imitates rnBench, as its users describe it in a course project on allocators (National Cheng Kung University, Linux
// kernel course 2023): N threads, S slots, T iterations and four upper bounds of the size. About half the slots are
// full at any time, lifetimes are geometric, and freed places are random: the usual life of a table of records.
//
// Threads share nothing. They wait for each other before the first step and after the last, so that all tables are
// alive together, however few CPUs there are.
//
//   --size BYTES (largest object, 16 … 1 GiB; default 1024)  --slots N (default 10000)
#include "many_threads.h"

using namespace workload;

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto largest = arguments.integer("size", 1024, 16, std::uint64_t{1} << 30);
  const auto slots = arguments.integer("slots", 10000, 1, 1U << 24);
  arguments.check();

  Report report("random-slots", common.threads);
  const std::uint64_t steps = common.scaled(16e6);
  LiveBytes live(common.threads);
  Barrier barrier(common.threads);
  const auto body = [&](unsigned index) {
    Random random(common.seed * 4099 + index);
    LiveCounter counter(live);
    auto* table = make_table<Object>(slots, counter);
    barrier.wait();
    const std::uint64_t mine = share(steps, index, common.threads);
    for (std::uint64_t i = 0; i < mine; i++) {
      Object& slot = table[random.below(slots)];
      if (slot.at != nullptr) {
        drop_object(slot, counter);
      } else {
        slot = make_object(random.between(8, largest), counter);
      }
    }
    counter.settle();
    barrier.wait();
    for (std::uint64_t i = 0; i < slots; i++) drop_object(table[i], counter);
    drop_table(table, slots, counter);
  };
  report.start();
  run_threads(common.threads, body);
  report.stop();
  live.finish(report);
  return report.print();
}
