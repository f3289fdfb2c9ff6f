/* SPDX-License-Identifier: MIT
 *
 * For programs that lose blocks on purpose. Each says what it did, one line for each block:
 *
 *   planted 0x7f0123456780 lost       nothing leads to it, and nothing lost does
 *   planted 0x7f0123456790 behind     only something lost leads to it
 *   planted 0x7f01234567a0 possibly   only a pointer to its inside is left
 *   planted 0x7f01234567b0 kept       the program can get at it, or has freed it
 *
 * What a program keeps lies in variables that other files could read, so that the compiler stores it.
 * Addresses are kept inverted, so that noting them keeps nothing alive. Then the program scrubs its stack and its
 * registers, and waits for standard input to end ("wait"), or returns from main.
 */
#ifndef PLANT_H
#define PLANT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
#include <type_traits>
extern "C" {
#endif

enum plant_kind { LOST, BEHIND, POSSIBLY, KEPT };

static uintptr_t plant_addresses[4096];
static unsigned char plant_kinds[4096];
static unsigned plant_count;

static inline void note(const void* pointer, enum plant_kind kind) {
  if (pointer == NULL || plant_count == 4096) abort();
  plant_kinds[plant_count] = (unsigned char)kind;
  plant_addresses[plant_count++] = ~(uintptr_t)pointer;
}

/* Calls `work` so far down the stack that scrub() reaches all that it leaves there: at its own depth, frames of others have
 * holes that nobody writes to. */
__attribute__((noinline, unused)) static void at_depth(void (*work)(void)) {
  volatile char room[8 << 10];
  room[0] = 0;
  work();
  room[1] = 0;
}

/* Overwrites what calls left below our frame, and the registers. */
__attribute__((noinline, unused)) static void scrub(void) {
  volatile char room[64 << 10];
  memset((char*)room, 0, sizeof room);
#if defined(__x86_64__)
  __asm__ volatile(
      "xor %%ebx, %%ebx; xor %%r12d, %%r12d; xor %%r13d, %%r13d; xor %%r14d, %%r14d; xor %%r15d, %%r15d;"
      "pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2; pxor %%xmm3, %%xmm3;"
      "pxor %%xmm4, %%xmm4; pxor %%xmm5, %%xmm5; pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7;"
      "pxor %%xmm8, %%xmm8; pxor %%xmm9, %%xmm9; pxor %%xmm10, %%xmm10; pxor %%xmm11, %%xmm11;"
      "pxor %%xmm12, %%xmm12; pxor %%xmm13, %%xmm13; pxor %%xmm14, %%xmm14; pxor %%xmm15, %%xmm15;" ::
          : "rbx", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
            "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory");
#endif
}

__attribute__((noinline, unused)) static void tell(void) {
  static const char* const names[] = {"lost", "behind", "possibly", "kept"};
  static char line[96];
  for (unsigned n = 0; n < plant_count; ++n) {
    const int length =
        snprintf(line, sizeof line, "planted 0x%jx %s\n", (uintmax_t)~plant_addresses[n], names[plant_kinds[n]]);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) abort();
  }
}

__attribute__((noinline, unused)) static int finish(int argc, char** argv) {
  tell();
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) abort();
  scrub();
  if (argc > 1 && strcmp(argv[1], "wait") == 0) {
    char c;
    while (read(STDIN_FILENO, &c, 1) > 0) {
    }
  }
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
