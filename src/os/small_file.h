// SPDX-License-Identifier: MIT
//
// Reads the short text files of /proc and /sys without allocating.
#pragma once

#include <cstddef>

namespace brimful::os {

// Reads at most `capacity` - 1 bytes of `path`, ends them with '\0' and returns how many there are; -1 when the file
// can't be read. Three system calls; errno is kept.
long read_small_file(const char* path, char* buffer, std::size_t capacity);

}  // namespace brimful::os
