// SPDX-License-Identifier: MIT
//
// os/write.h on Linux.
#include "os/write.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/errno_guard.h"

namespace brimful::os {

int write_whole(int descriptor, const char* text, std::size_t bytes) {
  const ErrnoGuard guard;
  while (bytes > 0) {
    const long written = syscall(SYS_write, descriptor, text, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;  // a device that takes nothing would hold us for ever
    text += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return 0;
}

}  // namespace brimful::os
