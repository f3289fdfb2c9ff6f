// SPDX-License-Identifier: MIT
//
// Sizes that are not those of the object, and memory that serves an object of another type. Harm is memory that two objects share, or
// a block that is smaller than what was asked for.
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <stdlib.h>

#include "suite.h"

static struct Herd herd;

typedef void SizedDelete(void*, size_t);

// `operator delete(void*, size_t)`: the allocator's own, or that of the C++ library, which ignores the size.
static SizedDelete* sized_delete(void) {
  const char* const name = "_ZdlPvm";
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == NULL && dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL) != NULL) found = dlsym(RTLD_DEFAULT, name);
  if (found == NULL) broken("no sized operator delete");
  SizedDelete* function;
  *(void**)&function = found;
  return function;
}

struct Deletion {
  SizedDelete* function;
  char* object;
  size_t claimed;
};

static void delete_it(void* passed) {
  const struct Deletion* deletion = passed;
  deletion->function(hide(deletion->object), deletion->claimed);
}

// Several, because one that lands in the wrong cache may not be the next to be given out.
static void delete_as(const struct Case* c, size_t claimed) {
  SizedDelete* function = sized_delete();
  grow(&herd, c->size, some(c->size));
  int half = herd.count / 2;
  for (int i = 0; i < half; ++i) {
    struct Deletion deletion = {function, herd.objects[i], claimed};
    if (i == 0) at(herd.objects[0]);
    by_second(c, delete_it, &deletion);
  }
  passed();
  for (int i = half; i < herd.count; ++i) belongs(herd.objects[i], c->size);
  look_for_overlaps(c, claimed);
  look_for_overlaps(c, c->size);
  harmless("each object has memory of its own");
}

static void deleted_as_larger(const struct Case* c) { delete_as(c, c->size * 4); }
static void deleted_as_smaller(const struct Case* c) { delete_as(c, c->size == 16 ? 256 : c->size / 4); }

// Objects of one size are freed, those of another take their memory, and an old pointer is used.
static void other_size_there(const struct Case* c) {
  static struct Herd later;
  const size_t other = c->size == 262144 ? c->size / 2 : c->size * 3;
  grow(&herd, c->size, many(c->size));
  for (int i = 0; i < herd.count; ++i) by_second(c, free_it, herd.objects[i]);
  grow_by_both(c, &later, other, many(other));
  char* object = herd.objects[herd.count / 2];
  for (int i = 0; i < later.count; ++i)
    for (int j = 0; j < herd.count; ++j)
      if (herd.objects[j] + c->size > later.objects[i] && herd.objects[j] < later.objects[i] + other)
        object = herd.objects[j];
  at(object);
  fill(object, c->size, kOther);
  passed();
  bool is_changed = changed(&later, -1) >= 0;
  release(&later, -1);
  if (is_changed) silent("an object of another size was changed");
  harmless("no object of another size was changed");
}

// The product of the two numbers is less than each object needs. The result of a right call is NULL.
static void product_overflows(const struct Case* c) {
  const size_t count = SIZE_MAX / c->size + 2;
  at(NULL);
  char* block = c->param == 0 ? hide(calloc(count, c->size)) : hide(reallocarray(NULL, count, c->size));
  passed();
  if (block == NULL) harmless("refused");
  silent("a block that is too small");
}

#define KIND "type-confusion-by-size"
const struct Fault kWrongSizes[] = {
    {"deleted-as-larger", KIND, deleted_as_larger, 0, kAllSizes, kBoth},
    {"deleted-as-smaller", KIND, deleted_as_smaller, 0, kAllSizes, kBoth},
    {"other-size-there", KIND, other_size_there, 0, kAllSizes, kBoth},
    {"calloc", "size-overflow", product_overflows, 0, kAllSizes, kOneThread},
    {"reallocarray", "size-overflow", product_overflows, 1, kAllSizes, kOneThread},
    {0},
};
