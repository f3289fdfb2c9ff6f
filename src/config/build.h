// SPDX-License-Identifier: MIT
//
// What was chosen at build time, as constants: the rest of the tree asks with `if constexpr`.
#pragma once

#include "base/compiler.h"

namespace brimful::config {

inline constexpr const char* kVersion = "0.1.0";
inline constexpr bool kDebugChecks = BRIMFUL_DEBUG_CHECKS != 0;

}  // namespace brimful::config
