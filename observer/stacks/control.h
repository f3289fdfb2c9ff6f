// SPDX-License-Identifier: MIT
//
// Where a process keeps the control block of its samples: the library's anatomy says so.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace brimful::observer::stacks {

// False with a reason in `why`: it has no anatomy (no brimful), or one that doesn't know samples.
bool find_control(pid_t process, std::uint64_t& control, std::string& why);

}  // namespace brimful::observer::stacks
