// SPDX-License-Identifier: MIT
//
// Compiler spellings used everywhere: branch hints, visibility, inlining. The only header above config/build.h and
// arch/ that may hold `#if`, so that the rest of the tree reads as one program.
#pragma once

#define BRIMFUL_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define BRIMFUL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define BRIMFUL_COLD __attribute__((noinline, cold))
#define BRIMFUL_INLINE inline __attribute__((always_inline))
#define BRIMFUL_HIDDEN __attribute__((visibility("hidden")))
// constinit in declarations, too: without it each access to an extern one calls a weak initialiser first.
#define BRIMFUL_TLS __attribute__((tls_model("initial-exec"))) constinit thread_local

// Variables of zeros, in the order in which they lie behind the others: each page that a process touches of them costs it a
// fault, so what every process touches lies together, and what few do lies behind (docs/design/0030).
#define BRIMFUL_ZEROS_METADATA __attribute__((section(".bss.1_metadata")))
#define BRIMFUL_ZEROS_HEAP __attribute__((section(".bss.2_heap")))
#define BRIMFUL_ZEROS_COLD __attribute__((section(".bss.3_cold")))

// Reads words of a stack or of code: those of others, who may be writing beside them. Sanitizers must not look.
#define BRIMFUL_UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))

#if defined(BRIMFUL_DEBUG) && BRIMFUL_DEBUG
#define BRIMFUL_DEBUG_CHECKS 1
#else
#define BRIMFUL_DEBUG_CHECKS 0
#endif

// Set for libbrimful-pools-checked.a: calls of a TLSF pool look for misuse before they change anything.
#if defined(BRIMFUL_TLSF_CHECK) && BRIMFUL_TLSF_CHECK
#define BRIMFUL_TLSF_CHECKS 1
#else
#define BRIMFUL_TLSF_CHECKS 0
#endif
