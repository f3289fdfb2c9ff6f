// SPDX-License-Identifier: MIT
//
// Around the pieces of docs/guide/heaps.md: what they take for granted of the program that they stand in.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

@includes@
#include <brimful/heap.h>

typedef struct {
  char* text;
} document;

static document* parse(const char* input) {
  document* result = malloc(sizeof *result);
  result->text = strdup(input);
  return result;
}

static void piece(const char* input, brimful_heap* outer) {
  brimful_heap* request = outer;
  (void)input;
  (void)request;
  (void)parse;
  {
    @lines@
  }
}

int main(void) { piece("text", brimful_heap_create(0)); }
