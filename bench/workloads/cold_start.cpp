// SPDX-License-Identifier: MIT
//
// cold-start: processes that make a few allocations and end.
//
// Written for this bench; the reason: a shell script, a build or a test suite starts thousands of processes that live
// for a millisecond, and an allocator that reserves, fills tables or starts threads at the start costs each of them.
// Benchmarks that run for seconds can't see it.
//
// With --starts N, the program starts itself N times, one after the other, in its own environment (so with the
// same preload), and reports the mean time from spawn to exit. With --starts 0 it is such a process itself, for a bench
// that measures the wall time of the whole process, dynamic loader included.
//
//   --starts N (at --scale 1; default 200)  --allocations N (in each process, default 100)
// extra: us_per_start; with --starts 0: of the allocations alone, us_of_allocations, and at the end resident_kib.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>

#include "live.h"

using namespace workload;

namespace {

constexpr std::uint64_t kMost = 100000;

// A few objects of mixed sizes, as a small program makes them. Returns their bytes.
std::uint64_t allocate_a_little(std::uint64_t count, std::uint64_t seed) {
  static void* objects[kMost];
  static std::size_t sizes[kMost];
  Random random(seed);
  Live live;
  for (std::uint64_t i = 0; i < count; i++) {
    sizes[i] = random.between(16, std::size_t{16} << random.below(9));
    objects[i] = make(sizes[i]);
    live.add(sizes[i]);
  }
  for (std::uint64_t i = 0; i < count; i++) drop(objects[i], sizes[i]);
  return live.most;
}

// Starts this program with --starts 0 and waits for its end.
void start_one(const char* allocations, posix_spawn_file_actions_t* actions) {
  char name[] = "cold-start";
  char starts[] = "--starts";
  char none[] = "0";
  char option[] = "--allocations";
  char count[24];
  std::snprintf(count, sizeof count, "%s", allocations);
  char* argv[] = {name, starts, none, option, count, nullptr};
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, "/proc/self/exe", actions, nullptr, argv, environ) != 0) fail("cannot start a process");
  if (waitpid(child, &status, 0) != child || status != 0) fail("a started process failed");
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto starts_at_scale_1 = arguments.integer("starts", 200, 0, 1000000);
  const auto allocations = arguments.integer("allocations", 100, 1, kMost);
  arguments.check();
  if (common.threads != 1) usage("--threads");

  Report report("cold-start", 1);
  if (starts_at_scale_1 == 0) {
    report.start();
    const double begin = now_s();
    report.peak_live_bytes = allocate_a_little(allocations, common.seed);
    report.extra("us_of_allocations", (now_s() - begin) * 1e6);
    report.stop();
    report.extra("resident_kib", static_cast<double>(exact_resident_bytes()) / 1024);
    report.operations = allocations;
    return report.print();
  }
  char count[24];
  std::snprintf(count, sizeof count, "%" PRIu64, allocations);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);  // the child's own report
  start_one(count, &actions);  // the first reads the files from the disk
  const std::uint64_t starts = common.scaled(static_cast<double>(starts_at_scale_1));
  report.start();
  const double begin = now_s();
  for (std::uint64_t i = 0; i < starts; i++) start_one(count, &actions);
  const double spent = now_s() - begin;
  report.stop();
  posix_spawn_file_actions_destroy(&actions);
  report.operations = starts;
  report.extra("us_per_start", spent * 1e6 / static_cast<double>(starts));
  return report.print();
}
