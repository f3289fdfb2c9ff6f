// SPDX-License-Identifier: MIT
//
// The calling thread's registers and the words of its stack, read as they are (slots/stack_copy.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.h"

namespace brimful::arch {

// Writes ip, sp, bp, bx, r12 … r15, all as they are at one instruction, so that the unwind tables' word for it fits. On
// aarch64: pc, sp and the frame pointer.
// NOLINTNEXTLINE(readability-non-const-parameter): the assembly writes there
BRIMFUL_UNCHECKED inline __attribute__((always_inline)) void read_registers(std::uint64_t* into) {
#if defined(__x86_64__)
  asm volatile(
      "leaq 0f(%%rip), %%rax\n\t"
      "movq %%rax, 0(%0)\n\t"
      "movq %%rsp, 8(%0)\n\t"
      "movq %%rbp, 16(%0)\n\t"
      "movq %%rbx, 24(%0)\n\t"
      "movq %%r12, 32(%0)\n\t"
      "movq %%r13, 40(%0)\n\t"
      "movq %%r14, 48(%0)\n\t"
      "movq %%r15, 56(%0)\n"
      "0:"
      :
      : "r"(into)
      : "rax", "memory");
#elif defined(__aarch64__)
  asm volatile(
      "adr x9, 0f\n\t"
      "mov x10, sp\n\t"
      "stp x9, x10, [%0]\n\t"
      "str x29, [%0, 16]\n"
      "0:"
      :
      : "r"(into)
      : "x9", "x10", "memory");
#endif
}

// Whole words, to a multiple of 64. No call of memcpy(), which the program may have one of its own of, and sanitizers look
// at. Past the caches where that is possible: nobody here reads the copy, the program wants its lines, and fetching those
// that are overwritten takes twice as long.
BRIMFUL_UNCHECKED inline void copy_words(std::uint64_t from, std::uint64_t to, std::size_t bytes) {
  const auto* source = reinterpret_cast<const std::uint64_t*>(from);
  auto* target = reinterpret_cast<std::uint64_t*>(to);
#if defined(__x86_64__)
  constexpr std::size_t kLineWords = 8;
  std::size_t words = bytes / sizeof(std::uint64_t);
  for (; words >= kLineWords; words -= kLineWords) {
    asm volatile(
        "movups 0(%0), %%xmm0\n\t"
        "movups 16(%0), %%xmm1\n\t"
        "movups 32(%0), %%xmm2\n\t"
        "movups 48(%0), %%xmm3\n\t"
        "movntps %%xmm0, 0(%1)\n\t"
        "movntps %%xmm1, 16(%1)\n\t"
        "movntps %%xmm2, 32(%1)\n\t"
        "movntps %%xmm3, 48(%1)"
        :
        : "r"(source), "r"(target)
        : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
    source += kLineWords;
    target += kLineWords;
  }
  asm volatile("rep movsq\n\tsfence" : "+S"(source), "+D"(target), "+c"(words) : : "memory");
#else
  for (std::size_t i = 0; i < bytes / sizeof(std::uint64_t); ++i) {
    target[i] = reinterpret_cast<const volatile std::uint64_t*>(source)[i];
  }
#endif
}

BRIMFUL_UNCHECKED inline std::uint64_t word_at(std::uint64_t address) {
  return *reinterpret_cast<const volatile std::uint64_t*>(address);
}

// Programs' addresses are below this.
#if defined(__aarch64__)
inline constexpr std::uint64_t kEndOfAddresses = std::uint64_t{1} << 48;
#else
inline constexpr std::uint64_t kEndOfAddresses = std::uint64_t{1} << 47;
#endif

// The return address that a frame's word holds. On aarch64 it may be signed, in bits that no address has.
inline std::uint64_t return_address(std::uint64_t word) {
#if defined(__aarch64__)
  return word & (kEndOfAddresses - 1);
#else
  return word;
#endif
}

}  // namespace brimful::arch
