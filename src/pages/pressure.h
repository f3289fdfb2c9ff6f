// SPDX-License-Identifier: MIT
//
// Memory pressure: whether the machine, or the process's control group, runs short of memory, so that memory which lies
// free would help somebody. Looked at once a second, and only by a heap that is large enough to help: about 10 µs.
//
// Three signs, any of which is enough: tasks of the group (v2) or the system stalled for memory in a tenth of the last
// ten seconds (PSI); or the kernel had to reclaim because the group reached memory.high or its limit since the last look.
// It is over when a look sees none of them.
//
// Rejected: a trigger on the PSI file. It needs a descriptor held open and a thread that polls it, and only a
// privileged process may set one before Linux 6.4.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/cgroup.h"

namespace brimful::pages {

// Heaps below this never look.
inline constexpr std::size_t kPressureFromBytes = std::size_t{64} << 20;
// Stalls from here on are pressure, in hundredths of a percent.
inline constexpr std::uint32_t kStall = 1000;

// true while memory is short: purge shall not wait, and nobody populate ahead. One load.
bool under_pressure();
extern std::atomic<bool> is_short;  // for the anatomy

// For ticks: looks, if it is time and the heap is large. Takes the heap lock for a moment if it is free. At most seven
// system calls.
void poll_pressure(std::uint64_t now_ms);

// The decision by itself, for tests: looks at these places now.
bool look_for_pressure(const os::MemoryGroup& group, const char* system_file, std::uint64_t* refusals);

}  // namespace brimful::pages
