// SPDX-License-Identifier: MIT
//
// os/observer.h on Linux.
//
// vfork, because a copy of a large process takes long and may be refused, and because nothing of the copy would be used:
// the child makes five system calls, none of which touches memory of ours. Rejected: posix_spawn, whose file actions
// allocate. System calls go by number, because programs bring functions of these names; vfork can't, as it returns twice.
#include "os/observer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/line.h"
#include "os/errno_guard.h"
#include "os/kept_stderr.h"

namespace brimful::os {
namespace {

constexpr std::size_t kMostVariables = 4096;  // what comes behind is left out
constexpr std::size_t kMostArguments = 8;

bool begins_with(const char* text, const char* prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

// What would make the library look at the observer as well. Variables for the observer itself stay.
bool is_kept_back(const char* variable) {
  return begins_with(variable, "LD_PRELOAD=") || begins_with(variable, "BRIMFUL_CONF=") ||
         begins_with(variable, "BRIMFUL_LEAKS=");
}

void copy_environment(char** into) {
  std::size_t count = 0;
  for (char** entry = environ; entry != nullptr && *entry != nullptr && count + 1 < kMostVariables; ++entry) {
    if (!is_kept_back(*entry)) into[count++] = *entry;
  }
  into[count] = nullptr;
}

// Signals as the kernel knows them: a bit each.
using SignalMask = std::uint64_t;

void set_signal_mask(const SignalMask& mask, SignalMask* before) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, before, sizeof mask);
}

// The child, in the parent's memory: no return, no write to anything that the parent reads but *error.
[[noreturn]] void become(const char* path, char** arguments, char** variables, int input, int output,
                         const SignalMask& signals, volatile int* error) {
  // The program may have closed its first three descriptors, and got them again for the pipe.
  if (input == STDIN_FILENO) {
    syscall(SYS_fcntl, input, F_SETFD, 0);
  } else {
    syscall(SYS_dup3, input, STDIN_FILENO, 0);
  }
  if (output >= 0) {
    if (output != STDOUT_FILENO) syscall(SYS_dup3, output, STDOUT_FILENO, 0);
    if (output != STDERR_FILENO) syscall(SYS_dup3, output, STDERR_FILENO, 0);
  }
  set_signal_mask(signals, nullptr);
  syscall(SYS_execve, path, arguments, variables);
  *error = errno;
  while (true) syscall(SYS_exit, 127);
}

void wait_for(pid_t child) {
  int status = 0;
  // ECHILD: the program has its children taken from it (SIG_IGN); then this one has ended, too.
  while (syscall(SYS_wait4, child, &status, 0, nullptr) < 0 && errno == EINTR) {
  }
}

}  // namespace

int be_observed_by(const char* path, const char* const* arguments) {
  const ErrnoGuard guard;
  Line number;
  number << static_cast<std::uint64_t>(syscall(SYS_getpid));
  char* list[kMostArguments + 1] = {};
  for (std::size_t n = 0; n < kMostArguments && arguments[n] != nullptr; ++n) {
    const bool is_number = arguments[n][0] == '%';
    list[n] = const_cast<char*>(is_number ? number.data() : arguments[n]);
  }
  // Cleared: the observer searches our stack for pointers, and what earlier calls left here is none.
  char* variables[kMostVariables] = {};
  copy_environment(variables);
  int way[2];
  if (syscall(SYS_pipe2, way, O_CLOEXEC) != 0) return errno;
  SignalMask before = 0;
  set_signal_mask(~SignalMask{0}, &before);
  volatile int error = 0;
  const int output = kept_stderr();
  const pid_t child = vfork();
  if (child == 0) become(path, list, variables, way[0], output, before, &error);
  const int result = child < 0 ? errno : error;
  syscall(SYS_close, way[0]);
  // Refused where there is no Yama, and not needed there.
  if (child > 0) syscall(SYS_prctl, PR_SET_PTRACER, child, 0, 0, 0);
  syscall(SYS_close, way[1]);
  if (child > 0) {
    wait_for(child);
    syscall(SYS_prctl, PR_SET_PTRACER, 0, 0, 0, 0);
  }
  set_signal_mask(before, nullptr);
  return result;
}

}  // namespace brimful::os
