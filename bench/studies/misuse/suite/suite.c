// SPDX-License-Identifier: MIT
//
// The program of the misuse suite: `suite` alone lists its cases, one on a line, as it wants them back:
//
//     suite KIND FAULT SIZE one|two
//
// suite.h says what a case prints. Exit code 2: there is no such case.
#define _GNU_SOURCE 1
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const struct Fault* const kTables[] = {kDoubleFrees,   kUsesAfterFree, kBounds,   kContents,
                                              kWrongPointers, kWrongSizes,    kMetadata, kRight};
// A smallest class, two of small objects, a page, a large one of the small, and one that has pages to itself.
static const size_t kSizes[] = {16, 64, 512, 4096, 32768, 262144};
enum { kSizeCount = sizeof kSizes / sizeof *kSizes, kTableCount = sizeof kTables / sizeof *kTables };

static bool takes(const struct Fault* fault, bool two) {
  return fault->threads == kBoth || two == (fault->threads == kTwoThreads);
}

static void list(void) {
  for (int t = 0; t < kTableCount; ++t)
    for (const struct Fault* fault = kTables[t]; fault->name != NULL; ++fault)
      for (int s = 0; s < (fault->sizes == kOneSize ? 1 : kSizeCount); ++s)
        for (int two = 0; two < 2; ++two)
          if (takes(fault, two)) printf("%s %s %zu %s\n", fault->kind, fault->name, kSizes[s], two ? "two" : "one");
}

int main(int argc, char** argv) {
  if (argc == 1) {
    list();
    return 0;
  }
  if (argc != 5) return 2;
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  struct Case c = {strtoull(argv[3], NULL, 10), strcmp(argv[4], "two") == 0, 0};
  for (int t = 0; t < kTableCount; ++t)
    for (const struct Fault* fault = kTables[t]; fault->name != NULL; ++fault)
      if (strcmp(fault->kind, argv[1]) == 0 && strcmp(fault->name, argv[2]) == 0 && takes(fault, c.two)) {
        c.param = fault->param;
        start_second_thread();
        fault->commit(&c);
        broken("a fault returned without a verdict");
      }
  return 2;
}
