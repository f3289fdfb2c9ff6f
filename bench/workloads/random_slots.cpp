// SPDX-License-Identifier: MIT
//
// random-slots: each thread owns a table of slots; a step picks one at random and frees what is in it, or fills it with
// an object of a random size if it is empty.
//
// Imitates rnBench, as its users describe it in a course project on allocators (National Cheng Kung University, Linux
// kernel course 2023): N threads, S slots, T iterations and four upper bounds of the size. About half the slots are
// full at any time, lifetimes are geometric, and freed places are random: the usual life of a table of records.
//
//   --size BYTES (largest object, 16 … 1 GiB; default 1024)  --slots N (default 10000)
#include "workload.h"

using namespace workload;

namespace {

struct Slot {
  void* object;
  std::size_t bytes;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto largest = arguments.integer("size", 1024, 16, std::uint64_t{1} << 30);
  const auto slots = arguments.integer("slots", 10000, 1, 1U << 24);
  arguments.check();

  Report report("random-slots", common.threads);
  const std::uint64_t steps = common.scaled(16e6) / common.threads;
  std::atomic<std::uint64_t> peak{0};
  const auto body = [&](unsigned index) {
    Random random(common.seed * 4099 + index);
    auto* table = static_cast<Slot*>(std::calloc(slots, sizeof(Slot)));
    if (table == nullptr) fail("calloc returned NULL");
    std::uint64_t live = slots * sizeof(Slot);
    std::uint64_t most = live;
    for (std::uint64_t i = 0; i < steps; i++) {
      Slot& slot = table[random.below(slots)];
      if (slot.object != nullptr) {
        drop(slot.object, slot.bytes);
        live -= slot.bytes;
        slot.object = nullptr;
      } else {
        slot.bytes = random.between(8, largest);
        slot.object = make(slot.bytes);
        live += slot.bytes;
        if (live > most) most = live;
      }
    }
    for (std::uint64_t i = 0; i < slots; i++) drop(table[i].object, table[i].bytes);
    std::free(table);
    peak.fetch_add(most, std::memory_order_relaxed);  // relaxed: read after the threads have ended
  };
  report.start();
  run_threads(common.threads, body);
  report.stop();
  report.operations = steps * common.threads;                     // each a malloc or a free
  report.peak_live_bytes = peak.load(std::memory_order_relaxed);  // relaxed: the threads have ended
  return report.print();
}
