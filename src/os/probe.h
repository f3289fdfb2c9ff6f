// SPDX-License-Identifier: MIT
//
// Looking at memory that may not be there: a stack, of which nobody says where it ends without asking the C library,
// which takes locks for the answer.
#pragma once

#include <cstdint>

namespace brimful::os {

// Eight bytes at `address` can be read at this moment. One system call, which copies them and fails where we would fault:
// rt_sigprocmask(2), asked for a change that does not exist, so it changes nothing. No filter forbids it, and it
// is the cheapest of its kind (0.1 us; process_vm_readv() of a page takes four times as long and is often forbidden).
// errno is kept.
bool is_readable(std::uint64_t address);

// The calling thread's number: one system call.
std::uint32_t thread_id();

}  // namespace brimful::os
