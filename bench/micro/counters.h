// SPDX-License-Identifier: MIT
//
// Counters of the processor and the kernel for one command and everything it starts, by perf_event_open(2).
//
// They are opened by the launcher on itself, disabled, with `inherit` (children are counted too; a child's count is
// added when it ends) and `enable_on_exec` (so the launcher's own work between fork and exec is not). Each stands alone
// rather than in a group, because `inherit` and reading as a group exclude each other. The four of the processor count
// user space only, which is what an unprivileged user may count and what an allocator's own code is; its system calls
// show as system time.
//
// A counter that this machine or this user does not have is absent: printed as null, never as 0. Virtual machines often
// have none of the processor's. When there are more counters than the processor can hold, the kernel lets them take
// turns; the count is then scaled by enabled/running time as perf(1) does, and one that never ran is absent.
#pragma once

#include <linux/perf_event.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct counter {
  const char* name;
  uint32_t type;
  uint64_t config;
  bool kernel_too;  // faults and switches happen in the kernel: without it there is nothing to count
  int file;         // -1: absent
};

static struct counter g_counters[] = {
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false, -1},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, -1},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false, -1},
    {"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false, -1},
    {"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, true, -1},
    {"context_switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true, -1},
};

enum { kCounters = sizeof g_counters / sizeof *g_counters };

static void open_counters(void) {
  for (int i = 0; i < kCounters; i++) {
    struct perf_event_attr wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.size = sizeof wanted;
    wanted.type = g_counters[i].type;
    wanted.config = g_counters[i].config;
    wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    wanted.disabled = 1;
    wanted.inherit = 1;
    wanted.enable_on_exec = 1;
    wanted.exclude_kernel = !g_counters[i].kernel_too;
    wanted.exclude_hv = 1;
    g_counters[i].file = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  }
}

// The count, or NaN if there is none.
static double read_counter(const struct counter* c) {
  struct {
    uint64_t value, enabled, running;
  } now;
  if (c->file < 0 || read(c->file, &now, sizeof now) != (ssize_t)sizeof now || now.running == 0) return NAN;
  return (double)now.value * ((double)now.enabled / (double)now.running);
}

static void print_counters(void) {
  printf("\"counters\": {");
  for (int i = 0; i < kCounters; i++) {
    const double count = read_counter(&g_counters[i]);
    printf("%s\"%s\": ", i == 0 ? "" : ", ", g_counters[i].name);
    if (isnan(count)) {
      printf("null");
    } else {
      printf("%.0f", count);
    }
  }
  printf("}");
}
