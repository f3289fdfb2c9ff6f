// SPDX-License-Identifier: MIT
//
// What the programs that interrupt restartable sections need to know of the processor: its breakpoint, and where a signal
// handler and a tracer find the address of the next instruction.
#pragma once

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace brimful::stress {

#if defined(__aarch64__)
// All instructions are 4 bytes long. BRK #0; the thread stands on it when it traps.
using Code = uint32_t;
constexpr Code kBreakpoint = 0xD4200000;
constexpr uintptr_t kBehindBreakpoint = 0;
constexpr size_t kInstructionBytes = 4;

inline auto& instruction_pointer(void* context) { return static_cast<ucontext_t*>(context)->uc_mcontext.pc; }

inline uintptr_t instruction_pointer_of(pid_t stopped) {
  user_regs_struct registers = {};
  iovec part = {&registers, sizeof registers};
  ptrace(PTRACE_GETREGSET, stopped, NT_PRSTATUS, &part);
  return registers.pc;
}
#else
// Lengths differ (0: objdump says where instructions begin). INT3; the thread stands behind it when it traps.
using Code = uint8_t;
constexpr Code kBreakpoint = 0xCC;
constexpr uintptr_t kBehindBreakpoint = 1;
constexpr size_t kInstructionBytes = 0;

inline auto& instruction_pointer(void* context) {
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
}

inline uintptr_t instruction_pointer_of(pid_t stopped) {
  return static_cast<uintptr_t>(ptrace(PTRACE_PEEKUSER, stopped, offsetof(user, regs.rip), nullptr));
}
#endif

}  // namespace brimful::stress
