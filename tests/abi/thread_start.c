// SPDX-License-Identifier: MIT
//
// The background thread starts at the end of a free, and the C library allocates for it. None of that lies in the calling
// thread's current heap, which may be destroyed while the thread runs.
#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#pragma weak brimful_heap_create
#pragma weak brimful_heap_set_current
#pragma weak brimful_heap_get_stats
#pragma weak brimful_heap_destroy
#pragma weak brimful_set
#include "brimful/brimful.h"
#include "brimful/heap.h"

enum { kObjects = 2000, kBytes = 50000 };
static void* object[kObjects];

static void* stay(void* unused) {
  pause();
  return unused;
}

static bool has_background_thread(void) {
  bool found = false;
  DIR* folder = opendir("/proc/self/task");
  struct dirent* entry;
  while (folder != NULL && (entry = readdir(folder)) != NULL) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE* file = fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(name, sizeof name, file) != NULL && strcmp(name, "brimful-purge\n") == 0) found = true;
    fclose(file);
  }
  if (folder != NULL) closedir(folder);
  return found;
}

static void a_current_heap_holds_nothing_of_the_background_thread(void) {
  if (&brimful_heap_create == NULL) return;  // another allocator's turn
  bool on = true;
  CHECK_EQ(brimful_set("background_thread", &on, sizeof on), 0);
  for (int i = 0; i < kObjects; i++) object[i] = malloc(kBytes);
  brimful_heap* heap = brimful_heap_create(0);
  bool is_there = has_background_thread();
  CHECK(!is_there);
  pthread_t other;
  pthread_create(&other, NULL, stay, NULL);
  for (int i = 0; i < kObjects && !is_there; i++) {
    CHECK_EQ(brimful_heap_set_current(heap), 0);
    free(object[i]);
    CHECK_EQ(brimful_heap_set_current(NULL), 0);
    if (i % 10 == 0) {
      usleep(20000);
      is_there = has_background_thread();
    }
  }
  CHECK(is_there);
  struct brimful_heap_stats stats = {.size = sizeof stats};
  CHECK_EQ(brimful_heap_get_stats(heap, &stats), 0);
  CHECK_EQ(stats.live_blocks, 0);
  CHECK_EQ(brimful_heap_destroy(heap), 0);
}

int main(void) {
  begin(60);
  RUN(a_current_heap_holds_nothing_of_the_background_thread);
  return finish();
}
