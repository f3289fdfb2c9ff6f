// SPDX-License-Identifier: MIT
//
// A system call whose answer is its result alone, as the kernel gives it: not by errno, which a signal handler may change
// between the call and the look at it (handlers that allocate do: malloc sets ENOMEM).
#pragma once

#include <cstdint>

namespace brimful::arch {

// The result, or minus the error.
inline long system_call(long number, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
#if defined(__x86_64__)
  long result = number;
  register std::uint64_t r10 asm("r10") = d;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register std::uint64_t x0 asm("x0") = a;
  register std::uint64_t x1 asm("x1") = b;
  register std::uint64_t x2 asm("x2") = c;
  register std::uint64_t x3 asm("x3") = d;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return static_cast<long>(x0);
#else
#error "no system calls for this processor"
#endif
}

}  // namespace brimful::arch
