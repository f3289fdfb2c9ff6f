// SPDX-License-Identifier: MIT
//
// free and realloc get what malloc did not return, or no longer. Harm is memory that is given out although it belongs to somebody.
#define _GNU_SOURCE 1
#include <alloca.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "suite.h"

static struct Herd herd;
static _Alignas(64) char data[262144 + 64];

static void free_faulty(void* pointer) {
  at(pointer);
  free(hide(pointer));
}

static void realloc_faulty(void* pointer) {
  static char* result;
  at(pointer);
  result = hide(realloc(hide(pointer), 1000));
  if (result == NULL) harmless("refused");
}

static void end(const struct Case* c) {
  passed();
  look_for_overlaps(c, c->size);
  look_for_overlaps(c, c->size * 2);
  harmless("nothing was given out that belongs to somebody");
}

// Where a pointer points that is no object: `param` says which.
enum Place { kStack, kData, kMapped, kFake, kInterior16, kInteriorHalf, kOff1, kOff8, kEnd, kBefore };

static char* place(const struct Case* c, enum Place where) {
  char* found = NULL;
  switch (where) {
    case kData:
      memset(data, 1, sizeof data);
      belongs(data, c->size);
      return data + 16;
    case kMapped:
      found = mmap(NULL, c->size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (found == MAP_FAILED) broken("out of memory");
      belongs(found, c->size + 4096);
      return found + 64;
    case kFake:
      // What lies before it looks like the header of a block of this size, as glibc has it ("house of spirit").
      for (size_t i = 0; i + 8 <= sizeof data; i += 8) *(uint64_t*)(data + i) = (c->size + 16) | 1;
      belongs(data, c->size);
      return data + 64;
    default:
      grow(&herd, c->size, some(c->size));
      for (int i = 0; i < herd.count; ++i) belongs(herd.objects[i], c->size);
      found = herd.objects[herd.count / 2];
  }
  switch (where) {
    case kInterior16:
      return found + (c->size > 16 ? 16 : 8);
    case kInteriorHalf:
      return found + c->size / 2;
    case kOff1:
      return found + 1;
    case kOff8:
      return found + 8;
    case kEnd:
      // Where an object begins there, it is live: the pointer is a right one.
      for (int i = 0; i < herd.count; ++i)
        if (herd.objects[i] == found + c->size) return found + c->size - 16 + 8;
      return found + c->size;
    default:
      return found - 16 + 8 * (c->size == 16);
  }
}

static void free_place(const struct Case* c) {
  by_second(c, free_faulty, place(c, (enum Place)c->param));
  end(c);
}

static void realloc_place(const struct Case* c) {
  by_second(c, realloc_faulty, place(c, (enum Place)c->param));
  end(c);
}

static void on_stack(const struct Case* c, void (*call)(void*)) {
  char* room = alloca(c->size + 64);
  memset(room, 1, c->size + 64);
  belongs(room, c->size + 64);
  by_second(c, call, (void*)(((uintptr_t)room + 31) & ~(uintptr_t)15));
  end(c);
}

static void free_stack(const struct Case* c) { on_stack(c, free_faulty); }
static void realloc_stack(const struct Case* c) { on_stack(c, realloc_faulty); }

// The old pointer goes to realloc: to grow it, or to keep its size.
static void realloc_freed(const struct Case* c) {
  grow(&herd, c->size, some(c->size));
  char* object = herd.objects[2];
  by_second(c, free_it, object);
  at(object);
  char* result = hide(realloc(hide(object), c->size * c->param));
  passed();
  if (result == NULL) harmless("refused");
  belongs(result, c->size);
  look_for_overlaps(c, c->size);
  harmless("no address was given out twice");
}

// realloc to 0 frees; the pointer is freed once more.
static void realloc_to_zero(const struct Case* c) {
  grow(&herd, c->size, some(c->size));
  char* object = herd.objects[2];
  char* rest = hide(realloc(hide(object), 0));
  if (rest == object) harmless("realloc to 0 did not free it, so there was no fault");
  by_second(c, free_faulty, object);
  passed();
  look_for_overlaps(c, c->size);
  harmless("no address was given out twice");
}

#define KIND "invalid-free"
#define REALLOC "realloc-misuse"
const struct Fault kWrongPointers[] = {
    {"stack", KIND, free_stack, 0, kAllSizes, kOneThread},
    {"data", KIND, free_place, kData, kAllSizes, kOneThread},
    {"mapped", KIND, free_place, kMapped, kAllSizes, kBoth},
    {"fake-header", KIND, free_place, kFake, kAllSizes, kOneThread},
    {"interior", KIND, free_place, kInterior16, kAllSizes, kBoth},
    {"interior-half", KIND, free_place, kInteriorHalf, kAllSizes, kBoth},
    {"misaligned-1", KIND, free_place, kOff1, kAllSizes, kOneThread},
    {"misaligned-8", KIND, free_place, kOff8, kAllSizes, kOneThread},
    {"end", KIND, free_place, kEnd, kAllSizes, kOneThread},
    {"before", KIND, free_place, kBefore, kAllSizes, kOneThread},
    {"freed", REALLOC, realloc_freed, 2, kAllSizes, kBoth},
    {"freed-same-size", REALLOC, realloc_freed, 1, kAllSizes, kBoth},
    {"interior", REALLOC, realloc_place, kInteriorHalf, kAllSizes, kOneThread},
    {"data", REALLOC, realloc_place, kData, kAllSizes, kOneThread},
    {"stack", REALLOC, realloc_stack, 0, kAllSizes, kOneThread},
    {"to-zero", REALLOC, realloc_to_zero, 0, kAllSizes, kOneThread},
    {0},
};
