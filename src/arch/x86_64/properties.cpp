// SPDX-License-Identifier: MIT
//
// What this architecture's sequences can do.
#include <cpuid.h>

#include "arch/sequences.h"

namespace brimful::arch {

const bool kRestartable = true;

bool has_fast_advance() {
  constexpr unsigned kPopcnt = 1U << 23;
  static constinit int known = -1;  // written by whoever asks first, always with the same value
  if (known < 0) {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    known = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & kPopcnt) != 0 ? 1 : 0;
  }
  return known == 1;
}

}  // namespace brimful::arch
