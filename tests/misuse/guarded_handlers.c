// SPDX-License-Identifier: MIT
//
// SIGSEGV stays the program's: its handlers see what they would see without the library, whenever they are set, and a
// fault that is none of a guarded object's ends the process as ever. Each case in a child; exit code 0: all as it should
// be.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guarded.h"

static const char* volatile faulted_at;

static void leave(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  _exit(info->si_addr == (void*)faulted_at ? 42 : 43);
}

static void set_handler(void) {
  struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
}

static void fault_at(char* address) {
  faulted_at = address;
  write_at(address);
}

static int is_default(void) {
  struct sigaction now;
  sigaction(SIGSEGV, NULL, &now);
  return (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
}

static void handler_before(void) {
  set_handler();
  fault_at(guarded_at_end(64) + 64);
}
static void handler_after(void) {
  char* object = guarded_at_end(64);
  set_handler();
  fault_at(object + 64);
}
static void null_pointer(void) {
  guarded_at_end(64);
  fault_at(hide(NULL));
}
static void page_of_the_program(void) {
  guarded_at_end(64);
  fault_at(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
static void sent_by_kill(void) {
  guarded_at_end(64);
  kill(getpid(), SIGSEGV);
}
static void sent_by_raise(void) {
  guarded_at_end(64);
  raise(SIGSEGV);
}
// The handler that was there is called as one that is put back.
static void old_handler_put_back(void) {
  guarded_at_end(64);
  struct sigaction old;
  struct sigaction action = {.sa_handler = SIG_IGN};
  sigaction(SIGSEGV, &action, &old);
  sigaction(SIGSEGV, &old, NULL);
  fault_at(hide(NULL));
}
static void ignored(void) {
  signal(SIGSEGV, SIG_IGN);
  guarded_at_end(64);
  kill(getpid(), SIGSEGV);
  _exit(44);
}
static void free_changes_nothing(void) {
  const int was_default = is_default();
  void* object = malloc(1 << 20);
  free(object);
  _exit(was_default && is_default() ? 45 : 46);
}

static const struct {
  const char* name;
  void (*run)(void);
  int status;  // as waitpid() gives it
} kCases[] = {
    {"a handler set before", handler_before, 42 << 8},
    {"a handler set after", handler_after, 42 << 8},
    {"a null pointer", null_pointer, SIGSEGV},
    {"a page of the program", page_of_the_program, SIGSEGV},
    {"kill", sent_by_kill, SIGSEGV},
    {"raise", sent_by_raise, SIGSEGV},
    {"an old handler put back", old_handler_put_back, SIGSEGV},
    {"an ignored signal", ignored, 44 << 8},
    {"no guarded object yet", free_changes_nothing, 45 << 8},
};

int main(void) {
  int failed = 0;
  for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      kCases[i].run();
      _exit(47);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if ((status & ~0x80) == kCases[i].status) continue;
    char line[200];
    snprintf(line, sizeof line, "%s: status %#x, not %#x\n", kCases[i].name, status, kCases[i].status);
    print_line(line);
    failed = 1;
  }
  return failed;
}
