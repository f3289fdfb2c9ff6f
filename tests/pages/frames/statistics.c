// SPDX-License-Identifier: MIT
//
// Around the piece of docs/guide/statistics.md.
#include <stdio.h>
#include <unistd.h>

@includes@

int main(void) {
  @lines@
  return 0;
}
