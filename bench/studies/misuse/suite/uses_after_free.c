// SPDX-License-Identifier: MIT
//
// An object is read or written to after it was freed. Harm is to read what belongs to another object, or to change it.
#include <stdlib.h>

#include "suite.h"

static struct Herd before, later;

// A freed object among others that live; the second thread frees it, if there is one.
static char* freed_object(const struct Case* c) {
  grow(&before, c->size, some(c->size));
  char* object = before.objects[2];
  by_second(c, free_it, object);
  return object;
}

static void read_when_used_again(const struct Case* c) {
  char* object = freed_object(c);
  grow_by_both(c, &later, c->size, many(c->size));
  for (int i = 0; i < later.count; ++i) fill(later.objects[i], c->size, kSecret);
  at(object);
  bool is_read = holds(object, c->size, kSecret);
  passed();
  if (is_read) silent("another object's contents were read");
  harmless("nobody else's contents were there");
}

static void write_when_used_again(const struct Case* c) {
  char* object = freed_object(c);
  grow_by_both(c, &later, c->size, many(c->size));
  at(object);
  fill(object, c->size, kOther);
  passed();
  bool is_changed = changed(&later, -1) >= 0 || changed(&before, 2) >= 0;
  release(&later, -1);
  release(&before, 2);
  if (is_changed) silent("a live object was changed");
  look_for_overlaps(c, c->size);
  harmless("no live object was changed");
}

static void write_after_realloc(const struct Case* c) {
  char* object = allocate(c->size);
  char* barrier = allocate(c->size);
  char* moved = hide(realloc(hide(object), c->size * 5));
  if (moved == NULL || barrier == NULL) broken("out of memory");
  at(object);
  if (moved == object) harmless("it grew in place, so there was no fault");
  grow_by_both(c, &later, c->size, many(c->size));
  fill(object, c->size, kOther);
  passed();
  bool is_changed = changed(&later, -1) >= 0;
  release(&later, -1);
  if (is_changed) silent("a live object was changed");
  look_for_overlaps(c, c->size);
  harmless("no live object was changed");
}

// Before it serves another: the allocator's own links may be there, and whoever gets it next asked for zeros.
static void write_at_once(const struct Case* c) {
  char* object = freed_object(c);
  at(object);
  fill(object, c->size, kOther);
  passed();
  look_for_overlaps(c, c->size);
  release(&before, 2);
  harmless("only free memory was changed");
}

static void ask_for_zeros(void* passed) {
  const size_t size = *(const size_t*)passed;
  for (int i = 0; i < many(size); ++i) {
    char* zeros = hide(calloc(1, size));
    if (zeros == NULL) broken("out of memory");
    if (!is_filled(zeros, size, 0)) silent("calloc gave what is not zero");
  }
}

static void write_then_calloc(const struct Case* c) {
  char* object = freed_object(c);
  at(object);
  fill(object, c->size, kOther);
  passed();
  by_second(c, ask_for_zeros, &(size_t){c->size});
  ask_for_zeros(&(size_t){c->size});
  harmless("calloc gave zeros");
}

#define READ "use-after-free-read"
#define WRITE "use-after-free-write"
const struct Fault kUsesAfterFree[] = {
    {"used-again", READ, read_when_used_again, 0, kAllSizes, kBoth},
    {"used-again", WRITE, write_when_used_again, 0, kAllSizes, kBoth},
    {"after-realloc", WRITE, write_after_realloc, 0, kAllSizes, kOneThread},
    {"at-once", WRITE, write_at_once, 0, kAllSizes, kBoth},
    {"then-calloc", WRITE, write_then_calloc, 0, kAllSizes, kBoth},
    {0},
};
