// SPDX-License-Identifier: MIT
//
// brimful-observer samples PID|FILE [--seconds N] [--interval BYTES] [--from-start] [--then-file PATH] [--off]
//
//   --seconds N       how long a process is watched; 0 (the default): until it ends
//   --interval BYTES  from one sample to the next, if sampling isn't on already
//   --from-start      sampling has been on since the program began, and Ctrl-C is the program's
//   --then-file PATH  what the process writes when it ends (prof_file), added if it is there
//   --off             switches sampling off, which a profiler that was killed has left on
#pragma once

#include <string>
#include <vector>

namespace brimful::observer::stacks {

// `arguments` from the target on. Prints JSON (samples_json.cpp) to standard output, or a line to standard error; returns
// the exit code: 0, 1 (the target can't be read), 2 (wrong usage).
int samples_command(const std::vector<std::string>& arguments);

}  // namespace brimful::observer::stacks
