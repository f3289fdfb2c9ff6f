// SPDX-License-Identifier: MIT
//
// The race of double_free_race.c as closely as two threads can run it, in many forked children for each size: each child
// has to be stopped by SIGABRT. Exit code 0 when all were; else the misses are counted. Arguments: the sizes.
//
// What it found: a large block was looked up without the heap lock and freed under it, so both threads could find the
// block and free it twice.
#include "misuse.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { kChildren = 400 };

static atomic_int ready;
static void* shared_object;

static void* free_at_once(void* unused) {
  // What the heap builds for a new thread must not take the place of the block just freed: then it is a live block.
  free(allocate(64));
  atomic_fetch_add(&ready, 1);
  while (atomic_load(&ready) < 2) sched_yield();
  free(shared_object);
  return unused;
}

static void race(size_t size) {
  int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDERR_FILENO);
  shared_object = allocate(size);
  pthread_t thread;
  if (pthread_create(&thread, NULL, free_at_once, NULL) != 0) _exit(4);
  free_at_once(NULL);
  pthread_join(thread, NULL);
  _exit(0);
}

int main(int argc, char** argv) {
  int missed = 0;
  for (int i = 1; i < argc; ++i) {
    const size_t size = argument(argc, argv, i, 0);
    for (int child = 0; child < kChildren; ++child) {
      pid_t pid = fork();
      if (pid == 0) race(size);
      int status = 0;
      waitpid(pid, &status, 0);
      if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) continue;
      char line[128];
      snprintf(line, sizeof line, "%zu bytes: status %#x\n", size, (unsigned)status);
      if (missed++ < 5) print_line(line);
    }
  }
  return missed == 0 ? 0 : 1;
}
