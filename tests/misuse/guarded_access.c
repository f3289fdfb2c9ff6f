// SPDX-License-Identifier: MIT
//
// An access that a page without access stops. Arguments: what (overflow, underflow, freed, freed_by_thread, in_child,
// in_thread), how (read, write), size, distance: behind the end, before the start, or into the object.
#include <sys/wait.h>

#include "guarded.h"

static void* free_it(void* object) {
  free(object);
  return NULL;
}

static void access_it(const char* how, char* at) {
  char* wrong = about_to_misuse(at);
  if (strcmp(how, "write") == 0) {
    write_at(wrong);
  } else {
    read_at(wrong);
  }
}

static void* write_in_thread(void* at) {
  access_it("write", at);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const char* what = argv[1];
  const size_t size = argument(argc, argv, 3, 64);
  const size_t distance = argument(argc, argv, 4, 0);
  if (strcmp(what, "underflow") == 0) {
    access_it(argv[2], guarded_at_start(size) - distance);
    return survived();
  }
  char* object = guarded_at_end(size);
  if (strcmp(what, "overflow") == 0) {
    access_it(argv[2], object + size + distance);
    return survived();
  }
  if (strcmp(what, "in_thread") == 0) {
    run_in_thread(write_in_thread, object + size + distance);
    return survived();
  }
  if (strcmp(what, "in_child") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      access_it(argv[2], object + size + distance);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) return survived();
    raise(WTERMSIG(status));
  }
  if (strcmp(what, "freed") == 0) free(object);
  if (strcmp(what, "freed_by_thread") == 0) run_in_thread(free_it, object);
  access_it(argv[2], object + distance);
  return survived();
}
