// SPDX-License-Identifier: MIT
//
// The command line that the stress programs share, and the repetition of themselves in the other front-end
// mode.
#pragma once

#include <cstddef>
#include <cstdint>

#include "subject.h"

namespace brimful::stress {

struct Options {
  unsigned threads = 6;
  uint64_t operations = 0;  // in total; 0 = the program's default
  uint64_t seed = 0;        // 0 = drawn from the clock, and printed
  unsigned seconds = 0;     // 0 = the program's default
  bool long_run = false;
  bool self_test = true;
  bool fork = true;
  bool fierce_storm = false;  // set by the program, see Crew
  Sabotage sabotage = Sabotage::kNone;
};

// Reads the arguments; a wrong one prints the usage and exits with 2. Sets the repeat line of report.h.
Options parse_options(int count, char** arguments, const char* summary);

// If BRIMFUL_CONF chooses no front end: runs this program once for `thread` and once for `percpu`, with the
// same arguments, and exits with 0 if both did, 77 if either was skipped and none failed, else 1. Otherwise
// returns.
void run_in_both_modes(char** arguments);

// Runs this program with `extra` arguments after its own, silently unless `loud`. Returns its wait status.
int run_self(char** arguments, const char* const* extra, bool loud);

// Whether BRIMFUL_CONF names this front end.
bool front_end_is(const char* name);

}  // namespace brimful::stress
