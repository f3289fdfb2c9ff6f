// SPDX-License-Identifier: MIT
//
// os/probe.h on Linux.
#include "os/probe.h"

#include <errno.h>
#include <sys/syscall.h>

#include "arch/system_call.h"

namespace brimful::os {

bool is_readable(std::uint64_t address) {
  constexpr std::uint64_t kNoSuchChange = UINT32_MAX;
  constexpr std::uint64_t kMaskBytes = 8;
  return arch::system_call(SYS_rt_sigprocmask, kNoSuchChange, address, 0, kMaskBytes) != -EFAULT;
}

std::uint32_t thread_id() { return static_cast<std::uint32_t>(arch::system_call(SYS_gettid, 0, 0, 0, 0)); }

}  // namespace brimful::os
