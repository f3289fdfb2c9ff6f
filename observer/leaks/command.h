// SPDX-License-Identifier: MIT
//
// brimful-observer leaks: looks at a process or a core, and says what nothing leads to any more.
#pragma once

#include <memory>
#include <string>

#include "leaks/look.h"

namespace brimful::observer::leaks {

// Opens a process number or the path of a core. nullptr: *error says why in one line.
std::unique_ptr<Target> open_target(const std::string& name, std::string* error);

// The subcommand; arguments[0] is its own name. Returns the exit code: 0 nothing is lost, 1 something is, or we could not
// look, 2 wrong usage.
int main(int count, char** arguments);

}  // namespace brimful::observer::leaks
