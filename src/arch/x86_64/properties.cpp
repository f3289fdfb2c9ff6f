// SPDX-License-Identifier: MIT
//
// What this architecture's sequences can do.
#include "arch/sequences.h"

namespace brimful::arch {
const bool kRestartable = true;
}  // namespace brimful::arch
