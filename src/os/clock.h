// SPDX-License-Identifier: MIT
//
// Time as precise as the system has it, for what is measured: some 20 ns to read. What only decides by the millisecond
// asks calls.now_ms(), which is cheaper.
#pragma once

#include <cstdint>

namespace brimful::os {

// Nanoseconds of CLOCK_MONOTONIC. errno is kept.
std::uint64_t monotonic_ns();

// Nanoseconds of processor time that the calling thread has had: one system call. errno is kept.
std::uint64_t thread_cpu_ns();

// Milliseconds since the process was started, in steps of the clock ticks by which the kernel counts (10 ms): a file and a
// clock read. 0: the system does not say. errno is kept.
std::uint64_t process_age_ms();

}  // namespace brimful::os
