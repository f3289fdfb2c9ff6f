// SPDX-License-Identifier: MIT
//
// The registers of a thread that stands still: stopped, or in a core.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brimful::observer::memory {

struct ThreadState {
  pid_t tid = 0;
  std::uint64_t stack_pointer = 0;
  std::uint64_t thread_pointer = 0;  // of thread-local storage; 0: not known
  std::vector<std::uint64_t> words;  // all registers, the wide ones too
};

// The sixteen or so registers and the rest, from what NT_PRSTATUS holds.
void read_general_registers(const void* registers, std::size_t bytes, ThreadState& into);

}  // namespace brimful::observer::memory
