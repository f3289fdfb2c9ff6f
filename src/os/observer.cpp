// SPDX-License-Identifier: MIT
//
// os/observer.h on Linux.
//
// vfork, because a copy of a large process takes long and may be refused, and because nothing of the copy would be used:
// the child makes five system calls, none of which touches memory of ours. Rejected: posix_spawn, whose file actions
// allocate.
#include "os/observer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

// The child, in the parent's memory: no return, no write to anything that the parent reads but *error.
[[noreturn]] void become(const char* path, char** arguments, char** variables, int input, int output,
                         const sigset_t* signals, volatile int* error) {
  // The program may have closed its first three descriptors, and got them again for the pipe.
  if (input == STDIN_FILENO) {
    fcntl(input, F_SETFD, 0);
  } else {
    dup2(input, STDIN_FILENO);
  }
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  sigprocmask(SIG_SETMASK, signals, nullptr);
  execve(path, arguments, variables);
  *error = errno;
  _exit(127);
}

void wait_for(pid_t child) {
  int status = 0;
  // ECHILD: the program has its children taken from it (SIG_IGN); then this one has ended, too.
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

int be_observed_by(const char* path, const char* const* arguments) {
  const ErrnoGuard guard;
  Line number;
  number << static_cast<std::uint64_t>(getpid());
  char* list[kMostArguments + 1] = {};
  for (std::size_t n = 0; n < kMostArguments && arguments[n] != nullptr; ++n) {
    list[n] = const_cast<char*>(strcmp(arguments[n], "%pid") == 0 ? number.data() : arguments[n]);
  }
  char* variables[kMostVariables];
  copy_environment(variables);
  int way[2];
  if (pipe2(way, O_CLOEXEC) != 0) return errno;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  volatile int error = 0;
  const int output = kept_stderr();
  const pid_t child = vfork();
  if (child == 0) become(path, list, variables, way[0], output, &before, &error);
  const int result = child < 0 ? errno : error;
  close(way[0]);
  if (child > 0) {
    prctl(PR_SET_PTRACER, child, 0, 0, 0);  // refused where there is no Yama, and not needed there
    close(way[1]);
    wait_for(child);
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
  } else {
    close(way[1]);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return result;
}

}  // namespace brimful::os
