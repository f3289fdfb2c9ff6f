// SPDX-License-Identifier: MIT
//
// The oracle's load in a storm of sched_setaffinity (crew.h): threads are moved to another CPU wherever they are, slow
// paths included, again and again; their masks are narrowed and widened; now and then all of them are herded onto one
// CPU, so that the contexts of the others go idle with slabs and pending frees in them. That is what a cpuset that changes
// and CPUs that are taken away do to a process, only more often.
//
// It fails if the oracle finds a fault, if anything is left at the end, if nothing moves for a minute, or if there was no
// storm. Exit 77 where the process may run on one CPU only. --long: half an hour for each front end.
#include <sched.h>

#include "crew.h"
#include "options.h"
#include "report.h"

namespace {

constexpr unsigned kDefaultSeconds = 4;
constexpr unsigned kLongSeconds = 1800;
constexpr uint64_t kFewestMoves = 100;

bool has_two_cpus() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1;
}

}  // namespace

int main(int count, char** arguments) {
  using namespace brimful::stress;
  Options options = parse_options(count, arguments, "Random allocator calls in a storm of sched_setaffinity.");
  run_in_both_modes(arguments);
  if (!has_two_cpus()) {
    say("stress: skipped: this process may run on one CPU only\n");
    return 77;
  }
  set_sabotage(options.sabotage);
  options.fierce_storm = true;
  if (options.seconds == 0) options.seconds = options.long_run ? kLongSeconds : kDefaultSeconds;
  if (options.operations == 0) options.operations = ~uint64_t{0};
  Crew::start(options);
  Crew::watch(options.operations, options.seconds, options.long_run);
  Crew::finish();
  if (Crew::moves() < kFewestMoves) {
    fail(nullptr, 0, "no storm: %llu moves", static_cast<unsigned long long>(Crew::moves()));
  }
  return 0;
}
