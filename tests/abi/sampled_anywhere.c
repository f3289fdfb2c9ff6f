// SPDX-License-Identifier: MIT
//
// no-static: dlopen needs a dynamic program
//
// Allocations and frees where a sampler that unwinds by itself would deadlock or fault: under the loader's lock, on stacks
// whose end nobody names, in handlers on small stacks, around fork. The build runs this with prof:1, so that each of them
// is written down with its stack; without, it is one more test of malloc. And with prof:4096, so that some come from
// a path that was not the sampler's. The handlers leave errno changed, as real ones do.
#include "check.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

enum { kRounds = 200 };

static volatile int is_over;

static void* open_and_close(void* nothing) {
  (void)nothing;
  while (!is_over) {
    void* library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) dlclose(library);
  }
  return NULL;
}

static int allocate_in_callback(struct dl_phdr_info* info, size_t bytes, void* count) {
  (void)info;
  (void)bytes;
  for (size_t size = 1; size < 200000; size *= 3) free(malloc(size));
  ++*(int*)count;
  return 0;
}

static void a_callback_under_the_loaders_lock_allocates(void) {
  pthread_t thread[2];
  is_over = 0;
  for (int i = 0; i < 2; ++i) pthread_create(&thread[i], NULL, open_and_close, NULL);
  int count = 0;
  for (int i = 0; i < kRounds; ++i) dl_iterate_phdr(allocate_in_callback, &count);
  is_over = 1;
  for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
  CHECK_GE(count, kRounds);
}

static volatile sig_atomic_t handled;

static void allocating_handler(int number) {
  (void)number;
  void* volatile small = malloc(40);
  void* volatile large = malloc(50000);
  free(small);
  free(large);
  errno = ENOMEM;
  ++handled;
}

static void handlers_on_a_small_stack_allocate(void) {
  static char stack[16384];
  const stack_t area = {.ss_sp = stack, .ss_size = sizeof stack};
  CHECK_EQ(sigaltstack(&area, NULL), 0);
  const struct sigaction action = {.sa_handler = allocating_handler, .sa_flags = SA_ONSTACK | SA_RESTART};
  CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
  struct itimerval timer = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &timer, NULL);
  void* held[50] = {0};
  for (int i = 0; handled < kRounds; ++i) {
    free(held[i % 50]);
    held[i % 50] = malloc((size_t)(i % 700) * 50);
  }
  timer = (struct itimerval){{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &timer, NULL);
  for (int i = 0; i < 50; ++i) free(held[i]);
  CHECK_EQ(sigaction(SIGALRM, &(struct sigaction){.sa_handler = SIG_DFL}, NULL), 0);
  CHECK_EQ(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL), 0);
}

static ucontext_t here, there;

static void allocate_on_a_coroutine(void) {
  for (int i = 0; i < kRounds; ++i) free(malloc((size_t)i * 300));
}

// Its stack ends where nothing is mapped; whoever reads behind it faults.
static void a_coroutine_with_nothing_behind_its_stack_allocates(void) {
  const size_t bytes = 64 << 10, page = 4096;
  char* area = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(area != MAP_FAILED);
  if (area == MAP_FAILED) return;
  CHECK_EQ(mprotect(area + page, bytes, PROT_READ | PROT_WRITE), 0);
  CHECK_EQ(munmap(area + page + bytes, page), 0);
  CHECK_EQ(getcontext(&there), 0);
  there.uc_stack.ss_sp = area + page;
  there.uc_stack.ss_size = bytes;
  there.uc_link = &here;
  makecontext(&there, allocate_on_a_coroutine, 0);
  CHECK_EQ(swapcontext(&here, &there), 0);
  munmap(area, bytes + page);
}

static void* churn(void* nothing) {
  (void)nothing;
  void* held[20] = {0};
  for (int i = 0; !is_over; ++i) {
    free(held[i % 20]);
    held[i % 20] = malloc((size_t)(i % 90) * 700);
  }
  for (int i = 0; i < 20; ++i) free(held[i]);
  return NULL;
}

static void children_of_a_busy_process_allocate(void) {
  pthread_t thread[2];
  is_over = 0;
  for (int i = 0; i < 2; ++i) pthread_create(&thread[i], NULL, churn, NULL);
  void* before = malloc(100);
  for (int i = 0; i < kRounds / 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      set_deadline(20);
      free(before);
      for (int n = 0; n < 100; ++n) free(malloc((size_t)n * 600));
      _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
  }
  is_over = 1;
  for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
  free(before);
}

// Another thread frees what this one allocates, and the other way round.
static void* volatile handed[100];
static void* free_what_is_handed(void* nothing) {
  (void)nothing;
  while (!is_over) {
    for (int i = 0; i < 100; ++i) {
      free(__atomic_exchange_n(&handed[i], NULL, __ATOMIC_ACQ_REL));
    }
  }
  return NULL;
}
static void threads_free_each_others_samples(void) {
  pthread_t thread;
  is_over = 0;
  pthread_create(&thread, NULL, free_what_is_handed, NULL);
  for (int i = 0; i < 50 * kRounds; ++i) {
    free(__atomic_exchange_n(&handed[i % 100], malloc((size_t)(i % 900) * 50), __ATOMIC_ACQ_REL));
  }
  is_over = 1;
  pthread_join(thread, NULL);
  for (int i = 0; i < 100; ++i) free(__atomic_exchange_n(&handed[i], NULL, __ATOMIC_ACQ_REL));
}

static void realloc_keeps_contents(void) {
  for (size_t bytes = 1; bytes < 3000000; bytes = bytes * 5 / 3 + 1) {
    unsigned char* block = malloc(bytes);
    CHECK(block != NULL);
    if (block == NULL) return;
    memset(block, 77, bytes);
    for (size_t next = bytes; next > bytes / 4; next -= next / 3 + 1) {
      unsigned char* moved = realloc(block, next);
      CHECK(moved != NULL);
      if (moved == NULL) break;
      block = moved;
      CHECK(block[0] == 77 && block[next - 1] == 77);
    }
    free(block);
  }
}

int main(void) {
  require_brimful();
  set_deadline(60);
  RUN(a_callback_under_the_loaders_lock_allocates);
  RUN(handlers_on_a_small_stack_allocate);
  RUN(a_coroutine_with_nothing_behind_its_stack_allocates);
  RUN(children_of_a_busy_process_allocate);
  RUN(threads_free_each_others_samples);
  RUN(realloc_keeps_contents);
  return finish();
}
