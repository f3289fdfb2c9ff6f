// SPDX-License-Identifier: MIT
//
// grown: a heap that grows to gigabytes of small objects, is read at random, and then loses most of them.
//
// Imitates a store that lives in memory (an index, a cache, a graph): it is filled once, its objects are then visited in
// an order that has nothing to do with the order of their making, and one day most of them are dropped. Two questions
// that smaller heaps do not ask: what a read costs, which is the walk through page tables that hugepages shorten (A.
// Hunter et al., "Beyond malloc efficiency to fleet efficiency", OSDI 2021), and whether the same hugepages come back
// when nine objects in ten are gone (their opposite demand; A. Maas et al., "Learning-based Memory Allocation for C++
// Server Workloads", ASPLOS 2020, figure 1).
//
// Each object's first word leads to the next of a random cycle, so a read waits for the one before it and no table
// stands between. The table of objects itself is the workload's, written before the first measurement and counted out.
// What no allocator can avoid that does not move objects is the sum of the pages that hold a byte of a live object; it
// is counted from their addresses and stands beside the resident size.
//
//   --size MIB (of objects at --scale 1, 1 … 8192; default 256)
//   --least BYTES, --most BYTES (16 … 1 MiB; default 16 and 256; the logarithm of the sizes is uniform)
//   --reads N (in millions, at --scale 1; default 2)
//   --free PERMILLE (of the objects, at random, after the reads; default 0)
//   --light SECONDS (of a few calls every ten milliseconds after that; default 0)
// extra: ns_per_read, ns_per_object, resident_over_live, resident_over_usable (usable: with the classes' rounding, by
// malloc_usable_size), huge_mib (AnonHugePages), faults_per_gib; with --free: thinned_over_live, pages_over_live (the
// floor), thinned_over_pages.
#include <malloc.h>
#include <sys/resource.h>

#include "light.h"
#include "live.h"
#include "sizes.h"

using namespace workload;

namespace {

constexpr std::uint32_t kMost = 1U << 27;
constexpr std::uint64_t kPage = 4096;

// Not allocated, so that it is the same under every allocator.
struct Table {
  void* object[kMost];
  std::uint32_t bytes[kMost];
};
Table table;

struct Heap {
  std::uint32_t count = 0;
  std::uint64_t usable = 0;
  Live live;
};

std::uint64_t minor_faults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt);
}

void write_table(std::uint64_t objects) {
  if (objects > kMost) fail("grown: too many objects");
  for (std::uint64_t i = 0; i < objects; i++) {
    table.object[i] = &table;
    table.bytes[i] = 1;
  }
}

// Every page of an object is written, so what is asked for is resident.
void fill(Heap& heap, std::uint64_t target, const Sizes& sizes) {
  while (heap.live.now < target) {
    if (heap.count == kMost) fail("grown: too many objects");
    const std::size_t bytes = sizes[heap.count];
    auto* object = static_cast<unsigned char*>(make(bytes));
    for (std::size_t at = kPage; at + sizeof(std::uint64_t) < bytes; at += kPage) object[at] = 1;
    table.object[heap.count] = object;
    table.bytes[heap.count++] = static_cast<std::uint32_t>(bytes);
    heap.live.add(bytes);
  }
}

void shuffle(const Heap& heap, Random& random) {
  for (std::uint32_t i = heap.count; i > 1; i--) {
    const std::uint32_t other = random.below(i);
    void* const object = table.object[i - 1];
    table.object[i - 1] = table.object[other];
    table.object[other] = object;
    const std::uint32_t bytes = table.bytes[i - 1];
    table.bytes[i - 1] = table.bytes[other];
    table.bytes[other] = bytes;
  }
}

void link(const Heap& heap) {
  for (std::uint32_t i = 0; i < heap.count; i++)
    *static_cast<void**>(table.object[i]) = table.object[i + 1 == heap.count ? 0 : i + 1];
}

// Follows `reads` links; ends the program if it ends elsewhere than the table says.
void walk(const Heap& heap, std::uint64_t reads) {
  void* at = table.object[0];
  for (std::uint64_t i = 0; i < reads; i++) at = *static_cast<void**>(at);
  if (at != table.object[reads % heap.count]) fail("grown: a link was overwritten");
}

// The marks that drop() looks for.
void stamp_all(const Heap& heap) {
  for (std::uint32_t i = 0; i < heap.count; i++) stamp(table.object[i], table.bytes[i]);
}

void measure_usable(Heap& heap) {
  for (std::uint32_t i = 0; i < heap.count; i++) heap.usable += malloc_usable_size(table.object[i]);
}

// Frees from the end, where after a shuffle any objects are.
void free_down_to(Heap& heap, std::uint32_t left) {
  while (heap.count > left) {
    const std::uint32_t i = --heap.count;
    drop(table.object[i], table.bytes[i]);
    heap.live.subtract(table.bytes[i]);
  }
}

