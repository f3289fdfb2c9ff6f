// SPDX-License-Identifier: MIT
//
// A process's memory by process_vm_readv, its mappings from /proc/PID/maps.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "memory/target.h"

namespace brimful::observer::memory {

// false: errno says why, 0 if there is less memory.
bool read_process(pid_t pid, std::uint64_t address, void* into, std::size_t bytes);
// The process's number in its own PID namespace; `pid`, if the kernel does not say.
pid_t inner_number(pid_t pid);
// Empty: it has ended, or may not be read.
std::vector<Mapping> mappings_of(pid_t pid);

// nullptr: *error says why in one line.
std::unique_ptr<Target> open_process(pid_t pid, std::string* error);

}  // namespace brimful::observer::memory
