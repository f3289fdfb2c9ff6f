// SPDX-License-Identifier: MIT
//
// BRIMFUL_CHECK is always on and guards the allocator's own invariants: a false one is corruption and the process
// stops with one line. BRIMFUL_ASSERT costs nothing in a release build, but its operands are always compiled.
// Neither allocates nor locks. What a *user* did wrong is not checked here: see debug/misuse.h.
#pragma once

#include "base/compiler.h"

namespace brimful {

// Writes `brimful: internal error: …` to stderr and aborts. Defined in os/report.cpp, which owns the system calls.
[[noreturn]] void check_failed(const char* file, int line, const char* expression);

}  // namespace brimful

#define BRIMFUL_CHECK(condition) \
  (BRIMFUL_LIKELY(condition) ? (void)0 : ::brimful::check_failed(__FILE__, __LINE__, #condition))
#define BRIMFUL_ASSERT(condition)                                      \
  do {                                                                 \
    if constexpr (BRIMFUL_DEBUG_CHECKS != 0) BRIMFUL_CHECK(condition); \
  } while (false)
