// SPDX-License-Identifier: MIT
//
// What a handler of SIGSEGV is told of the access that faulted, by its third argument.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <cstring>

#include "base/compiler.h"

namespace brimful::arch {

enum class Access : std::uint8_t { kUnknown, kRead, kWrite };

// The registers at the instruction that faulted, and what it was about to do.
struct Fault {
  std::uint64_t ip;
  std::uint64_t sp;
  std::uint64_t link;  // where a function that calls none returns to, on aarch64; else that is on the stack, and this 0
  Access access;
};

inline Fault fault_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
  Fault fault = {};
#if defined(__x86_64__)
  constexpr std::uint64_t kIsWrite = 2;  // of the page fault's error code
  fault.ip = static_cast<std::uint64_t>(machine.gregs[REG_RIP]);
  fault.sp = static_cast<std::uint64_t>(machine.gregs[REG_RSP]);
  fault.access = (static_cast<std::uint64_t>(machine.gregs[REG_ERR]) & kIsWrite) != 0 ? Access::kWrite : Access::kRead;
#elif defined(__aarch64__)
  // Records behind the registers, each with a magic number and its length; one has the exception's syndrome.
  constexpr std::uint32_t kSyndrome = 0x45535201;
  constexpr std::uint64_t kIsWrite = 1U << 6;
  fault.ip = machine.pc;
  fault.sp = machine.sp;
  fault.link = machine.regs[30];
  for (std::size_t at = 0; at + 16 <= sizeof machine.__reserved;) {
    std::uint32_t head[2];
    memcpy(head, machine.__reserved + at, sizeof head);
    if (head[0] == 0 || head[1] < sizeof head) break;
    if (head[0] == kSyndrome) {
      std::uint64_t syndrome = 0;
      memcpy(&syndrome, machine.__reserved + at + sizeof head, sizeof syndrome);
      fault.access = (syndrome & kIsWrite) != 0 ? Access::kWrite : Access::kRead;
      break;
    }
    at += head[1];
  }
#endif
  return fault;
}

#if defined(__x86_64__)
// The length of FF /2, a call by a register or a word of memory, from the byte behind FF on.
BRIMFUL_UNCHECKED inline int length_of_call(const unsigned char* modrm) {
  constexpr int kSib = 4;
  constexpr int kDisp32 = 5;
  const int mode = *modrm >> 6;
  const int base = *modrm & 7;
  const int sib = mode != 3 && base == kSib ? 1 : 0;
  const bool is_disp32 = mode == 2 || (mode == 0 && (base == kDisp32 || (sib != 0 && (modrm[1] & 7) == kDisp32)));
  return 2 + sib + (is_disp32 ? 4 : mode == 1 ? 1 : 0);
}
#endif

// Whether the bytes before `address`, eight of which can be read, are an instruction that calls: then it may be where a
// call returns to.
BRIMFUL_UNCHECKED inline bool is_behind_call(std::uint64_t address) {
#if defined(__x86_64__)
  const auto* at = reinterpret_cast<const unsigned char*>(address);
  if (at[-5] == 0xE8) return true;
  for (int length = 2; length <= 7; ++length) {
    const unsigned char* modrm = at - length + 1;
    if (at[-length] == 0xFF && (*modrm & 0x38) == 0x10 && length_of_call(modrm) == length) return true;
  }
  return false;
#elif defined(__aarch64__)
  if (address % 4 != 0) return false;
  const std::uint32_t code = *reinterpret_cast<const std::uint32_t*>(address - 4);
  return (code >> 26) == 0x25 || (code & 0xFFFFFC1F) == 0xD63F0000;  // BL, BLR
#endif
}

}  // namespace brimful::arch
