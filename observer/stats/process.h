// SPDX-License-Identifier: MIT
//
// What the kernel says of a process: /proc/PID/stat, statm and smaps_rollup.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace brimful::observer::stats {

// Tells processes apart that have the same number one after the other, and programs that one process runs one after the
// other (exec): when it was started, and where its program's code begins. "": there is no such process, or a zombie.
std::string identity(pid_t pid);

// Adds age, threads, processor time and what is resident. `whole`: also PSS and hugepages, for which the kernel walks the
// page tables, about 1 ms for each GiB of small pages. false: the process has ended.
bool add_kernel_figures(pid_t pid, bool whole, nlohmann::json& into);

// The command line, with spaces between words and its control characters made visible; at most 1,000 letters.
std::string command_line(pid_t pid);

// Seconds since the machine was started.
double now_seconds();

}  // namespace brimful::observer::stats
