// SPDX-License-Identifier: MIT
//
// What this architecture's sequences can do.
#include "arch/sequences.h"

namespace brimful::arch {

const bool kRestartable = true;

// Counting bits is part of the base instruction set (CNT of Advanced SIMD, which Linux asks for).
bool has_fast_advance() { return true; }

}  // namespace brimful::arch
