// SPDX-License-Identifier: MIT
//
// How deep the calls reach into the stack of whoever makes them: threads may have 16 KiB, of which a part is the C
// library's, and alternate stacks for signals less. Each call runs on a stack of its own that is painted, in a process of
// its own, so that the first one starts the allocator there; and once more, as it is from then on. What ends the process
// with a report is measured when the signal comes.
//
// The bounds are what is promised (docs/guide/limits.md); the figures are printed.
#define _GNU_SOURCE 1
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

enum { kStackBytes = 256 << 10, kPaint = 0x5A, kMostBytes = 3 << 10, kMostOfReports = 5 << 10 };

static unsigned char* stack;
static unsigned char alternate[64 << 10];
static ucontext_t outside, inside;
static void (*body)(void);
static uintptr_t top;  // where the body began

__attribute__((noinline)) static size_t depth(void) {
  const unsigned char* lowest = stack;
  while (*lowest == kPaint) ++lowest;
  return top - (uintptr_t)lowest;
}

static void on_painted_stack(void) {
  top = (uintptr_t)__builtin_frame_address(0);
  body();
}

// Only the alternate stack is touched from here on.
static void tell(size_t bytes) { _exit(bytes > 250 * 64 ? 250 : (int)((bytes + 63) / 64)); }

static void on_signal(int number) {
  (void)number;
  tell(depth());
}

static void run_painted(void (*what)(void)) {
  memset(stack, kPaint, kStackBytes);
  body = what;
  CHECK(getcontext(&inside) == 0);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = kStackBytes;
  inside.uc_link = &outside;
  makecontext(&inside, on_painted_stack, 0);
  CHECK(swapcontext(&outside, &inside) == 0);
}

// Bytes of stack, rounded up to 64, that `what` takes in a process of its own behind `before`.
static size_t measure(void (*before)(void), void (*what)(void), int is_report) {
  // Not by fork(): its handlers would start the allocator in this process.
  const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
  CHECK(child >= 0);
  if (child == 0) {
    const stack_t other = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&other, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    if (is_report) {
      sigaction(SIGABRT, &action, NULL);
      dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    }
    if (before != NULL) before();
    run_painted(what);
    tell(is_report ? 252 * 64 : depth());
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 250);
  return (size_t)WEXITSTATUS(status) * 64;
}

static void* volatile held[4096];
static void* kept;

static void nothing(void) {}
static char* limited[] = {"BRIMFUL_CONF=limit:auto", NULL};
static void limit_itself(void) { environ = limited; }  // setenv() allocates
static void small(void) { held[0] = malloc(100); }
static void every_class(void) {
  for (size_t i = 0; i < 2000; ++i) held[i] = malloc(i * 16 + 1);
}
static void large(void) { held[0] = malloc(200000); }
static void huge(void) { held[0] = malloc((size_t)5 << 30); }
static void zeroed(void) { held[0] = calloc(1, 3000000); }
static void aligned(void) { held[0] = memalign(1 << 21, 100000); }
static void grown(void) {
  void* block = NULL;
  for (size_t bytes = 10; bytes < (size_t)64 << 20; bytes *= 3) block = realloc(block, bytes);
  held[0] = block;
}
static void freed(void) {
  for (size_t i = 0; i < 2000; ++i) free(held[i]);
}
static void trimmed(void) { malloc_trim(0); }
static void churned(void) {
  for (size_t i = 0; i < 60000; ++i) {
    void* volatile* place = &held[i * 7919 % 4096];
    free(*place);
    *place = malloc(i * 31 % 40000);
  }
}
static void asked(void) { kept = (void*)(malloc_usable_size(held[1]) + mallinfo2().uordblks); }
static void freed_twice(void) {
  free(held[1]);
  free(held[1]);
}
static void freed_inside(void) { free((char*)held[100] + 16); }
static void freed_stack(void) {
  char* volatile inside_frame = (char*)&inside_frame;
  free(inside_frame);
}

