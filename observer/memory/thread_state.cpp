// SPDX-License-Identifier: MIT
#include "memory/thread_state.h"

#include <sys/user.h>

#include <algorithm>
#include <cstring>

namespace brimful::observer::memory {

void read_general_registers(const void* registers, std::size_t bytes, ThreadState& into) {
  user_regs_struct known = {};
  std::memcpy(&known, registers, std::min(bytes, sizeof known));
#if defined(__x86_64__)
  into.stack_pointer = known.rsp;
  into.thread_pointer = known.fs_base;
#elif defined(__aarch64__)
  into.stack_pointer = known.sp;
#endif
  const std::size_t before = into.words.size();
  into.words.resize(before + bytes / sizeof(std::uint64_t));
  std::memcpy(into.words.data() + before, registers, bytes / sizeof(std::uint64_t) * sizeof(std::uint64_t));
}

}  // namespace brimful::observer::memory
