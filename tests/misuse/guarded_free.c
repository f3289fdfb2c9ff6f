// SPDX-License-Identifier: MIT
//
// What free() and its like find at a guarded object. Arguments: what (behind, before, twice, interior, misaligned, realloc,
// usable, sized), size, distance of the byte that is written.
#include "guarded.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* what = argv[1];
  const size_t size = argument(argc, argv, 2, 61);
  const size_t distance = argument(argc, argv, 3, 0);
  if (strcmp(what, "before") == 0) {
    char* object = guarded_at_end(size);
    write_at(object - distance);
    free(about_to_misuse(object));
    return survived();
  }
  char* object = strcmp(what, "behind") == 0 && distance > 15 ? guarded_at_start(size) : allocate(size);
  if (strcmp(what, "behind") == 0) {
    write_at(object + size + distance);
    free(about_to_misuse(object));
  } else if (strcmp(what, "twice") == 0) {
    free(object);
    free(about_to_misuse(object));
  } else if (strcmp(what, "interior") == 0) {
    free(about_to_misuse(object + 16));
  } else if (strcmp(what, "misaligned") == 0) {
    free(about_to_misuse(object + 8));
  } else if (strcmp(what, "realloc") == 0) {
    free(object);
    object = realloc(about_to_misuse(object), 100);
  } else if (strcmp(what, "usable") == 0) {
    free(object);
    (void)malloc_usable_size(about_to_misuse(object));
  } else if (strcmp(what, "sized") == 0) {
    free_sized(about_to_misuse(object), size + 1000);
  }
  return survived();
}
