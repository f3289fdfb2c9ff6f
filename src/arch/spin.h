// SPDX-License-Identifier: MIT
//
// Tells the CPU that this thread waits in a loop: x86 PAUSE; on ARM64 ISB, which waits about as long as PAUSE does,
// where YIELD is a no-op on most cores.
#pragma once

namespace brimful::arch {

inline void spin_hint() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

}  // namespace brimful::arch
