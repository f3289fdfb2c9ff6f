// SPDX-License-Identifier: MIT
//
// Huge blocks (mappings of their own, none of their memory touched) while very many large ones are live. The table of
// granules answers for any address, modulo its size, so a huge block's entry is often that of some large block; free
// and realloc have to see through that. A free that did not called a live block a double free.
#include "check.h"

enum { kLarge = 40000, kHuge = 400 };

static void every_huge_block_can_be_resized_and_freed(void) {
  static void* large[kLarge];
  for (int i = 0; i < kLarge; ++i) {
    large[i] = malloc(70000);
    CHECK(large[i] != NULL);
    if (large[i] == NULL) return;
  }
  // All live at once, so that their addresses differ: 2 TiB of address space, none of it used.
  static char* huge[kHuge];
  uint64_t random = 7;
  for (int i = 0; i < kHuge; ++i) {
    huge[i] = malloc(((size_t)5 << 30) + (size_t)(next_random(&random) % 100000) * 4096);
    CHECK(huge[i] != NULL);
  }
  for (int i = 0; i < kHuge; ++i) {
    if (huge[i] == NULL) continue;
    huge[i][0] = 'x';
    huge[i] = realloc(huge[i], (size_t)6 << 30);
    CHECK(huge[i] != NULL && huge[i][0] == 'x');
    free(huge[i]);
  }
  for (int i = 0; i < kLarge; ++i) free(large[i]);
}

int main(void) {
  require_brimful();
  RUN(every_huge_block_can_be_resized_and_freed);
  return finish();
}
