// SPDX-License-Identifier: MIT
//
// Two threads free one object at the same moment: one of the two has to be told. Argument: size.
#include "misuse.h"

static pthread_barrier_t barrier;
static void* shared_object;

static void* free_at_once(void* unused) {
  pthread_barrier_wait(&barrier);
  free(shared_object);
  return unused;
}

int main(int argc, char** argv) {
  shared_object = allocate(argument(argc, argv, 1, 64));
  pthread_barrier_init(&barrier, NULL, 3);
  pthread_t thread[2];
  for (int i = 0; i < 2; ++i)
    if (pthread_create(&thread[i], NULL, free_at_once, NULL) != 0) return 4;
  about_to_misuse(shared_object);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
  return survived();
}
