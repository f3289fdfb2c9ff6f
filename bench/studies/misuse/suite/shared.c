// SPDX-License-Identifier: MIT
//
// The functions of suite.h.
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"

// --- what is said -------------------------------------------------------------------------------

static void say(const char* word, const char* more) {
  char line[256] = {0};
  strncat(line, word, 60);
  strncat(line, more, 160);
  strcat(line, "\n");
  if (write(STDOUT_FILENO, line, strlen(line)) < 0) _exit(3);
}

void at(const volatile void* pointer) {
  char digits[20] = "0x";
  int length = 2;
  uintptr_t value = (uintptr_t)pointer;
  for (int shift = 60; shift >= 0; shift -= 4) {
    unsigned digit = (unsigned)(value >> shift) & 15;
    if (digit != 0 || length > 2 || shift == 0) digits[length++] = "0123456789abcdef"[digit];
  }
  digits[length] = '\0';
  say("fault ", digits);
}

static bool is_past_the_fault;

void passed(void) {
  say("passed", "");
  is_past_the_fault = true;
}

void silent(const char* what) {
  say("silent ", what);
  _exit(0);
}

void harmless(const char* what) {
  say("harmless ", what);
  _exit(0);
}

void broken(const char* what) {
  say("broken ", what);
  _exit(0);
}

// --- memory -------------------------------------------------------------------------------------

char* allocate(size_t size) {
  char* object = hide(malloc(size));
  if (object == NULL && is_past_the_fault) silent("malloc has nothing to give any more");
  if (object == NULL) broken("out of memory");
  return object;
}

void fill(void* object, size_t size, uint64_t value) {
  volatile uint64_t* words = hide(object);
  for (size_t i = 0; i < size / sizeof value; ++i) words[i] = value;
}

bool is_filled(const void* object, size_t size, uint64_t value) {
  const volatile uint64_t* words = hide((void*)object);
  for (size_t i = 0; i < size / sizeof value; ++i)
    if (words[i] != value) return false;
  return true;
}

bool holds(const void* object, size_t size, uint64_t value) {
  const volatile uint64_t* words = hide((void*)object);
  for (size_t i = 0; i < size / sizeof value; ++i)
    if (words[i] == value) return true;
  return false;
}

int many(size_t size) { return size <= 512 ? 2048 : size <= 4096 ? 512 : size <= 32768 ? 128 : 24; }

int some(size_t size) { return size <= 4096 ? 64 : size <= 32768 ? 16 : 6; }

uint64_t value_of(int place) { return UINT64_C(0xb10cb10c00000000) + (uint64_t)place; }

static void grow_in_steps(struct Herd* herd, int from, int step) {
  for (int i = from; i < herd->count; i += step) {
    herd->objects[i] = allocate(herd->size);
    fill(herd->objects[i], herd->size, value_of(i));
  }
}

void grow(struct Herd* herd, size_t size, int count) {
  herd->size = size;
  herd->count = count;
  grow_in_steps(herd, 0, 1);
}

static void grow_odd(void* herd) { grow_in_steps(herd, 1, 2); }

void grow_by_both(const struct Case* c, struct Herd* herd, size_t size, int count) {
  herd->size = size;
  herd->count = count;
  by_second(c, grow_odd, herd);
  grow_in_steps(herd, 0, 2);
}

int changed(const struct Herd* herd, int except) {
  for (int i = 0; i < herd->count; ++i)
    if (i != except && !is_filled(herd->objects[i], herd->size, value_of(i))) return i;
  return -1;
}

void release(struct Herd* herd, int except) {
  for (int i = 0; i < herd->count; ++i)
    if (i != except) free(hide(herd->objects[i]));
}

// --- the second thread --------------------------------------------------------------------------

static sem_t wanted, done;
static void (*task)(void*);
static void* task_argument;

static void stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void* serve(void* cpu) {
  stay_on(*(const int*)cpu);
  // It has memory of its own before the first fault, as a thread of a real program does.
  free(allocate(64));
  for (;;) {
    sem_post(&done);
    while (sem_wait(&wanted) != 0) {
    }
    task(task_argument);
  }
  return NULL;
}

static void wait_for_second(void) {
  while (sem_wait(&done) != 0) {
  }
}

void start_second_thread(void) {
  static int cpus[2];
  cpu_set_t allowed;
  int count = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) cpus[count++] = cpu;
  if (count == 1) cpus[1] = cpus[0];
  // Which is the first's changes from case to case, so that cases that run side by side share the processors.
  const int first = getpid() & 1;
  sem_init(&wanted, 0, 0);
  sem_init(&done, 0, 0);
  pthread_t thread;
  if (pthread_create(&thread, NULL, serve, &cpus[!first]) != 0) broken("no second thread");
  stay_on(cpus[first]);
  wait_for_second();
}

void by_second(const struct Case* c, void (*function)(void*), void* argument) {
  if (!c->two) {
    function(argument);
    return;
  }
  task = function;
  task_argument = argument;
  sem_post(&wanted);
  wait_for_second();
}

void free_it(void* object) { free(hide(object)); }

// --- proving harm -------------------------------------------------------------------------------

struct Range {
  uintptr_t start, end;
};
static struct Range ranges[2 * kMostObjects];
static int range_count;

void belongs(const volatile void* start, size_t size) {
  if (range_count == sizeof ranges / sizeof *ranges) broken("too many ranges");
  ranges[range_count++] = (struct Range){(uintptr_t)start, (uintptr_t)start + size};
}

// By start; qsort() may allocate.
static void sort_ranges(void) {
  for (int gap = range_count / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
    for (int i = gap; i < range_count; ++i) {
      struct Range moved = ranges[i];
      int j = i;
      for (; j >= gap && ranges[j - gap].start > moved.start; j -= gap) ranges[j] = ranges[j - gap];
      ranges[j] = moved;
    }
}

struct Search {
  size_t size;
  int count;
};

static void add_objects(void* passed) {
  const struct Search* search = passed;
  for (int i = 0; i < search->count; ++i) belongs(allocate(search->size), search->size);
}

static void free_all(void* herd) { release(herd, -1); }

// So many frees of the first thread's objects that the second has told the allocator of those it kept for itself.
static void deliver(const struct Case* c, size_t size) {
  static struct Herd herd;
  grow(&herd, size, size <= 32768 ? 130 : 8);
  by_second(c, free_all, &herd);
}

void look_for_overlaps(const struct Case* c, size_t size) {
  struct Search quarter = {size, many(size) / 4};
  for (int round = 0; round < 2; ++round) {
    by_second(c, add_objects, &quarter);
    add_objects(&quarter);
    if (round == 0) deliver(c, size);
  }
  sort_ranges();
  for (int i = 1; i < range_count; ++i)
    if (ranges[i].start < ranges[i - 1].end)
      silent(ranges[i].start == ranges[i - 1].start ? "one address serves two" : "two objects share memory");
}
