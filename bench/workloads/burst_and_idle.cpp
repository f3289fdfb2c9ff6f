// SPDX-License-Identifier: MIT
//
// burst-and-idle: a program allocates 256 MiB, frees it, and then waits: first without a single call to the allocator,
// then with a trickle of small ones. Does the memory come back?
//
// Written after what users report of services (mimalloc issues 351, 383 and 1282, envoy issue 39006 on tcmalloc): the
// memory of a peak stays for hours, because an allocator that gives back pages only in passing needs calls to do so,
// and an idle service makes none. The still part comes first on purpose: after the trickle there would be nothing left
// to learn from it.
//
//   --size MIB (of the burst at --scale 1; at most 2 GiB with the scale; default 256)
//   --least BYTES, --most BYTES (of an object, 16 … 1 MiB; default 16 and 65535; their logarithm is uniform)
//   --idle SECONDS (of each of the two parts, default 2.5; shorter below --scale 0.25)
//   --still SECONDS, --light SECONDS (of one part, instead of --idle)
//   --calls NUMBER, --kinds NUMBER (of the trickle: so many calls a second of so many sizes; default 0: 2,000 of any size)
//   --survivors PERMILLE (objects that are not freed, default 0)
// Between the two parts one large object is made and freed: with that call an allocator without a thread of its own can
// do what it has put off ("within one tick").
// extra: resident_peak_mib, resident_freed_mib, resident_still_end_mib, resident_one_call_mib, resident_idle_end_mib;
// held_still_mib, held_one_call_mib, held_light_mib (and _percent of the burst): the same without what was resident before the burst and what is
// still in use. `seconds` is the time of the burst and its frees, without the waiting.
#include "light.h"
#include "live.h"
#include "sizes.h"

using namespace workload;

namespace {

constexpr std::uint32_t kMost = 1U << 20;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kLarge = std::size_t{1} << 20;

struct Table {
  unsigned char* object[kMost];
  std::uint32_t bytes[kMost];
};
Table table;

// So that its pages are no part of the burst.
void write_table() {
  for (std::uint32_t i = 0; i < kMost; i++) {
    table.object[i] = reinterpret_cast<unsigned char*>(&table);
    table.bytes[i] = 1;
  }
}

// Every page is written.
std::uint32_t burst(std::uint64_t target, const Sizes& sizes, Live& live) {
  std::uint32_t count = 0;
  while (live.now < target && count < kMost) {
    const std::size_t bytes = sizes[count];
    auto* object = static_cast<unsigned char*>(make(bytes));
    for (std::size_t at = kPage; at + sizeof(std::uint64_t) < bytes; at += kPage) object[at] = 1;
    table.object[count] = object;
    table.bytes[count++] = static_cast<std::uint32_t>(bytes);
    live.add(bytes);
  }
  return count;
}

// Frees all but `survivors` of each thousand, in the order of their making; returns how many stay.
std::uint32_t free_burst(std::uint32_t count, std::uint64_t survivors, Random& random, Live& live) {
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < count; i++) {
    if (random.below(1000) < survivors) {
      table.object[kept] = table.object[i];
      table.bytes[kept++] = table.bytes[i];
      continue;
    }
    drop(table.object[i], table.bytes[i]);
    live.subtract(table.bytes[i]);
  }
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const double size = static_cast<double>(arguments.integer("size", 256, 1, 2048)) * common.scale;
  const double idle = arguments.number("idle", 2.5, 0, 3600);
  const double still = common.waiting(arguments.number("still", idle, 0, 3600));
  const double light = common.waiting(arguments.number("light", idle, 0, 3600));
  const auto least = arguments.integer("least", 16, 16, 1U << 20);
  const auto most = arguments.integer("most", 65535, least, 1U << 20);
  const auto survivors = arguments.integer("survivors", 0, 0, 1000);
  const auto calls = arguments.integer("calls", 0, 0, 1000000);
  const auto kinds = arguments.integer("kinds", 1, 1, 800);
  arguments.check();
  if (common.threads != 1) usage("--threads");

  Report report("burst-and-idle", 1);
  Random random(common.seed);
  Live live;
  const double mib_wanted = size < 2048 ? size : 2048;
  write_table();
  const std::uint64_t before = exact_resident_bytes();
  const auto held_mib = [&](std::uint64_t resident) {
    const std::uint64_t used = before + live.now;
    return resident > used ? mib(resident - used) : 0;
  };
  report.phase("start");
  sleep_s(0.1);  // so that the curve shows where it began
  report.start();
  const std::uint32_t count = burst(static_cast<std::uint64_t>(mib_wanted * 1048576),
                                    Sizes(Distribution::kLogarithmic, least, most, common.seed), live);
  const std::uint64_t at_peak = resident_bytes();
  report.phase("peak");
  const std::uint32_t kept = free_burst(count, survivors, random, live);
  report.stop();
  report.phase("freed");
  const std::uint64_t when_freed = resident_bytes();
  sleep_s(still);
  report.phase("still-end");
  const std::uint64_t after_stillness = exact_resident_bytes();
  drop(make(kLarge), kLarge);
  const std::uint64_t after_a_call = exact_resident_bytes();
  if (calls == 0) {
    light_activity(light, random);
  } else {
    rare_activity(light, calls, kinds, random);
  }
  report.phase("idle-end");
  const std::uint64_t at_the_end = exact_resident_bytes();
  report.extra("resident_peak_mib", mib(at_peak));
  report.extra("resident_freed_mib", mib(when_freed));
  report.extra("resident_still_end_mib", mib(after_stillness));
  report.extra("resident_one_call_mib", mib(after_a_call));
  report.extra("resident_idle_end_mib", mib(at_the_end));
  report.extra("held_still_mib", held_mib(after_stillness));
  report.extra("held_one_call_mib", held_mib(after_a_call));
  report.extra("held_light_mib", held_mib(at_the_end));
  report.extra("held_still_percent", 100 * held_mib(after_stillness) / mib(live.most));
  report.extra("held_one_call_percent", 100 * held_mib(after_a_call) / mib(live.most));
  free_burst(kept, 0, random, live);
  if (live.now != 0) fail("burst-and-idle: objects were lost");
  report.operations = count;
  report.peak_live_bytes = live.most;
  return report.print();
}
