// SPDX-License-Identifier: MIT
//
// The parent of a fork frees before it, the child again after it. Argument: size.
#include "misuse.h"

#include <signal.h>
#include <sys/wait.h>

int main(int argc, char** argv) {
  char* object = allocate(argument(argc, argv, 1, 64));
  free(object);
  pid_t child = fork();
  if (child == 0) {
    free(about_to_misuse(object));
    return survived();
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) return 5;
  raise(WTERMSIG(status));
  return survived();
}
