// SPDX-License-Identifier: MIT
//
// A signal handler frees blocks that are mappings of their own (5 GiB, none of it touched), while its thread is about
// anywhere: in a fast path, in a slow path, or inside the very lock that guards the list of such blocks. A free that
// interrupted that lock can't look the block up; it has to be put off, and must neither wait nor call the block foreign.
//
// Under glibc, whose free would wait for its own thread, the handler frees only when it did not interrupt the allocator.
#include "check.h"

#include <sys/time.h>

enum { kBlocks = 8 };
static const double kSeconds = 1.5;
static const size_t kHuge = (size_t)5 << 30;

static volatile int is_inside_allocator;
static int is_handler_free_to_allocate;  // 1 under brimful
static void* volatile huge[kBlocks];
static volatile long freed;

static void handler(int number) {
  (void)number;
  if (!is_handler_free_to_allocate && is_inside_allocator) return;
  for (int i = 0; i < kBlocks; ++i) {
    void* block = __atomic_exchange_n(&huge[i], NULL, __ATOMIC_ACQ_REL);
    if (block == NULL) continue;
    free(block);
    ++freed;
    return;
  }
}

static void a_handler_may_free_a_mapping_wherever_it_lands(void) {
  is_handler_free_to_allocate = is_brimful();
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval timer = {{0, 60}, {0, 60}};
  setitimer(ITIMER_REAL, &timer, NULL);
  double end = seconds_now() + kSeconds;
  long made = 0;
  while (seconds_now() < end) {
    for (int i = 0; i < 200; ++i) {
      is_inside_allocator = 1;
      void* large = malloc((size_t)40000 + (size_t)i * 500);
      free(large);
      is_inside_allocator = 0;
      CHECK(large != NULL);
    }
    for (int i = 0; i < kBlocks; ++i) {
      if (huge[i] != NULL) continue;
      is_inside_allocator = 1;
      void* block = malloc(kHuge);
      is_inside_allocator = 0;
      CHECK(block != NULL);
      if (block == NULL) break;
      __atomic_store_n(&huge[i], block, __ATOMIC_RELEASE);
      ++made;
    }
  }
  timer = (struct itimerval){{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &timer, NULL);
  for (int i = 0; i < kBlocks; ++i) free(huge[i]);
  CHECK_GE(freed, 100);
  // What handlers freed went back: address space is not used up by blocks that wait for ever.
  for (int i = 0; i < 4; ++i) free(malloc(100000));
  FILE* maps = fopen("/proc/self/maps", "re");
  CHECK(maps != NULL);
  char line[512];
  int left = 0;
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long long from = 0, to = 0;
    char access[8] = "";
    if (sscanf(line, "%llx-%llx %7s", &from, &to, access) == 3 && to - from >= kHuge && access[0] == 'r') ++left;
  }
  if (maps != NULL) fclose(maps);
  if (left > 0) CHECK_FAIL("%d of %ld huge blocks are still mapped", left, made);
}

int main(void) {
  require_brimful();
  RUN(a_handler_may_free_a_mapping_wherever_it_lands);
  return finish();
}
