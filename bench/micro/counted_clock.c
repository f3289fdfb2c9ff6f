// SPDX-License-Identifier: MIT
//
// counted_clock: a clock_gettime(2) for runs whose instructions are counted. Its time is a count, too: every read is 10
// microseconds after the one before it, whoever reads and whichever clock. What an allocator does by the clock (memory
// given back after a delay, a look at idle caches now and then) happens at the same moment of every run then, however
// slow the tool is that counts and however busy the machine. Preloaded beside the allocator; never where time is measured.

#define _GNU_SOURCE
#include <stdatomic.h>
#include <time.h>

#define STEP_NS 10000

static _Atomic long long g_reads = 1;

int clock_gettime(clockid_t clock, struct timespec* now) {
  (void)clock;
  const long long ns = atomic_fetch_add_explicit(&g_reads, 1, memory_order_relaxed) * STEP_NS;  // relaxed: a count
  now->tv_sec = (time_t)(ns / 1000000000);
  now->tv_nsec = (long)(ns % 1000000000);
  return 0;
}
