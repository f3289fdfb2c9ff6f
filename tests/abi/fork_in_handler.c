// SPDX-License-Identifier: MIT
//
// A signal handler that forks while its thread is in fork(), in allocation, or anywhere else. Afterwards the parent and
// every child must have the whole heap: a fork that leaves one of the library's locks behind makes each large request
// fail, and the other threads wait for ever. The child of a handler's fork either ends there, or returns from the handler
// and goes on with whatever the handler interrupted, the fork included.
//
// With one thread only: in a process with more, glibc's fork() holds a lock of its own that a fork in a handler waits for.
//
// A timer lands where it lands; the last test steps a child through fork() and sends a signal at one instruction after
// the other.
#include "check.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>

enum { kOuterForks = 300, kMostNested = 3 };
static const double kSeconds = 0.6;

static volatile sig_atomic_t is_copy;  // this process is the child of a handler's fork, and has returned from it
static volatile sig_atomic_t forks_under_way;
static volatile long handler_forks;
static volatile long forks_in_forks;
static volatile long forks_in_forks_in_forks;

// Larger objects are not to be had from the reserve for signal handlers: NULL, when the thread still counts as inside a
// fork.
static int use_heap(void) {
  static const size_t kSizes[] = {16, 100, 700, 3000, 20000, 100000, 700000};
  void* object[7 * 8];
  int count = 0;
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 7; ++i) {
      object[count] = malloc(kSizes[i]);
      if (object[count] == NULL) return 0;
      memset(object[count++], round, 16);
    }
  }
  while (count > 0) free(object[--count]);
  return 1;
}

// What a fork left behind shows in many requests, not in a few: hits are served all the same.
static int use_heap_long(void) {
  for (int i = 0; i < 2000; ++i) {
    char* object = malloc(3000 + (size_t)i % 40 * 800);
    if (object == NULL) return 0;
    object[0] = 1;
    if (i % 3 != 0) free(object);
  }
  return use_heap();
}

static void reap(pid_t child, const char* what) {
  int status = 0;
  pid_t got;
  while ((got = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  if (got == child && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
    CHECK_FAIL("%s ended with wait status %#x", what, status);
}

static timer_t timer;
static int has_timer;
static uint64_t random_state = 5;
static unsigned fork_us = 300;  // how long a fork takes here

// Lets the timer fire once, somewhere in the time of a fork from now on. Not again and again: where handlers take longer
// than its period, nothing else would ever run, and clone() starts anew for each signal.
static void arm_timer(void) {
  struct itimerspec once = {{0, 0}, {0, (long)(next_random(&random_state) % fork_us * 1000 + 1000)}};
  if (has_timer) syscall(SYS_timer_settime, timer, 0, &once, NULL);
}

static void fork_in_handler(int number) {
  (void)number;
  int saved = errno;
  long run = handler_forks++;
  forks_in_forks += forks_under_way == 1;
  forks_in_forks_in_forks += forks_under_way > 1;
  ++forks_under_way;
  if (forks_under_way < kMostNested && run % 2 == 0) arm_timer();
  pid_t child = fork();
  --forks_under_way;
  if (child == 0) {
    if (run % 3 == 0) _exit(0);
    // A small object, because the handler may have interrupted the allocator (docs/design/0008).
    void* object = malloc(200);
    if (object == NULL) _exit(11);
    free(object);
    if (run % 3 == 1) _exit(0);
    has_timer = 0;
    signal(SIGALRM, SIG_DFL);
    alarm(20);  // a child that hangs is ended, and seen by its parent
    is_copy = 1;
    errno = saved;
    return;
  }
  if (child > 0) reap(child, "the child of a handler's fork");
  errno = saved;
}

static void catch_signals(int number) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = fork_in_handler;
  action.sa_flags = SA_RESTART | SA_NODEFER;
  sigaction(number, &action, NULL);
}

// After anything that a handler may have interrupted: the copy has gone on with it, and ends here.
static void end_if_copy(pid_t own_child) {
  if (!is_copy) return;
  if (own_child > 0) reap(own_child, "the child of a copy");
  _exit(use_heap_long() ? 0 : 12);
}

static void fork_once(void) {
  forks_under_way = 1;
  arm_timer();
  pid_t child = fork();
  if (child == 0) _exit(use_heap_long() ? 0 : 13);
  forks_under_way = 0;
  end_if_copy(child);
  if (child > 0) reap(child, "the child of a fork");
  end_if_copy(0);
}

static void make_timer(void) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGUSR1;
  // sigev_notify_thread_id, which has no public name in older headers
  pid_t thread = (pid_t)syscall(SYS_gettid);
  memcpy((char*)&event + offsetof(struct sigevent, sigev_notify) + sizeof(int), &thread, sizeof thread);
  CHECK_EQ(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer), 0);
}

