/* SPDX-License-Identifier: MIT
 *
 * Threads lose what other threads allocated, and end.
 */
#include <pthread.h>

#include "plant.h"

static void* volatile handed[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* make(void* unused) {
  for (unsigned n = 0; n < 64; ++n) {
    pthread_mutex_lock(&lock);
    handed[n] = malloc(n * 10 + 1);
    note(handed[n], n % 2 == 0 ? KEPT : LOST);
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

static void* lose(void* unused) {
  for (unsigned n = 1; n < 64; n += 2) handed[n] = NULL;
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  pthread_create(&thread, NULL, make, NULL);
  pthread_join(thread, NULL);
  pthread_create(&thread, NULL, lose, NULL);
  pthread_join(thread, NULL);
  scrub();
  return finish(argc, argv);
}
