// SPDX-License-Identifier: MIT
//
// brimful-observer leaks: looks at a process or a core, and says what nothing leads to any more.
#pragma once

namespace brimful::observer::leaks {

// The subcommand; arguments[0] is its own name. Returns the exit code: 0 nothing is lost, 1 something is, or we could not
// look, 2 wrong usage.
int main(int count, char** arguments);

}  // namespace brimful::observer::leaks
