// SPDX-License-Identifier: MIT
//
// In place of src/arch/system_call.h, for the sources of os/ that make system calls by themselves and not by libc's function: asks
// the script first (system_calls.h).
#pragma once

#include <errno.h>
#include <unistd.h>

#include <cstdint>

#include "system_calls.h"

namespace brimful::arch {

inline long system_call(long number, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  const long result = syscall(number, a, b, c, d);
  return result == -1 ? -errno : result;
}

}  // namespace brimful::arch