void sort_by_address(std::uint32_t count) {
  const auto place = [](const void* a, const void* b) {
    const auto x = *static_cast<const std::uint64_t*>(a);
    const auto y = *static_cast<const std::uint64_t*>(b);
    return x < y ? -1 : x > y ? 1 : 0;
  };
  std::qsort(table.object, count, sizeof(void*), place);
}

// Bytes of the pages in which a live object lies. The table's order and its sizes are lost: call it last, and only with
// objects that are left to the end of the process.
std::uint64_t pages_with_objects(std::uint32_t count) {
  // Sizes travel in the low bits that no page number needs: 20 for the pages after the first.
  for (std::uint32_t i = 0; i < count; i++) {
    const auto begin = reinterpret_cast<std::uint64_t>(table.object[i]);
    const std::uint64_t first = begin / kPage;
    const std::uint64_t further = (begin + table.bytes[i] - 1) / kPage - first;
    table.object[i] = reinterpret_cast<void*>(first << 20 | further);
  }
  sort_by_address(count);
  std::uint64_t pages = 0;
  std::uint64_t counted_to = 0;  // first page that is not counted yet
  for (std::uint32_t i = 0; i < count; i++) {
    const auto entry = reinterpret_cast<std::uint64_t>(table.object[i]);
    const std::uint64_t first = entry >> 20;
    const std::uint64_t end = first + (entry & ((1U << 20) - 1)) + 1;
    const std::uint64_t from = first > counted_to ? first : counted_to;
    if (end <= from) continue;
    pages += end - from;
    counted_to = end;
  }
  return pages * kPage;
}

double ratio(std::uint64_t above, std::uint64_t below) {
  return static_cast<double>(above) / static_cast<double>(below);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const double size = static_cast<double>(arguments.integer("size", 256, 1, 8192)) * common.scale;
  const auto least = arguments.integer("least", 16, 16, 1U << 20);
  const auto most = arguments.integer("most", 256, least, 1U << 20);
  const double reads_wanted = 1e6 * arguments.number("reads", 2, 0, 1e6);
  const std::uint64_t reads = reads_wanted > 0 ? common.scaled(reads_wanted) : 0;
  const auto freed = arguments.integer("free", 0, 0, 999);
  const double light = common.waiting(arguments.number("light", 0, 0, 3600));
  arguments.check();
  if (common.threads != 1) usage("--threads");

  Report report("grown", 1);
  Random random(common.seed);
  const Sizes sizes(Distribution::kLogarithmic, least, most, common.seed);
  const auto target = static_cast<std::uint64_t>(size * 1048576);
  // The mean of a log-uniform size, rounded down: so many objects at most, and some more.
  const double mean =
      static_cast<double>(most - least + 1) / std::log(static_cast<double>(most + 1) / static_cast<double>(least));
  write_table(static_cast<std::uint64_t>(1.02 * static_cast<double>(target) / mean) + 10000);
  const std::uint64_t before = exact_resident_bytes();

  Heap heap;
  const std::uint64_t faults = minor_faults();
  report.phase("start");
  report.start();
  const double filling = now_s();
  fill(heap, target, sizes);
  const double filled = now_s() - filling;
  report.phase("grown");
  report.extra("faults_per_gib", static_cast<double>(minor_faults() - faults) / (mib(heap.live.now) / 1024));
  report.extra("ns_per_object", filled * 1e9 / heap.count);
  measure_usable(heap);
  const std::uint64_t grown = exact_resident_bytes() - before;
  report.extra("resident_over_live", ratio(grown, heap.live.now));
  report.extra("resident_over_usable", ratio(grown, heap.usable));
  report.extra("huge_mib", mib(huge_bytes()));
  shuffle(heap, random);
  link(heap);
  report.phase("reads");
  const double reading = now_s();
  walk(heap, reads);
  if (reads > 0) report.extra("ns_per_read", (now_s() - reading) * 1e9 / static_cast<double>(reads));
  report.stop();
  report.phase("read");
  stamp_all(heap);
  report.operations = heap.count + reads;
  report.peak_live_bytes = heap.live.most;
  if (freed == 0) return report.print();  // to free gigabytes in random order would take longer than all the rest
  free_down_to(heap, static_cast<std::uint32_t>(heap.count * (1000 - freed) / 1000));
  report.phase("thinned");
  light_activity(light, random);
  report.phase("purged");
  const std::uint64_t now = exact_resident_bytes();
  const std::uint64_t thinned = now > before ? now - before : 0;
  const std::uint64_t floor = pages_with_objects(heap.count);
  report.extra("thinned_over_live", ratio(thinned, heap.live.now));
  report.extra("pages_over_live", ratio(floor, heap.live.now));
  report.extra("thinned_over_pages", ratio(thinned, floor));
  report.extra("huge_thinned_mib", mib(huge_bytes()));
  return report.print();
}
