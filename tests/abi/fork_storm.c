// SPDX-License-Identifier: MIT
//
// fork while eight threads allocate. The child is a copy of one thread in a heap that the seven others may
// have left in the middle of anything. It must be able to allocate, to free what the parent's threads
// allocated, to start threads that allocate, to fork again, and to end. A child that hangs is killed by its
// own alarm and counts as a failure.
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>

enum { kThreads = 8, kForks = 200, kShared = 4096 };

static volatile int is_over;
static void* volatile shared_slot[kShared];  // objects that any thread may take and free
static int forks_done;

static void churn(uint64_t* random, int operations) {
  void* held[64] = {0};
  for (int i = 0; i < operations; ++i) {
    uint64_t r = next_random(random);
    int slot = (int)(r % 64);
    free(held[slot]);
    size_t size = (r >> 8) % 100 == 0 ? (r >> 20) % 300000 : (r >> 20) % 1500;
    held[slot] = malloc(size);
    if (held[slot] == NULL) {
      CHECK_FAIL("malloc(%zu) is NULL", size);
      continue;
    }
    if (size > 0) memset(held[slot], (int)r, size < 64 ? size : 64);
    if ((r >> 50) % 4 == 0)
      held[slot] = __atomic_exchange_n(&shared_slot[(r >> 40) % kShared], held[slot], __ATOMIC_ACQ_REL);
  }
  for (int i = 0; i < 64; ++i) free(held[i]);
}

static void* thread_of_child(void* argument) {
  uint64_t random = (uint64_t)(uintptr_t)argument;
  churn(&random, 300);
  return malloc(100);
}

static void child_uses_the_heap_in_every_way(int number) {
  set_deadline(20);
  uint64_t random = (uint64_t)number;
  churn(&random, 500);
  // Objects of threads that don't exist here.
  for (int i = 0; i < kShared; ++i) {
    free(shared_slot[i]);
    shared_slot[i] = NULL;
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, thread_of_child, (void*)(uintptr_t)number) != 0) _exit(3);
  void* result = NULL;
  if (pthread_join(thread, &result) != 0) _exit(4);
  free(result);
  if (number % 10 == 0) {
    pid_t grandchild = fork();
    if (grandchild == 0) {
      churn(&random, 200);
      _exit(0);
    }
    int status = 0;
    if (waitpid(grandchild, &status, 0) != grandchild || status != 0) _exit(5);
  }
  if (number % 3 == 0) exit(check_failures == 0 ? 0 : 6);
  _exit(check_failures == 0 ? 0 : 6);
}

static void wait_for(pid_t child) {
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child status %#x", status);
}

static void* busy_thread(void* argument) {
  uint64_t random = (uint64_t)(uintptr_t)argument * 77;
  while (!is_over) churn(&random, 200);
  return NULL;
}

static void* forking_thread(void* argument) {
  uint64_t random = (uint64_t)(uintptr_t)argument;
  while (!is_over) {
    int number = __atomic_add_fetch(&forks_done, 1, __ATOMIC_RELAXED);
    if (number > kForks) break;
    churn(&random, 50);
    pid_t child = fork();
    if (child == 0) child_uses_the_heap_in_every_way(number);
    if (child < 0) {
      CHECK_FAIL("fork: errno %d", errno);
      break;
    }
    wait_for(child);
  }
  return NULL;
}

static void children_of_a_busy_process_can_use_the_heap(void) {
  pthread_t thread[kThreads];
  is_over = 0;
  // Two of the eight fork, so that forks also collide with one another.
  for (int i = 0; i < kThreads; ++i)
    CHECK_EQ(pthread_create(&thread[i], NULL, i < 2 ? forking_thread : busy_thread, (void*)(uintptr_t)(i + 1)), 0);
  for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
  is_over = 1;
  for (int i = 2; i < kThreads; ++i) pthread_join(thread[i], NULL);
  CHECK_GE(forks_done, kForks);
  for (int i = 0; i < kShared; ++i) {
    free(shared_slot[i]);
    shared_slot[i] = NULL;
  }
}

static void the_child_of_a_quiet_process_sees_its_parents_contents(void) {
  enum { kCount = 2000 };
  static char* object[kCount];
  for (int i = 0; i < kCount; ++i) {
    object[i] = malloc((size_t)i * 5 + 1);
    fill_pattern(object[i], (size_t)i * 5 + 1, (uint64_t)i);
  }
  pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < kCount; ++i) {
      size_t size = (size_t)i * 5 + 1;
      CHECK_EQ(find_damage(object[i], size, size, (uint64_t)i), size);
      object[i] = realloc(object[i], size * 2);
      CHECK_EQ(find_damage(object[i], size, size, (uint64_t)i), size);
    }
    for (int i = 0; i < kCount; ++i) free(object[i]);
    _exit(check_failures == 0 ? 0 : 1);
  }
  wait_for(child);
  for (int i = 0; i < kCount; ++i) {
    size_t size = (size_t)i * 5 + 1;
    CHECK_EQ(find_damage(object[i], size, size, (uint64_t)i), size);
    free(object[i]);
  }
}

static void a_chain_of_forks_keeps_working(void) {
  pid_t child = fork();
  if (child == 0) {
    uint64_t random = 9;
    for (int depth = 0; depth < 12; ++depth) {
      churn(&random, 100);
      pid_t next = fork();
      if (next > 0) {
        int status = 0;
        if (waitpid(next, &status, 0) != next) _exit(1);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
      }
      if (next < 0) _exit(3);
    }
    _exit(check_failures == 0 ? 0 : 4);
  }
  wait_for(child);
}

static int prepare_calls, parent_calls;
static void allocate_in_prepare(void) {
  ++prepare_calls;
  free(malloc(2000));
  free(malloc(200000));
}
static void allocate_in_parent_or_child(void) {
  ++parent_calls;
  free(malloc(2000));
  free(malloc(200000));
}

static void atfork_handlers_of_the_program_may_allocate(void) {
  // glibc takes its own locks after the last prepare handler for this very reason.
  CHECK_EQ(pthread_atfork(allocate_in_prepare, allocate_in_parent_or_child, allocate_in_parent_or_child), 0);
  for (int i = 0; i < 5; ++i) {
    pid_t child = fork();
    if (child == 0) _exit(parent_calls == i + 1 ? 0 : 1);
    wait_for(child);
  }
  CHECK_EQ(prepare_calls, 5);
  CHECK_EQ(parent_calls, 5);
}

int main(void) {
  begin(60);
  RUN(the_child_of_a_quiet_process_sees_its_parents_contents);
  RUN(a_chain_of_forks_keeps_working);
  RUN(children_of_a_busy_process_can_use_the_heap);
  RUN(atfork_handlers_of_the_program_may_allocate);
  return finish();
}
