// SPDX-License-Identifier: MIT
//
// New memory is read before it was written to. Harm is what an earlier object left there.
#include <stdlib.h>

#include "suite.h"

static struct Herd herd;

static void leave_secrets(const struct Case* c, size_t size) {
  grow(&herd, size, some(size));
  for (int i = 0; i < herd.count; ++i) fill(herd.objects[i], size, kSecret);
  for (int i = 0; i < herd.count; ++i) by_second(c, free_it, herd.objects[i]);
}

static _Noreturn void end(bool is_read) {
  passed();
  if (is_read) silent("old contents were read");
  harmless("no old contents were there");
}

struct Look {
  size_t size;
  bool is_read;
};

static void look(void* passed) {
  struct Look* found = passed;
  for (int i = 0; i < many(found->size); ++i) found->is_read |= holds(allocate(found->size), found->size, kSecret);
}

static void by_malloc(const struct Case* c) {
  struct Look found = {c->size, false};
  leave_secrets(c, c->size);
  at(NULL);
  by_second(c, look, &found);
  look(&found);
  end(found.is_read);
}

// What realloc added.
static void by_realloc(const struct Case* c) {
  bool is_read = false;
  leave_secrets(c, c->size * 2);
  at(NULL);
  for (int i = 0; i < some(c->size); ++i) {
    char* object = allocate(c->size);
    fill(object, c->size, kOther);
    object = hide(realloc(hide(object), c->size * 2));
    if (object == NULL) broken("out of memory");
    is_read |= holds(object + c->size, c->size, kSecret);
  }
  end(is_read);
}

static void by_aligned_alloc(const struct Case* c) {
  bool is_read = false;
  leave_secrets(c, c->size);
  at(NULL);
  for (int i = 0; i < some(c->size); ++i) {
    char* object = hide(aligned_alloc(64, c->size < 64 ? 64 : c->size));
    if (object == NULL) broken("out of memory");
    is_read |= holds(object, c->size, kSecret);
  }
  end(is_read);
}

#define KIND "uninitialised-read"
const struct Fault kContents[] = {
    {"malloc", KIND, by_malloc, 0, kAllSizes, kBoth},
    {"realloc", KIND, by_realloc, 0, kAllSizes, kOneThread},
    {"aligned_alloc", KIND, by_aligned_alloc, 0, kAllSizes, kOneThread},
    {0},
};
