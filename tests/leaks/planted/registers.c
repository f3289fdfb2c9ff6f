/* SPDX-License-Identifier: MIT
 *
 * A pointer that is in a register and nowhere else.
 */
#include <pthread.h>

#include "plant.h"

static volatile int is_spinning;

__attribute__((noinline)) static uintptr_t plant(enum plant_kind kind) {
  void* block = malloc(300);
  note(block, kind);
  return ~(uintptr_t)block;
}

static void* spin(void* unused) {
  uintptr_t hidden = plant(KEPT);
  scrub();
#if defined(__x86_64__)
  __asm__ volatile("not %0; movl $1, %1; 1: pause; jmp 1b" : "+r"(hidden), "=m"(is_spinning));
#else
  __asm__ volatile("mvn %0, %0; str %w2, %1; 1: yield; b 1b" : "+r"(hidden), "=m"(is_spinning) : "r"(1));
#endif
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  plant(LOST);
  pthread_create(&thread, NULL, spin, NULL);
  while (!is_spinning) usleep(1000);
  scrub();
  return finish(argc, argv);
}
