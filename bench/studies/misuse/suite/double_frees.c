// SPDX-License-Identifier: MIT
//
// An object is freed twice. Harm is an address that malloc then returns twice, or that of a live object.
#include <stdlib.h>

#include "suite.h"

static struct Herd herd;

static _Noreturn void end(const struct Case* c) {
  passed();
  look_for_overlaps(c, c->size);
  harmless("no address was given out twice");
}

// The first free is the second thread's, if there is one: it may wait in that thread's books.
static void at_once(const struct Case* c) {
  grow(&herd, c->size, some(c->size));
  char* object = herd.objects[2];
  by_second(c, free_it, object);
  at(object);
  free(hide(object));
  end(c);
}

static void free_faulty(void* object) {
  at(object);
  free(hide(object));
}

static void second_by_other(const struct Case* c) {
  grow(&herd, c->size, some(c->size));
  free(hide(herd.objects[2]));
  by_second(c, free_faulty, herd.objects[2]);
  end(c);
}

// A list that looks at its first element only doesn't see it.
static void another_between(const struct Case* c) {
  grow(&herd, c->size, some(c->size));
  by_second(c, free_it, herd.objects[2]);
  by_second(c, free_it, herd.objects[3]);
  free_faulty(herd.objects[2]);
  end(c);
}

// Behind more frees than a cache of a thread holds.
static void many_between(const struct Case* c) {
  grow(&herd, c->size, some(c->size));
  for (int i = 0; i < herd.count - 1; ++i) by_second(c, free_it, herd.objects[i]);
  free_faulty(herd.objects[0]);
  end(c);
}

// The address serves another object by now, if the allocator uses memory again so soon.
static void used_again(const struct Case* c) {
  static struct Herd later;
  char* object = allocate(c->size);
  by_second(c, free_it, object);
  grow_by_both(c, &later, c->size, many(c->size) / 2);
  free_faulty(object);
  passed();
  for (int i = 0; i < later.count; ++i) belongs(later.objects[i], c->size);
  look_for_overlaps(c, c->size);
  harmless("no live object was given out");
}

static void moved_by_realloc(const struct Case* c) {
  char* object = allocate(c->size);
  char* barrier = allocate(c->size);
  char* moved = hide(realloc(hide(object), c->size * 5));
  if (moved == NULL) broken("out of memory");
  at(object);
  if (moved == object) harmless("it grew in place, so there was no fault");
  by_second(c, free_it, object);
  passed();
  belongs(moved, c->size * 5);
  belongs(barrier, c->size);
  look_for_overlaps(c, c->size);
  harmless("no address was given out twice");
}

#define KIND "double-free"
const struct Fault kDoubleFrees[] = {
    {"at-once", KIND, at_once, 0, kAllSizes, kBoth},
    {"second-by-other", KIND, second_by_other, 0, kAllSizes, kTwoThreads},
    {"another-between", KIND, another_between, 0, kAllSizes, kBoth},
    {"many-between", KIND, many_between, 0, kAllSizes, kBoth},
    {"moved-by-realloc", KIND, moved_by_realloc, 0, kAllSizes, kBoth},
    {"used-again", KIND "-used-again", used_again, 0, kAllSizes, kBoth},
    {0},
};
