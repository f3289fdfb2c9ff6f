// SPDX-License-Identifier: MIT
//
// Messages to the person who runs the program: one line, one write(2), no allocation, no lock.
#pragma once

#include "base/line.h"

namespace brimful::os {

// Writes "brimful: " + line + "\n" to stderr in one system call. errno is kept.
void report(const Line& line);

// As report(), then abort(): the core dump holds the state at the fault.
[[noreturn]] void report_and_abort(const Line& line);

}  // namespace brimful::os
