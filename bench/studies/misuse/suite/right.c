// SPDX-License-Identifier: MIT
//
// The control: the same calls in the same patterns, without a fault. An allocator that stops one of these
// has not earned what it stops of the others.
#include <malloc.h>
#include <stdlib.h>

#include "suite.h"

static struct Herd herd, later;

static void used_whole(const struct Case* c) {
  grow(&herd, c->size, some(c->size));
  at(herd.objects[0]);
  for (int i = 0; i < herd.count; ++i)
    fill(herd.objects[i], malloc_usable_size(herd.objects[i]) & ~(size_t)7, value_of(i));
  passed();
  if (changed(&herd, -1) >= 0) silent("a live object was changed");
  for (int i = 0; i < herd.count; ++i) by_second(c, free_it, herd.objects[i]);
  grow_by_both(c, &later, c->size, many(c->size));
  if (changed(&later, -1) >= 0) silent("a live object was changed");
  release(&later, -1);
  look_for_overlaps(c, c->size);
  harmless("right");
}

static void grown_and_cut(const struct Case* c) {
  grow(&herd, c->size, some(c->size));
  at(herd.objects[0]);
  for (int i = 0; i < herd.count; ++i) {
    herd.objects[i] = hide(realloc(herd.objects[i], c->size * 3));
    herd.objects[i] = hide(realloc(herd.objects[i], c->size));
  }
  passed();
  if (changed(&herd, -1) >= 0) silent("a live object was changed");
  for (int i = 0; i < herd.count; ++i) by_second(c, free_it, herd.objects[i]);
  look_for_overlaps(c, c->size);
  harmless("right");
}

static void zeros(const struct Case* c) {
  grow(&herd, c->size, some(c->size));
  at(herd.objects[0]);
  for (int i = 0; i < herd.count; ++i) by_second(c, free_it, herd.objects[i]);
  for (int i = 0; i < herd.count; ++i) {
    herd.objects[i] = hide(calloc(c->size / 16, 16));
    if (!is_filled(herd.objects[i], c->size, 0)) silent("calloc gave what is not zero");
    fill(herd.objects[i], c->size, value_of(i));
  }
  passed();
  if (changed(&herd, -1) >= 0) silent("a live object was changed");
  release(&herd, -1);
  look_for_overlaps(c, c->size);
  harmless("right");
}

static void aligned(const struct Case* c) {
  at(NULL);
  for (int i = 0; i < some(c->size); ++i) {
    char* object = hide(aligned_alloc(4096, c->size < 4096 ? 4096 : c->size));
    if (object == NULL || (uintptr_t)object % 4096 != 0) silent("not aligned");
    fill(object, c->size, kOther);
    by_second(c, free_it, object);
  }
  passed();
  look_for_overlaps(c, c->size);
  harmless("right");
}

#define KIND "no-fault"
const struct Fault kRight[] = {
    {"used-whole", KIND, used_whole, 0, kAllSizes, kBoth},
    {"realloc", KIND, grown_and_cut, 0, kAllSizes, kBoth},
    {"calloc", KIND, zeros, 0, kAllSizes, kBoth},
    {"aligned_alloc", KIND, aligned, 0, kAllSizes, kBoth},
    {0},
};
