// SPDX-License-Identifier: MIT
//
// cross-thread-reuse: one thread makes 300 MB of objects and they are freed, by itself or by another thread; it stays
// alive, asleep. Then a second thread makes 300 MB of the same sizes. Is it given the memory that the first one had?
//
// Written after what users report of arenas and per-thread heaps (glibc's arenas among others): memory that a thread
// has freed is stranded in its arena, and a program whose load moves from thread to thread pays for its peak once per
// thread. An allocator that lets every thread have it grows by nothing.
//
// The bytes are spread evenly over the octaves of sizes from 16 bytes to 32 KiB, so nearly all objects are small. What
// is measured is the growth of the resident size from the first peak to the second, in percent of the first, less what
// was resident before (the tables that hold the objects, which are written to beforehand).
//
//   --size MIB (of each part at --scale 1, default 300)  --free-by self|other
// extra: resident_first_mib, resident_freed_mib, resident_second_mib, growth_percent. `seconds` is the time of all
// three parts.
#include <sys/mman.h>

#include "live.h"
#include "many_threads.h"
#include "sizes.h"

using namespace workload;

namespace {

constexpr std::size_t kLeast = 16;
constexpr std::size_t kMost = 32768;
constexpr std::size_t kPage = 4096;

struct Tables {
  std::size_t most;
  std::size_t count;
  Object* objects;  // mapped, and not the allocator's
};

// Makes objects until `bytes` are live; every page of them is written.
void fill(Tables& tables, const Sizes& sizes, std::uint64_t bytes, LiveCounter& counter) {
  std::uint64_t live = 0;
  for (tables.count = 0; live < bytes && tables.count < tables.most; tables.count++) {
    const Object object = make_object(sizes[tables.count], counter);
    auto* at = static_cast<unsigned char*>(object.at);
    for (std::size_t i = kPage; i + 2 * sizeof(std::uint64_t) < object.bytes; i += kPage) at[i] = 1;
    tables.objects[tables.count] = object;
    live += object.bytes;
  }
  if (live < bytes) fail("the tables are too small");
}

void empty(Tables& tables, LiveCounter& counter) {
  for (std::size_t i = 0; i < tables.count; i++) drop_object(tables.objects[i], counter);
}

Tables make_tables(std::uint64_t bytes) {
  const std::size_t most = bytes / 64 + 4096;  // the mean size is above 100 bytes
  void* at = mmap(nullptr, most * sizeof(Object), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) fail("cannot map the tables");
  std::memset(at, 0, most * sizeof(Object));
  return {most, 0, static_cast<Object*>(at)};
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 2);
  const auto size = static_cast<double>(arguments.integer("size", 300, 1, 16384));
  const bool by_other = choice(arguments, "free-by", {"self", "other"}) == 1;
  arguments.check();
  if (common.threads != 2) usage("--threads");

  Report report("cross-thread-reuse", common.threads);
  const std::uint64_t bytes = std::max<std::uint64_t>(common.scaled(size * 1048576), 1U << 16);
  const Sizes sizes(Distribution::kPower, kLeast, kMost, common.seed);
  Tables tables = make_tables(bytes);
  LiveBytes live(common.threads);
  Barrier step(common.threads);
  const std::uint64_t base = exact_resident_bytes();
  std::uint64_t first = 0;
  std::uint64_t freed = 0;
  std::uint64_t second = 0;
  std::uint64_t made = 0;
  const auto body = [&](unsigned index) {
    LiveCounter counter(live);
    if (index == 0) {
      report.start();
      fill(tables, sizes, bytes, counter);
      made = tables.count;
      first = exact_resident_bytes();
      report.phase("first peak");
    }
    step.wait();
    if (index == (by_other ? 1U : 0U)) {
      empty(tables, counter);
      freed = exact_resident_bytes();
      report.phase("freed");
    }
    step.wait();
    if (index == 1) {
      fill(tables, sizes, bytes, counter);
      second = exact_resident_bytes();
      report.phase("second peak");
      empty(tables, counter);
      report.stop();
    }
    step.wait();  // the first thread lives until the second is done
  };
  run_threads(common.threads, body);
  live.finish(report, 2 * made);
  report.extra("resident_first_mib", mib(first - base));
  report.extra("resident_freed_mib", mib(freed > base ? freed - base : 0));
  report.extra("resident_second_mib", mib(second - base));
  report.extra("growth_percent", growth_percent(first, second, base));
  return report.print();
}
