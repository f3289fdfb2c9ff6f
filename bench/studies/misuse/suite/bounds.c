// SPDX-License-Identifier: MIT
//
// Bytes behind the end of an object, or before its start, are written to or read. Harm is another object of the same size that changed or
// was read, or a heap that gives out what belongs to somebody.
#include <stdlib.h>

#include "suite.h"

static struct Herd herd;

static int middle(void) { return herd.count / 2; }

// Objects on both sides of the one in the middle; which lie beside it is the allocator's choice.
static char* surrounded(const struct Case* c, uint64_t contents) {
  grow(&herd, c->size, some(c->size));
  if (contents != 0)
    for (int i = 0; i < herd.count; ++i)
      if (i != middle()) fill(herd.objects[i], c->size, contents);
  return herd.objects[middle()];
}

static void end_of_write(const struct Case* c) {
  passed();
  bool is_changed = changed(&herd, middle()) >= 0;
  by_second(c, free_it, herd.objects[middle()]);
  release(&herd, middle());
  if (is_changed) silent("a live object was changed");
  look_for_overlaps(c, c->size);
  harmless("no live object was changed");
}

struct Span {
  volatile unsigned char* from;
  size_t count;
  unsigned char value;
};

static void smash(void* passed) {
  const struct Span* span = passed;
  for (size_t i = 0; i < span->count; ++i) span->from[i] = span->value;
}

static void write_span(const struct Case* c, char* from, size_t count, unsigned char value) {
  struct Span span = {hide(from), count, value};
  at(from);
  by_second(c, smash, &span);
  end_of_write(c);
}

static void write_behind(const struct Case* c) { write_span(c, surrounded(c, 0) + c->size, c->param, kSmashed); }

// Of an object that is 8 bytes smaller. Allocators with a word of their own before each object have none to spare here, and all of
// them at the full size.
static void write_behind_odd(const struct Case* c) {
  const struct Case odd = {c->size - 8, c->two, c->param};
  write_behind(&odd);
}

// A text that is one byte too long ends in a zero.
static void write_zero_behind(const struct Case* c) { write_span(c, surrounded(c, 0) + c->size, 1, 0); }

// From the start backwards, as a loop that counts down does.
static void smash_backwards(void* passed) {
  const struct Span* span = passed;
  for (size_t i = 1; i <= span->count; ++i) *(span->from - i) = span->value;
}

static void write_before(const struct Case* c) {
  char* object = surrounded(c, 0);
  struct Span span = {hide(object), c->param, kSmashed};
  at(object - 1);
  by_second(c, smash_backwards, &span);
  end_of_write(c);
}

// Past what lies between: only that far away is an object found whose neighbours nobody wrote to.
static void write_far_behind(const struct Case* c) { write_span(c, surrounded(c, 0) + 2 * c->size, 8, kSmashed); }

static void read_span(const struct Case* c, char* from) {
  uint64_t word = 0;
  bool is_read = false;
  at(from);
  for (size_t i = 0; i + sizeof word <= c->param; i += sizeof word) {
    word = *(volatile uint64_t*)hide(from + i);
    if (word == kSecret) is_read = true;
  }
  passed();
  if (is_read) silent("another object's contents were read");
  harmless("nobody else's contents were there");
}

static void read_behind(const struct Case* c) { read_span(c, surrounded(c, kSecret) + c->size); }
static void read_before(const struct Case* c) { read_span(c, surrounded(c, kSecret) - c->param); }

static void write_to_nothing(const struct Case* c) {
  grow(&herd, 16, some(16));
  char* nothing[64];
  for (int i = 0; i < 64; ++i) nothing[i] = allocate(0);
  at(nothing[32]);
  *(volatile char*)hide(nothing[32]) = kSmashed;
  passed();
  bool is_changed = changed(&herd, -1) >= 0;
  for (int i = 0; i < 64; ++i) by_second(c, free_it, nothing[i]);
  if (is_changed) silent("a live object was changed");
  harmless("no live object was changed");
}

static void read_nothing(const struct Case* c) {
  char* old = allocate(16);
  fill(old, 16, kSecret);
  by_second(c, free_it, old);
  char* nothing[64];
  for (int i = 0; i < 64; ++i) nothing[i] = allocate(0);
  at(nothing[0]);
  bool is_read = false;
  for (int i = 0; i < 64; ++i) is_read |= holds(nothing[i], 16, kSecret);
  passed();
  if (is_read) silent("old contents were read");
  harmless("nobody's contents were there");
}

#define OVER "overflow-"
#define UNDER "underflow"
const struct Fault kBounds[] = {
    {"write", OVER "1", write_behind, 1, kAllSizes, kBoth},
    {"write-odd", OVER "1", write_behind_odd, 1, kAllSizes, kBoth},
    {"write-zero", OVER "1", write_zero_behind, 1, kAllSizes, kBoth},
    {"write", OVER "8", write_behind, 8, kAllSizes, kBoth},
    {"write-odd", OVER "8", write_behind_odd, 8, kAllSizes, kBoth},
    {"write", OVER "16", write_behind, 16, kAllSizes, kBoth},
    {"write", OVER "page", write_behind, 4096, kAllSizes, kBoth},
    {"write", OVER "mib", write_behind, 1 << 20, kAllSizes, kOneThread},
    {"write", OVER "far", write_far_behind, 8, kAllSizes, kOneThread},
    {"read-16", OVER "read", read_behind, 16, kAllSizes, kOneThread},
    {"read-page", OVER "read", read_behind, 4096, kAllSizes, kOneThread},
    {"write-1", UNDER, write_before, 1, kAllSizes, kOneThread},
    {"write-8", UNDER, write_before, 8, kAllSizes, kBoth},
    {"write-16", UNDER, write_before, 16, kAllSizes, kBoth},
    {"write-page", UNDER, write_before, 4096, kAllSizes, kOneThread},
    {"read-16", UNDER, read_before, 16, kAllSizes, kOneThread},
    {"write", "zero-size", write_to_nothing, 0, kOneSize, kBoth},
    {"read", "zero-size", read_nothing, 0, kOneSize, kBoth},
    {0},
};
