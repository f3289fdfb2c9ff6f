// SPDX-License-Identifier: MIT
//
// Letting another program look at this process while it waits for it.
#pragma once

#include <cstddef>

namespace brimful::os {

// Starts the program `path` with these arguments (a list that ends with nullptr; "%pid" stands for this process's number),
// gives it the right to trace this process, and waits until it has ended. Its standard input ends as soon as it has that
// right. Its output goes to where standard error led at the start (os/kept_stderr.h). It gets this process's environment
// but for LD_PRELOAD and the library's options, so that it is not looked at itself. Nothing is allocated; signals wait
// meanwhile; errno is kept. 0, or the error number of what failed: ENOENT when there is no such program.
int be_observed_by(const char* path, const char* const* arguments);

}  // namespace brimful::os
