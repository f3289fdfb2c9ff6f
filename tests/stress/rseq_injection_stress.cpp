// SPDX-License-Identifier: MIT
//
// Aborts forced at every instruction of every restartable section, with the oracle running (crew.h,
// injector.h).
//
// For each instruction, one after the other:
//   few    the next 1 to 4 threads that come by are aborted there, then the code is whole again; several
//   rounds all    every thread is aborted there, always, for thousands of operations: attempts are bounded,
//   so the slow
//          paths must still get everywhere, as they must under a debugger that single-steps
// and at the end the first instruction of every section is armed at once, so that no section commits at all.
//
// It fails if the oracle finds a fault, if nothing moves any more, if an instruction was never hit (then the
// workload does not reach the section, and the test proves nothing about it), or if the kernel aborted no hit
// of it although the process has rseq. Exit 77 where the build has no sections or the kernel no rseq.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "clock.h"
#include "crew.h"
#include "injector.h"
#include "options.h"
#include "oracle.h"
#include "report.h"
#include "sections.h"

extern "C" [[gnu::weak]] const unsigned __rseq_size;

namespace brimful::stress {
namespace {

constexpr size_t kLargest = 48 << 10;  // large blocks have no sections; they would only take time
constexpr unsigned kRounds = 1;
constexpr unsigned kLongRounds = 50;
constexpr uint64_t kOperationsUnderAll = 10'000;
constexpr double kPatience = 15;     // seconds for a section that the workload reaches rarely
constexpr double kNoPatience = 0.5;  // seconds once such a wait in the section has been in vain

SectionTable table;

// The section that only tier:hardened comes to, where most others are never reached.
constexpr char kOfHardened[] = "take_freed";

// Leaves the sections that this tier reaches.
void keep_reachable(SectionTable& all) {
  const char* conf = getenv("BRIMFUL_CONF");
  const bool is_hardened = conf != nullptr && strstr(conf, "tier:hardened") != nullptr;
  Section* const end = std::remove_if(all.sections, all.sections + all.count, [&](const Section& section) {
    return (strcmp(section.name, kOfHardened) == 0) != is_hardened;
  });
  all.count = static_cast<size_t>(end - all.sections);
}

bool kernel_has_rseq() {
  // A null area is refused with EINVAL where the call exists (or EBUSY/EPERM where the thread has an area
  // already).
  return syscall(SYS_rseq, nullptr, 0, 0, 0) == 0 || errno != ENOSYS;
}

bool libc_registered_rseq() { return &__rseq_size != nullptr && __rseq_size > 0; }

// Waits until `done()` or for `seconds`.
template <typename Condition>
void wait_for(Condition done, double seconds) {
  const double end = seconds_now() + seconds;
  while (!done() && seconds_now() < end) {
    sleep_microseconds(100);
    Crew::check_progress();
  }
}

struct Score {
  uint64_t by_kernel = 0;
  uint64_t by_hand = 0;
  bool in_vain = false;
  void add(Hits hits) {
    in_vain = hits.total() == 0;
    by_kernel += hits.by_kernel;
    by_hand += hits.by_hand;
  }
};

Score scores[SectionTable::kMaxSections][Section::kMaxInstructions];

// How long to wait for a hit in the section: not long again if it was not hit before.
double patience(size_t section) {
  const Score* all = scores[section];
  const bool in_vain = std::any_of(all, all + table.sections[section].count, [](const Score& s) { return s.in_vain; });
  return in_vain ? kNoPatience : kPatience;
}

void inject_few(size_t section, size_t instruction, uint64_t budget) {
  Injector::arm(section, instruction, budget);
  wait_for([&] { return Injector::hits().total() >= budget; }, patience(section));
  scores[section][instruction].add(Injector::disarm(section, instruction));
}

void inject_all(size_t section, size_t instruction) {
  const uint64_t first = Crew::operations();
  Injector::arm(section, instruction, 0);
  wait_for([&] { return Crew::operations() - first >= kOperationsUnderAll && Injector::hits().total() > 0; },
           kPatience);
  scores[section][instruction].add(Injector::disarm(section, instruction));
}

void for_each_instruction(void (*visit)(size_t, size_t)) {
  for (size_t i = 0; i < table.count; ++i) {
    for (size_t j = 0; j < table.sections[i].count; ++j) visit(i, j);
  }
}

// No section commits: everything goes by the last resort of every path.
void inject_everywhere() {
  const uint64_t first = Crew::operations();
  for (size_t i = 0; i < table.count; ++i) Injector::arm(i, 0, 0);
  wait_for([&] { return Crew::operations() - first >= kOperationsUnderAll; }, kPatience);
  for (size_t i = 0; i < table.count; ++i) Injector::disarm(i, 0);
  if (Crew::operations() - first < kOperationsUnderAll) {
    fail(nullptr, 0, "with every section aborting, %llu of %llu operations finished in %.0f s",
         static_cast<unsigned long long>(Crew::operations() - first),
         static_cast<unsigned long long>(kOperationsUnderAll), kPatience);
  }
}

// Prints one line per section; returns false if an instruction was never hit, or never by the kernel.
bool report(bool by_kernel) {
  bool complete = true;
  for (size_t i = 0; i < table.count; ++i) {
    const Section& section = table.sections[i];
    uint64_t fewest = ~uint64_t{0};
    Score sum;
    for (size_t j = 0; j < section.count; ++j) {
      const Score& score = scores[i][j];
      sum.by_kernel += score.by_kernel;
      sum.by_hand += score.by_hand;
      fewest = std::min(fewest, score.by_kernel + score.by_hand);
      if (score.by_kernel + score.by_hand == 0) {
        say("stress: never hit: %s+%#zx (instruction %zu of %zu)\n", section.name,
            section.instructions[j] - section.start, j, section.count);
        complete = false;
      } else if (by_kernel && score.by_kernel == 0) {
        say("stress: the kernel never aborted: %s+%#zx (%llu hits)\n", section.name,
            section.instructions[j] - section.start, static_cast<unsigned long long>(score.by_hand));
        complete = false;
      }
    }
    say("stress: %-28s %2zu instructions, %llu aborts by the kernel, %llu by hand, at least %llu each\n", section.name,
        section.count, static_cast<unsigned long long>(sum.by_kernel), static_cast<unsigned long long>(sum.by_hand),
        static_cast<unsigned long long>(fewest));
  }
  return complete;
}

int skip(const char* reason) {
  say("stress: skipped: %s\n", reason);
  return 77;
}

}  // namespace
}  // namespace brimful::stress

int main(int count, char** arguments) {
  using namespace brimful::stress;
  Options options = parse_options(count, arguments, "Aborts at every instruction of every restartable section.");
  run_in_both_modes(arguments);
  if (!kernel_has_rseq()) return skip("this kernel has no rseq");
  if (const char* reason = read_sections(&table)) return skip(reason);
  keep_reachable(table);
  if (const char* reason = Injector::initialize(&table)) return skip(reason);
  set_largest(kLargest);
  options.fork = false;  // a child would stop at the parent's breakpoints, for nothing new
  Crew::start(options);
  const unsigned rounds = options.long_run ? kLongRounds : kRounds;
  for (unsigned round = 0; round < rounds; ++round) {
    static uint64_t budget;
    budget = 1 + round % 4;
    for_each_instruction([](size_t i, size_t j) { inject_few(i, j, budget); });
    if (options.long_run) say("stress: round %u of %u\n", round + 1, rounds);
  }
  for_each_instruction(inject_all);
  inject_everywhere();
  const bool complete = report(libc_registered_rseq());
  Crew::finish();
  if (!complete) fail(nullptr, 0, "some instructions were never aborted, see above");
  return 0;
}