static const struct {
  const char* name;
  void (*before)(void);
  void (*what)(void);
  int is_report;
} kRows[] = {
    {"nothing", NULL, nothing, 0},
    {"the first malloc", NULL, small, 0},
    {"the first malloc, limit:auto", limit_itself, small, 0},
    {"the first large malloc", NULL, large, 0},
    {"malloc of every size", small, every_class, 0},
    {"malloc, large", small, large, 0},
    {"malloc, 5 GiB", small, huge, 0},
    {"calloc", small, zeroed, 0},
    {"memalign", small, aligned, 0},
    {"realloc", small, grown, 0},
    {"free", every_class, freed, 0},
    {"malloc and free", small, churned, 0},
    {"malloc_trim", churned, trimmed, 0},
    {"malloc_usable_size, mallinfo2", every_class, asked, 0},
    {"report: double free", every_class, freed_twice, 1},
    {"report: inside a block", every_class, freed_inside, 1},
    {"report: on the stack", every_class, freed_stack, 1},
};
enum { kRowCount = sizeof kRows / sizeof *kRows };

static void no_call_reaches_deeper_than_is_promised(void) {
  size_t bytes[kRowCount];
  for (size_t i = 0; i < kRowCount; ++i) bytes[i] = measure(kRows[i].before, kRows[i].what, kRows[i].is_report);
  for (size_t i = 0; i < kRowCount; ++i) {
    printf("     %-32s %6zu bytes\n", kRows[i].name, bytes[i]);
    CHECK(bytes[i] <= (kRows[i].is_report ? kMostOfReports : kMostBytes));
  }
}

static void everything(void) {
  small();
  every_class();
  asked();
  freed();
  memset((void*)held, 0, sizeof held);
  large();
  free(held[0]);
  zeroed();
  free(held[0]);
  aligned();
  free(held[0]);
  grown();
  free(held[0]);
  memset((void*)held, 0, sizeof held);
  churned();
  trimmed();
}

static void* on_thread(void* done) {
  everything();
  *(int*)done = 1;
  return NULL;
}

static void a_thread_of_the_least_stack_can_make_every_call(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  int done = 0;
  CHECK_EQ(pthread_attr_init(&attributes), 0);
  CHECK_EQ(pthread_attr_setstacksize(&attributes, 16384), 0);
  CHECK_EQ(pthread_create(&thread, &attributes, on_thread, &done), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(done, 1);
}

static volatile sig_atomic_t handled;
static void on_small_stack(int number) {
  (void)number;
  everything();
  handled = 1;
}

// Behind the stack lies a page without access.
static void a_handler_on_the_least_alternate_stack_can_make_every_call(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t bytes = ((size_t)sysconf(_SC_MINSIGSTKSZ) + kMostBytes + page - 1) / page * page;
  char* memory = mmap(NULL, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  CHECK_EQ(mprotect(memory + page, bytes, PROT_READ | PROT_WRITE), 0);
  const stack_t small_stack = {.ss_sp = memory + page, .ss_size = bytes};
  CHECK_EQ(sigaltstack(&small_stack, NULL), 0);
  const struct sigaction action = {.sa_handler = on_small_stack, .sa_flags = SA_ONSTACK};
  CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
  CHECK_EQ(raise(SIGUSR1), 0);
  CHECK_EQ(handled, 1);
}

int main(int count, char** arguments) {
  (void)count;
  // What the dynamic linker takes to find a function when it is first called is not ours.
  if (getenv("LD_BIND_NOW") == NULL) {
    setenv("LD_BIND_NOW", "1", 1);
    execv("/proc/self/exe", arguments);
  }
  stack = mmap(NULL, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(stack != MAP_FAILED);
  begin(60);
  RUN(no_call_reaches_deeper_than_is_promised);
  RUN(a_thread_of_the_least_stack_can_make_every_call);
  RUN(a_handler_on_the_least_alternate_stack_can_make_every_call);
  return finish();
}
