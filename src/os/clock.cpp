// SPDX-License-Identifier: MIT
//
// os/clock.h on Linux.
#include "os/clock.h"

#include <sys/auxv.h>
#include <time.h>

#include "os/errno_guard.h"
#include "os/small_file.h"

namespace brimful::os {

namespace {

std::uint64_t read_ns(clockid_t clock) {
  const ErrnoGuard guard;
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t monotonic_ns() { return read_ns(CLOCK_MONOTONIC); }

std::uint64_t thread_cpu_ns() { return read_ns(CLOCK_THREAD_CPUTIME_ID); }

// proc_pid_stat(5): the 22nd field is the start, in ticks since the system was booted. The second is the program's name in
// parentheses, and may hold blanks and parentheses itself.
std::uint64_t process_age_ms() {
  const ErrnoGuard guard;
  char text[1024];
  if (read_small_file("/proc/self/stat", text, sizeof text) <= 0) return 0;
  const char* at = text;
  for (const char* c = text; *c != '\0'; ++c) {
    if (*c == ')') at = c;
  }
  for (int blanks = 20; blanks != 0 && *at != '\0'; ++at) blanks -= *at == ' ' ? 1 : 0;
  std::uint64_t ticks = 0;
  for (; *at >= '0' && *at <= '9'; ++at) ticks = ticks * 10 + static_cast<unsigned>(*at - '0');
  const std::uint64_t ticks_per_s = getauxval(AT_CLKTCK);
  if (ticks_per_s == 0) return 0;
  const std::uint64_t now_ms = read_ns(CLOCK_BOOTTIME) / 1'000'000;
  const std::uint64_t began_ms = ticks * 1000 / ticks_per_s;
  return now_ms > began_ms ? now_ms - began_ms : 0;
}

}  // namespace brimful::os
