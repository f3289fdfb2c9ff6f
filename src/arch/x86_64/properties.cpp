// SPDX-License-Identifier: MIT
//
// What this architecture's sequences can do.
#include <cpuid.h>

#include "arch/sequences.h"

namespace brimful::arch {

const bool kRestartable = true;

bool has_fast_allocate() {
  constexpr unsigned kBmi1 = 1U << 3;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kBmi1) != 0;
}

}  // namespace brimful::arch
