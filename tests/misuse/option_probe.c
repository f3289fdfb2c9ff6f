// SPDX-License-Identifier: MIT
//
// A program that uses the heap a little and says so: run.py starts it with right and wrong options. With
// "exhaust" it allocates blocks of 1 MiB until there are no more, at most 256, and prints their number.
#include "misuse.h"

#include <errno.h>

int main(int argc, char** argv) {
  char* object = allocate(100);
  object = hide(realloc(object, 100000));
  free(object);
  if (argc > 1 && strcmp(argv[1], "exhaust") == 0) {
    int count = 0;
    while (count < 256 && hide(malloc(1 << 20)) != NULL) ++count;
    char line[64];
    snprintf(line, sizeof line, "%d MiB, errno %d\n", count, count < 256 ? errno : 0);
    print_line(line);
  }
  print_line("done\n");
  return 0;
}