static void fork_under_the_timer(void) {
  handler_forks = forks_in_forks = forks_in_forks_in_forks = 0;
  catch_signals(SIGUSR1);
  make_timer();
  has_timer = 0;
  double begin = seconds_now();
  for (int i = 0; i < 4; ++i) fork_once();
  fork_us = (unsigned)((seconds_now() - begin) / 4 * 1e6 / 2) + 50;
  has_timer = 1;
  double end = seconds_now() + kSeconds;
  int forks = 0;
  while (forks < kOuterForks && (seconds_now() < end || forks_in_forks < 5)) {
    fork_once();
    ++forks;
  }
  syscall(SYS_timer_delete, timer);
  end_if_copy(0);
  say("      %d forks, %ld by handlers: %ld in a fork, %ld in a fork in a fork", forks, handler_forks, forks_in_forks,
      forks_in_forks_in_forks);
  CHECK_GE(forks_in_forks + forks_in_forks_in_forks, 5);
}

static void a_handler_may_fork_in_fork(void) {
  fork_under_the_timer();
  CHECK(use_heap_long());
}

// --- every instruction -----------------------------------------------------------------------------------------------

struct Shared {
  volatile int is_stepping;    // the child is inside the fork that is stepped
  volatile int is_in_handler;  // and was interrupted in it
};
static struct Shared* shared;

static void fork_when_stepped(int number) {
  shared->is_in_handler = 1;
  fork_in_handler(number);
  if (!is_copy) {
    shared->is_in_handler = 0;
    raise(SIGTRAP);  // the parent goes on stepping
  }
}

static void run_stepped_child(int forks) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = fork_when_stepped;
  sigaction(SIGUSR1, &action, NULL);
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
  for (int i = 0; i < forks; ++i) {
    shared->is_stepping = 1;
    raise(SIGTRAP);
    pid_t child = fork();
    if (child == 0) _exit(use_heap() ? 0 : 13);
    if (!is_copy) shared->is_stepping = 0;
    end_if_copy(child);
    reap(child, "the child of a stepped fork");
    if (!use_heap_long()) _exit(14);
  }
  _exit(check_failures == 0 ? 0 : 15);
}

// Steps through one fork; a signal at each `stride`th instruction from the `first` on. Returns how many instructions it
// has, or -1: the child has ended, with *status.
static long step_through_fork(pid_t child, long first, long stride, long* signals, int* status) {
  long steps = 0;
  while (shared->is_stepping) {
    int is_time = steps % stride == first;
    if (ptrace(PTRACE_SINGLESTEP, child, NULL, is_time ? (void*)(uintptr_t)SIGUSR1 : NULL) != 0) return -1;
    if (waitpid(child, status, 0) != child || !WIFSTOPPED(*status)) return -1;
    ++steps;
    if (!is_time) continue;
    ++*signals;
    // The handler runs at full speed, to its own SIGTRAP. One that is held back runs later, in the middle of a step.
    while (shared->is_in_handler) {
      if (ptrace(PTRACE_CONT, child, NULL, NULL) != 0) return -1;
      if (waitpid(child, status, 0) != child || !WIFSTOPPED(*status)) return -1;
    }
  }
  return steps;
}

static void a_handler_may_fork_at_every_instruction_of_fork(void) {
  enum { kStride = 61, kForks = 2 };
  static unsigned turn;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    SKIP("no shared memory");
    return;
  }
  // Another run, other instructions: all of them in kStride / kForks runs.
  const char* all = getenv("BRIMFUL_TEST_LONG");
  int forks = all != NULL ? kStride : kForks;
  turn = all != NULL ? 0 : (unsigned)getpid();
  pid_t child = fork();
  if (child == 0) run_stepped_child(forks);
  int status = 0;
  long instructions = 0, signals = 0;
  int done = 0;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    int pass_on = WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
    if (shared->is_stepping) {
      long steps = step_through_fork(child, (long)(turn++ % kStride), kStride, &signals, &status);
      if (steps < 0) break;
      instructions += steps;
      ++done;
      pass_on = 0;
    }
    ptrace(PTRACE_CONT, child, NULL, (void*)(uintptr_t)pass_on);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    SKIP("this system forbids ptrace");
    return;
  }
  CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the stepped child ended with wait status %#x in fork %d",
            status, done + 1);
  say("      %d forks stepped, %ld instructions, %ld signals", done, instructions, signals);
  CHECK_EQ(done, forks);
  CHECK_GE(signals, forks * 5);
}

int main(void) {
  begin(60);
  CHECK(use_heap_long());
  RUN(a_handler_may_fork_at_every_instruction_of_fork);
  RUN(a_handler_may_fork_in_fork);
  return finish();
}
