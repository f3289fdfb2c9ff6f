// SPDX-License-Identifier: MIT
//
// The allocator's own books are overwritten where classic ones keep them: links in the first words of free memory, sizes in the word
// before an object. What is written is what an attacker would write. Harm is an object where the attacker wants it, in memory of
// somebody else.
#include <stdlib.h>
#include <string.h>

#include "suite.h"

static struct Herd herd;
// Where malloc must not go; forged headers are all over it, so that a check of them is no obstacle.
static _Alignas(4096) uint64_t target[8192];

static void prepare(const struct Case* c) {
  for (size_t i = 0; i < sizeof target / sizeof *target; ++i) target[i] = (c->size + 16) | 1;
  belongs(target, sizeof target);
  grow(&herd, c->size, some(c->size));
  // Of several free ones the last is the first in most lists, and no list ends behind it.
  for (int i = 0; i < 6 && i < herd.count; ++i) by_second(c, free_it, herd.objects[i]);
}

static _Noreturn void end(const struct Case* c) {
  passed();
  look_for_overlaps(c, c->size);
  for (int i = 6; i < herd.count; ++i) free(hide(herd.objects[i]));
  look_for_overlaps(c, c->size);
  harmless("malloc went where it should");
}

// `param`: in how many of the first words of each free object.
static void link_to_target(const struct Case* c) {
  prepare(c);
  at(herd.objects[5]);
  for (int i = 0; i < 6 && i < herd.count; ++i)
    for (unsigned word = 0; word < c->param; ++word)
      ((volatile uint64_t*)hide(herd.objects[i]))[word] = (uint64_t)(uintptr_t)&target[1024 + 2 * word];
  end(c);
}

static void smashed_whole(const struct Case* c) {
  prepare(c);
  at(herd.objects[5]);
  for (int i = 0; i < 6 && i < herd.count; ++i) memset(hide(herd.objects[i]), 0xff, c->size);
  end(c);
}

// The mark by which a cache knows that it has an object already.
static void key_then_free(const struct Case* c) {
  prepare(c);
  char* object = herd.objects[3];
  at(object);
  ((volatile uint64_t*)hide(object))[1] = 0;
  by_second(c, free_it, object);
  end(c);
}

// A size for twice the memory, in the words before the object or behind it.
static void forge_size(const struct Case* c, bool is_behind) {
  grow(&herd, c->size, some(c->size));
  const int victim = herd.count / 2;
  for (int i = 0; i < herd.count; ++i)
    if (i != victim) belongs(herd.objects[i], c->size);
  char* object = herd.objects[victim];
  volatile uint64_t* word = hide(is_behind ? object + c->size : object - 8);
  at(word);
  *word = (2 * (c->size + 16)) | 1;
  passed();
  bool is_changed = changed(&herd, victim) >= 0;
  by_second(c, free_it, object);
  look_for_overlaps(c, c->size * 2);
  if (is_changed) silent("a live object was changed");
  harmless("malloc went where it should");
}

static void size_before(const struct Case* c) { forge_size(c, false); }
static void size_behind(const struct Case* c) { forge_size(c, true); }

#define KIND "metadata"
const struct Fault kMetadata[] = {
    {"first-word", KIND, link_to_target, 1, kAllSizes, kBoth},
    {"two-words", KIND, link_to_target, 2, kAllSizes, kBoth},
    {"whole-object", KIND, smashed_whole, 0, kAllSizes, kBoth},
    {"key-then-free", KIND, key_then_free, 0, kAllSizes, kBoth},
    {"size-before", KIND, size_before, 0, kAllSizes, kOneThread},
    {"size-behind", KIND, size_behind, 0, kAllSizes, kOneThread},
    {0},
};
