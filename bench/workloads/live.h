// SPDX-License-Identifier: MIT
//
// What a workload knows of its own memory: the bytes it has asked for, and the bytes the kernel keeps for it.
//
// The first is the same under every allocator and costs two additions; the second is what allocators differ in. Both
// together make the figure that a user pays for: resident bytes per live byte.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "workload.h"

namespace workload {

// Bytes asked for and not yet freed, and their most. One thread's; sums of several are made after they ended.
struct Live {
  std::uint64_t now = 0;
  std::uint64_t most = 0;

  void add(std::uint64_t bytes) {
    now += bytes;
    if (now > most) most = now;
  }
  void subtract(std::uint64_t bytes) { now -= bytes; }
};

// The timed part of a workload whose threads count their own memory: runs body(index) in `threads` threads. It returns
// the most bytes that its thread held; the report gets their sum.
template <class Body>
void run_timed(Report& report, unsigned threads, const Body& body) {
  std::atomic<std::uint64_t> peak{0};
  const auto counted = [&](unsigned index) {
    peak.fetch_add(body(index), std::memory_order_relaxed);  // relaxed: read after the threads have ended
  };
  report.start();
  run_threads(threads, counted);
  report.stop();
  report.peak_live_bytes = peak.load(std::memory_order_relaxed);  // relaxed: the threads have ended
}

// The resident size of this process in bytes, from /proc/self/statm (proc(5)), without an allocation.
inline std::uint64_t resident_bytes() {
  char text[128] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("cannot open /proc/self/statm");
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  unsigned long long total = 0;
  unsigned long long resident = 0;
  if (length <= 0 || std::sscanf(text, "%llu %llu", &total, &resident) != 2) fail("cannot read /proc/self/statm");
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// A sum over all mappings of this process in bytes, by its name in /proc/self/smaps_rollup (proc(5)): "Rss",
// "AnonHugePages". It takes a millisecond or more. No figure (-1) on Linux before 4.14.
inline std::int64_t rolled_up_bytes(const char* name) {
  char text[2048] = {};
  const int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  char wanted[64];
  std::snprintf(wanted, sizeof wanted, "\n%s:", name);
  const char* line = length > 0 ? std::strstr(text, wanted) : nullptr;
  unsigned long long kib = 0;
  if (line == nullptr || std::sscanf(line + std::strlen(wanted), "%llu", &kib) != 1)
    fail("cannot read /proc/self/smaps_rollup");
  return static_cast<std::int64_t>(kib << 10);
}

// The resident size as the page tables have it: statm is brought up to date by each thread only now and then, and with
// thousands of sleeping threads what they have not told adds up.
inline std::uint64_t exact_resident_bytes() {
  const std::int64_t exact = rolled_up_bytes("Rss");
  return exact < 0 ? resident_bytes() : static_cast<std::uint64_t>(exact);
}

// Bytes that lie in transparent hugepages.
inline std::uint64_t huge_bytes() {
  const std::int64_t huge = rolled_up_bytes("AnonHugePages");
  return huge < 0 ? 0 : static_cast<std::uint64_t>(huge);
}

// By how much `after` is more than `before`, in percent; 0 if it is not. `base` is what was resident before the
// allocator had anything to do.
inline double growth_percent(std::uint64_t before, std::uint64_t after, std::uint64_t base = 0) {
  if (after <= before || before <= base) return 0;
  return 100.0 * static_cast<double>(after - before) / static_cast<double>(before - base);
}

inline double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

}  // namespace workload
