// SPDX-License-Identifier: MIT
//
// What it takes to start a program, from exec to its end: system calls, opened files and page faults, which do not
// depend on what else the machine does.
//
//   start_up_counts LIBRARY PROGRAM [ARGUMENT]...      prints "CALLS OPENS FAULTS"
//
// LIBRARY is preloaded by the program alone; an empty one: none. Each system call is a stop of the traced child; the faults are those that the kernel counted for it. 77: the system
// lets nobody be traced.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kSkipped = 77 };

static void run_traced(const char* library, char** command) {
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(kSkipped);
  static char preload[4200];
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
  char* const environment[] = {*library != '\0' ? preload : NULL, NULL};
  execve(command[0], command, environment);
  _exit(127);
}

// Whether the call that the child is about to make opens a file; -1: the registers can't be read.
static int opens_file(pid_t child) {
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, child, NULL, &registers) != 0) return -1;
  return registers.orig_rax == SYS_openat || registers.orig_rax == SYS_open;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const pid_t child = fork();
  if (child == 0) run_traced(argv[1], argv + 2);
  int status = 0;
  struct rusage usage = {0};
  // The first stop is behind exec.
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return WEXITSTATUS(status) == kSkipped ? kSkipped : 1;
  ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD);
  long calls = 0;
  long opens = 0;
  int is_entry = 1;
  long signal_to_pass = 0;
  for (;;) {
    if (ptrace(PTRACE_SYSCALL, child, NULL, signal_to_pass) != 0 || wait4(child, &status, 0, &usage) != child) return 1;
    if (!WIFSTOPPED(status)) break;
    signal_to_pass = 0;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      signal_to_pass = WSTOPSIG(status);
      continue;
    }
    if (is_entry) {
      const int opened = opens_file(child);
      if (opened < 0) return kSkipped;
      opens += opened;
      ++calls;
    }
    is_entry = !is_entry;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 1;
  printf("%ld %ld %ld\n", calls, opens, usage.ru_minflt);
  return 0;
}
