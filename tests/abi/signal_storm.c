// SPDX-License-Identifier: MIT
//
// A storm of signals whose handlers allocate. A timer interrupts the process every 200 us, and a sender
// thread throws SIGUSR1 at every worker; main and three threads meanwhile allocate, free and reallocate small
// and large objects and check their contents. POSIX calls malloc in a handler undefined; crash reporters and
// profilers do it all the same, and an allocator whose hit path is a restartable section and whose slow paths
// never wait for the interrupted thread can bear it. glibc can't (it would wait for a lock that its own
// thread holds): there the handler allocates only when it did not interrupt the allocator, which still proves
// this program.
#include "check.h"

#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { kWorkers = 4, kSlots = 256, kLarge = 16384 };
static const double kSeconds = 3.0;

static volatile int is_over;
static __thread volatile int is_inside_allocator;
static int is_handler_free_to_allocate;  // 1 under brimful
static long handler_runs, handler_allocations, handler_refusals, operations_done;
static pthread_t worker[kWorkers];

#define INSIDE(statement)              \
  do {                                 \
    is_inside_allocator = 1;           \
    __asm__ volatile("" ::: "memory"); \
    statement;                         \
    __asm__ volatile("" ::: "memory"); \
    is_inside_allocator = 0;           \
  } while (0)

// Objects cross from one handler run to the next through this table, so handlers also free each other's
// objects.
static void* volatile handler_slot[64];

static void handler(int number) {
  int saved = errno;
  long run = __atomic_add_fetch(&handler_runs, 1, __ATOMIC_RELAXED);
  if (is_handler_free_to_allocate || !is_inside_allocator) {
    is_inside_allocator = 1;  // the other signal may interrupt this handler
    static const size_t kSizes[] = {16, 64, 100, 500, 3000, 20000, 100000, 24, 48, 300000};
    size_t size = kSizes[(size_t)run % 10];
    char* object = malloc(size);
    if (object == NULL) {
      // A handler that interrupted its own thread inside a slow path lives on a reserve: a large request may
      // be refused there, which is a documented answer, while a wait for the interrupted thread would be a
      // deadlock.
      if (size < kLarge || errno != ENOMEM) CHECK_FAIL("malloc(%zu) is NULL in a handler, errno %d", size, errno);
      __atomic_add_fetch(&handler_refusals, 1, __ATOMIC_RELAXED);
    } else {
      memset(object, number, size < 128 ? size : 128);
      char* old = __atomic_exchange_n(&handler_slot[run % 64], object, __ATOMIC_ACQ_REL);
      free(old);
      object = malloc(32);
      free(object);
      __atomic_add_fetch(&handler_allocations, 1, __ATOMIC_RELAXED);
    }
    is_inside_allocator = 0;
  }
  errno = saved;
}

static void* work(void* argument) {
  uint64_t random = (uint64_t)(uintptr_t)argument * 1237;
  unsigned char* object[kSlots] = {0};
  size_t size[kSlots] = {0};
  uint64_t seed[kSlots] = {0};
  long count = 0;
  while (!is_over) {
    uint64_t r = next_random(&random);
    int slot = (int)(r % kSlots);
    size_t next = (r >> 10) % 64 == 0 ? (r >> 30) % 400000 + 1 : (r >> 30) % 1000 + 1;
    size_t shown = size[slot] < 256 ? size[slot] : 256;
    if (object[slot] != NULL && find_damage(object[slot], shown, size[slot], seed[slot]) != shown)
      CHECK_FAIL("an object of %zu bytes at %p is damaged", size[slot], (void*)object[slot]);
    if (object[slot] != NULL && (r >> 20) % 4 == 0) {
      size_t kept = size[slot] < next ? size[slot] : next;
      if (kept > 256) kept = 256;
      INSIDE(object[slot] = realloc(object[slot], next));
      CHECK(object[slot] != NULL);
      if (object[slot] == NULL) return NULL;
      if (find_damage(object[slot], kept, size[slot], seed[slot]) != kept)
        CHECK_FAIL("realloc from %zu to %zu lost contents", size[slot], next);
    } else {
      INSIDE(free(object[slot]));
      INSIDE(object[slot] = (r >> 24) % 8 == 0 ? calloc(1, next) : malloc(next));
      CHECK(object[slot] != NULL);
      if (object[slot] == NULL) return NULL;
    }
    size[slot] = next;
    seed[slot] = r;
    fill_pattern(object[slot], next, r);
    ++count;
  }
  for (int i = 0; i < kSlots; ++i) INSIDE(free(object[i]));
  __atomic_add_fetch(&operations_done, count, __ATOMIC_RELAXED);
  is_inside_allocator = 1;  // the end of a thread enters glibc's allocator too
  return NULL;
}

static void* send_signals(void* argument) {
  (void)argument;
  uint64_t random = 31;
  while (!is_over) {
    pthread_kill(worker[next_random(&random) % kWorkers], SIGUSR1);
    struct timespec pause = {0, 60000};
    nanosleep(&pause, NULL);
  }
  return NULL;
}

static void handlers_may_allocate_wherever_they_land(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  is_handler_free_to_allocate = is_brimful();
  for (int i = 1; i < kWorkers; ++i) CHECK_EQ(pthread_create(&worker[i], NULL, work, (void*)(uintptr_t)(i + 1)), 0);
  worker[0] = pthread_self();
  pthread_t sender;
  CHECK_EQ(pthread_create(&sender, NULL, send_signals, NULL), 0);
  struct itimerval every = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &every, NULL);
  double end = seconds_now() + kSeconds;
  uintptr_t round = 0;
  // main works in short pieces so that it can look at the clock.
  uint64_t random = 1;
  while (seconds_now() < end) {
    for (int i = 0; i < 200; ++i) {
      size_t size = next_random(&random) % 2000 + 1;
      unsigned char* object;
      INSIDE(object = malloc(size));
      CHECK(object != NULL);
      fill_pattern(object, size, round);
      if (find_damage(object, size, size, round) != size) CHECK_FAIL("%zu bytes at %p", size, (void*)object);
      INSIDE(object = realloc(object, size * 3));
      if (find_damage(object, size, size, round) != size) CHECK_FAIL("%zu bytes moved to %p", size, (void*)object);
      INSIDE(free(object));
      ++round;
    }
  }
  is_over = 1;
  pthread_join(sender, NULL);
  for (int i = 1; i < kWorkers; ++i) pthread_join(worker[i], NULL);
  struct itimerval off = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &off, NULL);
  for (int i = 0; i < 64; ++i) free(handler_slot[i]);
  say("      %ld handler runs, %ld of them allocated, %ld were refused; %ld operations", handler_runs,
      handler_allocations, handler_refusals, operations_done);
  CHECK_GE(handler_runs, 1000);
  CHECK_GE(handler_allocations, 100);
  CHECK_LE(handler_refusals, handler_runs / 20);
  CHECK_GE(operations_done, 1000);
}

int main(void) {
  require_brimful();
  // SIGALRM belongs to the storm, so the deadline is kept by a parent process.
  pid_t child = fork();
  if (child == 0) {
    RUN(handlers_may_allocate_wherever_they_land);
    return finish();
  }
  int status = 0;
  for (double end = seconds_now() + 40; seconds_now() < end; sleep_ms(20)) {
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      say("FAIL  the storm ended by signal %d", WTERMSIG(status));
      return 1;
    }
  }
  say("FAIL  the storm hangs");
  kill(child, SIGKILL);
  return 1;
}
