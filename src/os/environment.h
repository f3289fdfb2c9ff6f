// SPDX-License-Identifier: MIT
//
// What the process was started with, read without libc's help: the first malloc can come from the dynamic linker,
// before `environ` is set and before any constructor ran.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::os {

// The value of environment variable `name`, or nullptr. Lives as long as the process. O(size of the environment).
const char* environment(const char* name);

// true when the name of some variable begins with `prefix`. O(size of the environment).
bool environment_has_prefix(const char* prefix);

// true when the process runs with privileges its caller lacks (AT_SECURE): then the environment is not trusted.
bool is_secure_mode();

// Bytes of address space this process may still take (RLIMIT_AS less what it uses), or SIZE_MAX when unlimited.
std::size_t address_space_left();

// The address at which the kernel mapped the dynamic linker; 0: a static program, or one that the linker was told to run.
std::uint64_t dynamic_linker();

// Where the program's own code begins, as opposed to that of its libraries.
std::uint64_t program_entry();

// 16 random bytes the kernel gave this process, folded to 8. The same value at each call.
std::uint64_t process_random();

// vm.overcommit_memory is 2: writable memory is charged when it is mapped, touched or not. The first call reads a file, three
// system calls, so who can do without in a small process does not ask; later ones answer the same. Any moment.
bool is_overcommit_strict();

}  // namespace brimful::os
