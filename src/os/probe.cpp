// SPDX-License-Identifier: MIT
//
// os/probe.h on Linux.
#include "os/probe.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/errno_guard.h"

namespace brimful::os {

bool is_readable(std::uint64_t address) {
  constexpr long kNoSuchChange = -1;
  constexpr long kMaskBytes = 8;
  const ErrnoGuard guard;
  return syscall(SYS_rt_sigprocmask, kNoSuchChange, address, nullptr, kMaskBytes) == 0 || errno != EFAULT;
}

std::uint32_t thread_id() { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

}  // namespace brimful::os
