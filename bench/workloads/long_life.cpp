// SPDX-License-Identifier: MIT
//
// long-life: twelve phases of a life with 128 MiB in use all the time. Each phase prefers other sizes, in a circle, so
// that old ones come back; of the objects made in a phase four in five die young, and the fifth outlives it and dies at
// any later moment. What grows over such a life is fragmentation: free places between survivors, of sizes that nobody
// asks for any more.
//
// Written after M. Johnstone, P. Wilson, "The Memory Fragmentation Problem: Solved?", ISMM 1998 (waste is a matter of
// how lives change), and after the fleet of A. Maas et al., "Learning-based Memory Allocation for C++ Server Workloads",
// ASPLOS 2020 (a few long lives among many short ones are what pins pages). Unlike fragmentation.cpp, survivors here
// outlast several phases, and there is no moment at which most objects are freed together.
//
// Ullage is 1 - live / resident, taken when a phase ends, in percent; the resident size is that above the process with
// its tables written and no object yet.
//
//   --size MIB (in use, 4 … 2048; default 128)  --phases N (1 … 14; default 12)
// extra: ullage_percent_1 … _N, ullage_mean_percent, ullage_last_percent, ullage_worst_percent, resident_last_mib
#include "live.h"
#include "sizes.h"

using namespace workload;

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kMost = 1U << 24;
constexpr int kMostPhases = 14;
constexpr std::uint64_t kOld = 5;  // one object in so many outlives its phase
constexpr double kTurns = 1;       // in a phase, the bytes in use are replaced so many times at --scale 1

struct SizeRange {
  std::size_t least, most;
  const char* name;
};
constexpr SizeRange kRanges[] = {
    {16, 128, "16-128 B"},  {48, 400, "48-400 B"}, {200, 2000, "200-2000 B"}, {24, 96, "24-96 B"},
    {1000, 9000, "1-9 kB"}, {64, 640, "64-640 B"}, {5000, 60000, "5-60 kB"},  {16, 4096, "16 B-4 KiB"},
};
constexpr int kRangeCount = sizeof kRanges / sizeof kRanges[0];

// Not allocated, so that they are the same under every allocator. `Young` and `old` objects, each in no order.
struct Table {
  void* object[kMost];
  std::uint32_t bytes[kMost];
  std::uint32_t count = 0;
};
Table young;
Table old;

void write(Table& table, std::uint32_t objects) {
  for (std::uint32_t i = 0; i < objects; i++) {
    table.object[i] = &table;
    table.bytes[i] = 1;
  }
}

void add(Table& table, std::size_t bytes, Live& live) {
  if (table.count == kMost) fail("long-life: too many objects");
  auto* object = static_cast<unsigned char*>(make(bytes));
  for (std::size_t at = kPage; at + sizeof(std::uint64_t) < bytes; at += kPage) object[at] = 1;  // resident as a whole
  table.object[table.count] = object;
  table.bytes[table.count++] = static_cast<std::uint32_t>(bytes);
  live.add(bytes);
}

void remove(Table& table, std::uint32_t i, Live& live) {
  drop(table.object[i], table.bytes[i]);
  live.subtract(table.bytes[i]);
  table.count--;
  table.object[i] = table.object[table.count];
  table.bytes[i] = table.bytes[table.count];
}

// Frees until there is room: old objects if they hold more than half, else young ones.
void make_room(std::uint64_t target, std::uint64_t& old_bytes, Random& random, Live& live) {
  while (live.now > target) {
    if (old_bytes > target / 2 || young.count == 0) {
      const std::uint32_t i = random.below(old.count);
      old_bytes -= old.bytes[i];
      remove(old, i, live);
    } else {
      remove(young, random.below(young.count), live);
    }
  }
}

// One phase; returns its operations.
std::uint64_t live_through(const Sizes& sizes, std::uint64_t target, std::uint64_t work, std::uint64_t& old_bytes,
                           Random& random, Live& live) {
  std::uint64_t made = 0;
  std::uint64_t operations = 0;
  while (made < work) {
    const std::size_t bytes = sizes[operations];
    if (random.below(kOld) == 0) {
      add(old, bytes, live);
      old_bytes += bytes;
    } else {
      add(young, bytes, live);
    }
    made += bytes;
    operations++;
    make_room(target, old_bytes, random, live);
  }
  return operations;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const std::uint64_t target = arguments.integer("size", 128, 4, 2048) << 20;
  const auto phases = static_cast<int>(arguments.integer("phases", 12, 1, kMostPhases));
  arguments.check();
  if (common.threads != 1) usage("--threads");

  Report report("long-life", 1);
  Random random(common.seed);
  Live live;
  std::uint64_t old_bytes = 0;
  const auto objects = static_cast<std::uint32_t>(target / 32);
  write(young, objects < kMost ? objects : kMost);
  write(old, objects < kMost ? objects : kMost);
  const std::uint64_t before = exact_resident_bytes();
  const std::uint64_t work = common.scaled(kTurns * static_cast<double>(target));
  double sum = 0;
  double worst = 0;
  double ullage = 0;
  report.start();
  for (int phase = 0; phase < phases; phase++) {
    const SizeRange& range = kRanges[phase % kRangeCount];
    const Sizes sizes(Distribution::kLogarithmic, range.least, range.most, common.seed + static_cast<unsigned>(phase));
    report.operations += live_through(sizes, target, work, old_bytes, random, live);
    report.phase(range.name);
    const auto held = static_cast<double>(exact_resident_bytes() - before);
    ullage = 100 * (1 - static_cast<double>(live.now) / held);
    static char names[kMostPhases][24];
    std::snprintf(names[phase], sizeof names[phase], "ullage_percent_%d", phase + 1);
    report.extra(names[phase], ullage > 0 ? ullage : 0);
    sum += ullage > 0 ? ullage : 0;
    if (ullage > worst) worst = ullage;
  }
  report.stop();
  report.extra("ullage_mean_percent", sum / phases);
  report.extra("ullage_last_percent", ullage > 0 ? ullage : 0);
  report.extra("ullage_worst_percent", worst);
  report.extra("resident_last_mib", mib(exact_resident_bytes() - before));
  report.peak_live_bytes = live.most;
  while (young.count != 0) remove(young, young.count - 1, live);
  while (old.count != 0) remove(old, old.count - 1, live);
  return report.print();
}
