// SPDX-License-Identifier: MIT
//
// fragmentation: a long life in eight phases; each has sizes of its own, and of the objects of the phase before, one in
// ten stays. The bytes in use are the same all the time; what grows over the life is the allocator's waste.
//
// Written after M. Johnstone, P. Wilson, "The Memory Fragmentation Problem: Solved?", ISMM 1998, whose point is that
// waste comes from how real lives change over time and not from random sizes alone, and after the synthetic traces of
// B. Powers, D. Tench, E. Berger, A. McGregor, "Mesh: Compacting Memory Management for C/C++ Applications", PLDI 2019,
// where survivors of one phase pin pages that the next phase, of other sizes, can't use.
//
// The moments at which phases end are marked; the resident size there, divided by the bytes in use, is reported. In the
// end all but one object in twenty are freed: "emptied" shows what the survivors pin.
//
//   --size MIB (bytes in use, 1 … 2048; default 64)
// extra: resident_over_live at the end of each phase, and _mean and _worst over the phases.
#include <bit>

#include "live.h"

using namespace workload;

namespace {

constexpr std::size_t kGrain = 16;
constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kMost = 1U << 25;

struct Phase {
  const char* name;   // of the moment at its end
  const char* extra;  // of its figure
  unsigned least_bits, most_bits;
  double operations;  // at --scale 1
};
constexpr Phase kPhases[] = {
    {"16-256 B", "resident_over_live_1", 4, 8, 3e6},   {"64 B-1 KiB", "resident_over_live_2", 6, 10, 3e6},
    {"0.5-4 KiB", "resident_over_live_3", 9, 12, 2e6}, {"32-128 B", "resident_over_live_4", 5, 7, 3e6},
    {"2-16 KiB", "resident_over_live_5", 11, 14, 6e5}, {"64-512 B", "resident_over_live_6", 6, 9, 3e6},
    {"8-64 KiB", "resident_over_live_7", 13, 16, 2e5}, {"16 B-8 KiB", "resident_over_live_8", 4, 13, 2e6},
};

// The objects in use, in no order. Not allocated, so that the table is the same under every allocator.
struct Table {
  void* object[kMost];
  std::uint16_t grains[kMost];
};
Table table;

class Heap {
 public:
  void fill_to(std::uint64_t target, const Phase& phase, Random& random) {
    while (live.now < target) add(phase, random);
  }
  void free_random(Random& random) { remove(random.below(count_)); }
  // Frees all but about one in `keep`.
  void thin_out(std::uint32_t keep, Random& random) {
    for (std::uint32_t i = count_; i-- > 0;)
      if (random.below(keep) != 0) remove(i);
  }
  // Resident bytes for each byte in use; the part of the table that was touched counts as used.
  double resident_over_live() const {
    const std::uint64_t used = live.now + most_ * (sizeof(void*) + sizeof(std::uint16_t));
    return static_cast<double>(resident_bytes()) / static_cast<double>(used);
  }
  std::uint32_t count() const { return count_; }

  Live live;

 private:
  void add(const Phase& phase, Random& random) {
    if (count_ == kMost) fail("fragmentation: too many objects");
    const std::size_t base = std::size_t{1} << random.between(phase.least_bits, phase.most_bits - 1);
    const std::size_t bytes = (base + random.below(base)) & ~(kGrain - 1);
    auto* object = static_cast<unsigned char*>(make(bytes));
    for (std::size_t at = kPage; at + kGrain < bytes; at += kPage) object[at] = 1;  // resident as a whole
    table.object[count_] = object;
    table.grains[count_++] = static_cast<std::uint16_t>(bytes / kGrain);
    if (count_ > most_) most_ = count_;
    live.add(bytes);
  }
  void remove(std::uint32_t i) {
    const std::size_t bytes = table.grains[i] * kGrain;
    drop(table.object[i], bytes);
    live.subtract(bytes);
    count_--;
    table.object[i] = table.object[count_];
    table.grains[i] = table.grains[count_];
  }

  std::uint32_t count_ = 0;
  std::uint64_t most_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const std::uint64_t target = arguments.integer("size", 64, 1, 2048) << 20;
  arguments.check();
  if (common.threads != 1) usage("--threads");

  Report report("fragmentation", 1);
  Random random(common.seed);
  Heap heap;
  double sum = 0;
  double worst = 0;
  report.start();
  for (const Phase& phase : kPhases) {
    if (heap.count() != 0) heap.thin_out(10, random);
    heap.fill_to(target, phase, random);
    const std::uint64_t operations = common.scaled(phase.operations);
    for (std::uint64_t i = 0; i < operations; i++) {
      heap.free_random(random);
      heap.fill_to(target, phase, random);
    }
    report.operations += operations;
    report.phase(phase.name);
    const double ratio = heap.resident_over_live();
    report.extra(phase.extra, ratio);
    sum += ratio;
    if (ratio > worst) worst = ratio;
  }
  heap.thin_out(20, random);
  report.stop();
  report.phase("emptied");
  report.extra("resident_over_live_emptied", heap.resident_over_live());
  report.extra("resident_over_live_mean", sum / 8);
  report.extra("resident_over_live_worst", worst);
  report.peak_live_bytes = heap.live.most;
  while (heap.count() != 0) heap.free_random(random);
  return report.print();
}
