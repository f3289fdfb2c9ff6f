// SPDX-License-Identifier: MIT
//
// vfork with exec, posix_spawn, system and popen from a process whose threads allocate. The child of vfork
// borrows its parent's memory, so nothing in the library may run at that border that would leave a trace in
// the parent. The program executes itself: with an argument it only allocates a little and exits with that
// number.
#include "check.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

extern char** environ;
static volatile int is_over;

static void* busy_thread(void* argument) {
  uint64_t random = (uint64_t)(uintptr_t)argument;
  while (!is_over) {
    void* object = malloc(next_random(&random) % 3000);
    free(malloc(next_random(&random) % 100000));
    free(object);
  }
  return NULL;
}

static int exit_code_of(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

static char self_path[] = "/proc/self/exe";
static char argument_seven[] = "7";
static char* const child_arguments[] = {self_path, argument_seven, NULL};

static void vfork_and_exec_work(void) {
  for (int i = 0; i < 60; ++i) {
    char* held = malloc(500);
    fill_pattern(held, 500, (uint64_t)i);
    pid_t child = vfork();
    if (child == 0) {
      execve(self_path, child_arguments, environ);
      _exit(126);
    }
    CHECK_EQ(exit_code_of(child), 7);
    CHECK_EQ(find_damage(held, 500, 500, (uint64_t)i), 500);
    free(held);
  }
}

static void vfork_and_exit_work(void) {
  for (int i = 0; i < 60; ++i) {
    pid_t child = vfork();
    if (child == 0) _exit(9);
    CHECK_EQ(exit_code_of(child), 9);
    free(malloc((size_t)i * 100));
  }
}

static void posix_spawn_works(void) {
  for (int i = 0; i < 60; ++i) {
    pid_t child = 0;
    CHECK_EQ(posix_spawn(&child, self_path, NULL, NULL, child_arguments, environ), 0);
    CHECK_EQ(exit_code_of(child), 7);
  }
}

static void system_and_popen_work(void) {
  CHECK_EQ(system("exit 5"), 5 << 8);
  FILE* pipe = popen("echo some output", "r");
  CHECK(pipe != NULL);
  char line[64] = "";
  CHECK(fgets(line, sizeof line, pipe) != NULL);
  CHECK(strcmp(line, "some output\n") == 0);
  CHECK_EQ(pclose(pipe), 0);
}

int main(int argc, char** argv) {
  if (argc > 1) {
    begin(20);
    for (int i = 0; i < 1000; ++i) free(malloc((size_t)i));
    return atoi(argv[1]);
  }
  begin(60);
  pthread_t thread[2];
  for (int i = 0; i < 2; ++i) CHECK_EQ(pthread_create(&thread[i], NULL, busy_thread, (void*)(uintptr_t)(i + 1)), 0);
  RUN(vfork_and_exec_work);
  RUN(vfork_and_exit_work);
  RUN(posix_spawn_works);
  RUN(system_and_popen_work);
  is_over = 1;
  for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
  return finish();
}
