// SPDX-License-Identifier: MIT
//
// Oracle stress: random allocator calls from many threads (crew.h), everything checked (oracle.h).
//
// Before the real run the program tests itself: for each way in which an allocator can be wrong (subject.h)
// it runs with that fault built in, and must exit with 1.
//
// Without arguments: the front end that BRIMFUL_CONF names, else both, a few seconds each. --long: 60 million
// operations per front end. Exit: 0, 1 (fault found: see stderr), 2 (usage or no memory).
#include <sys/wait.h>

#include "crew.h"
#include "options.h"
#include "report.h"
#include "subject.h"

namespace brimful::stress {
namespace {

constexpr uint64_t kDefaultOperations = 3'000'000;
constexpr unsigned kDefaultSeconds = 4;
constexpr uint64_t kLongOperations = 60'000'000;
constexpr unsigned kLongSeconds = 3000;

void self_test(char** arguments) {
  for (size_t kind = 1; kind < kSabotageCount; ++kind) {
    const char* const extra[] = {"--sabotage", kSabotageNames[kind], "--threads", "1", "--seconds", "20", nullptr};
    const int status = run_self(arguments, extra, false);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1) {
      fail(nullptr, 0, "self-test: the oracle did not find the fault '%s' (wait status %#x)", kSabotageNames[kind],
           status);
    }
  }
}

}  // namespace
}  // namespace brimful::stress

int main(int count, char** arguments) {
  using namespace brimful::stress;
  Options options = parse_options(count, arguments, "Random allocator calls from many threads, every result checked.");
  run_in_both_modes(arguments);
  if (options.self_test && options.sabotage == Sabotage::kNone) self_test(arguments);
  set_sabotage(options.sabotage);
  const bool patient = options.long_run || options.operations != 0;
  if (options.operations == 0) options.operations = options.long_run ? kLongOperations : kDefaultOperations;
  if (options.seconds == 0) options.seconds = patient ? kLongSeconds : kDefaultSeconds;
  Crew::start(options);
  const uint64_t done = Crew::watch(options.operations, options.seconds, options.long_run);
  Crew::finish();
  if (options.long_run && done < options.operations) fail(nullptr, 0, "too slow: the time ran out");
  return 0;
}
