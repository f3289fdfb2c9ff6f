// SPDX-License-Identifier: MIT
//
// Compiler spellings used everywhere: branch hints, visibility, inlining. The only header above config/build.h and
// arch/ that may hold `#if`, so that the rest of the tree reads as one program.
#pragma once

#define BRIMFUL_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define BRIMFUL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define BRIMFUL_NOINLINE __attribute__((noinline))
#define BRIMFUL_COLD __attribute__((noinline, cold))
#define BRIMFUL_HIDDEN __attribute__((visibility("hidden")))
#define BRIMFUL_TLS_DECL __attribute__((tls_model("initial-exec"))) thread_local
#define BRIMFUL_TLS BRIMFUL_TLS_DECL constinit

#if defined(BRIMFUL_DEBUG) && BRIMFUL_DEBUG
#define BRIMFUL_DEBUG_CHECKS 1
#else
#define BRIMFUL_DEBUG_CHECKS 0
#endif
