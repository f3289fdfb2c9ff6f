// SPDX-License-Identifier: MIT
//
// os/kept_stderr.h on Linux.
#include "os/kept_stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "os/errno_guard.h"
#include "os/write.h"

namespace brimful::os {
namespace {

// Which file a descriptor leads to.
struct FileId {
  std::uint64_t inode = 0;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  bool exists = false;

  bool operator==(const FileId& other) const {
    return exists && other.exists && inode == other.inode && major == other.major && minor == other.minor;
  }
};

FileId file_of(int descriptor) {
  struct statx found = {};
  constexpr int kEmptyPath = 0x1000;  // AT_EMPTY_PATH
  if (syscall(SYS_statx, descriptor, "", kEmptyPath, STATX_INO, &found) != 0) return {};
  return {found.stx_ino, found.stx_dev_major, found.stx_dev_minor, true};
}

constinit int duplicate = -1;
constinit FileId kept = {};

}  // namespace

int kept_stderr() {
  if (file_of(duplicate) == kept) return duplicate;
  return file_of(STDERR_FILENO) == kept ? STDERR_FILENO : -1;
}

void keep_stderr() {
  const ErrnoGuard guard;
  kept = file_of(STDERR_FILENO);
  constexpr int kLeast[] = {1000, 200, 20};  // the limit of open files may be low
  for (const int least : kLeast) {
    duplicate = static_cast<int>(syscall(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, least));
    if (duplicate >= 0) return;
  }
}

void write_to_kept_stderr(const char* text, std::size_t bytes) {
  const ErrnoGuard guard;
  const int descriptor = kept_stderr();
  if (descriptor < 0) return;
  // The signal goes to the thread that writes. When it comes it stays blocked: the process is about to end, with the exit
  // code it chose.
  constexpr std::uint64_t kBrokenPipe = std::uint64_t{1} << (SIGPIPE - 1);
  std::uint64_t before = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &kBrokenPipe, &before, sizeof before);
  if (write_whole(descriptor, text, bytes) == EPIPE) return;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
}

}  // namespace brimful::os
