// SPDX-License-Identifier: MIT
//
// A thread that does not own the object frees it and lives on, with its free possibly still in its own books;
// then a third thread frees the object again. Argument: size.
#include "misuse.h"

static pthread_barrier_t barrier;
static void* shared_object;

// Both threads have been there, and have used the heap, before the first free: what a thread's start allocates must not
// take the place of the block (see warm_up()).
static void meet(void) { pthread_barrier_wait(&barrier); }

static void* free_and_stay(void* unused) {
  do_nothing(NULL);
  meet();
  free(shared_object);
  meet();
  pause();
  return unused;
}

static void* free_again(void* unused) {
  do_nothing(NULL);
  meet();
  meet();
  free(about_to_misuse(shared_object));
  return unused;
}

int main(int argc, char** argv) {
  shared_object = allocate(argument(argc, argv, 1, 64));
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_t thread;
  if (pthread_create(&thread, NULL, free_and_stay, NULL) != 0) return 4;
  run_in_thread(free_again, NULL);
  return survived();
}
