// SPDX-License-Identifier: MIT
//
// What is fixed when the library is built.
#pragma once

namespace brimful::config {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace brimful::config
