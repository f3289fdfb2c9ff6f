// SPDX-License-Identifier: MIT
//
// Whether the system asks for less memory.
#pragma once

namespace brimful::pages {

inline bool under_pressure() { return false; }

}  // namespace brimful::pages
