// SPDX-License-Identifier: MIT
//
// fork() beside threads that use streams. getline() calls realloc() with its stream locked, fflush(NULL) waits for that
// stream with the list of streams locked, and fork() takes that list's lock after the handlers in which an allocator takes
// its own locks: with the two in that order, all three wait for one another.
#include "beside_forks.h"

#include <wchar.h>

// Lines that grow, so that getline() calls realloc() again and again, with its stream locked.
static char lines[1 << 17];

static void fill_lines(void) {
  size_t at = 0;
  for (size_t length = 100; at + length + 1 < sizeof lines; length += length / 2) {
    memset(lines + at, 'x', length);
    lines[at + length] = '\n';
    at += length + 1;
  }
  if (at + 1 < sizeof lines) lines[at] = '\n';
}

static void step_getline(uint64_t* random) {
  (void)random;
  FILE* stream = fmemopen(lines, sizeof lines, "r");
  if (stream == NULL) return;
  char* line = NULL;
  size_t capacity = 0;
  for (int i = 0; i < 14 && getline(&line, &capacity, stream) >= 0; ++i) {
  }
  free(line);
  fclose(stream);
}

static void step_flush_all(uint64_t* random) {
  (void)random;
  fflush(NULL);
}

static void step_memory_stream(uint64_t* random) {
  char* text = NULL;
  size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  if (stream == NULL) return;
  for (int i = 0; i < 200; ++i) fprintf(stream, "%*d\n", (int)(next_random(random) % 400), i);
  fclose(stream);
  free(text);
}

static void step_open_close(uint64_t* random) {
  (void)random;
  FILE* stream = fopen("/dev/null", "w");
  if (stream == NULL) return;
  setvbuf(stream, NULL, _IOFBF, 20000);
  fwprintf(stream, L"%ls %f", L"wide", 1.5);
  fclose(stream);
}

static void streams(void) {
  beside_forks("getline", step_getline, "fflush(NULL)", step_flush_all);
  beside_forks("open_memstream", step_memory_stream, "fflush(NULL)", step_flush_all);
  beside_forks("fopen", step_open_close, "getline", step_getline);
}

int main(void) {
  begin(60);
  fill_lines();
  RUN(streams);
  return finish();
}
