// SPDX-License-Identifier: MIT
//
// What is fixed when the library is built.
#pragma once

namespace brimful::config {

// What stands between the fast paths and the page heap. All but the first are for study (docs/design/0010).
enum class Middle {
  kContexts,    // contexts with current groups of their own; what is shipped
  kClassMutex,  // every small malloc and free under its class's lock
  kGlobalLock,  // every small malloc and free under one lock
};

// CMake's BRIMFUL_MIDDLE, which also chooses the sources.
#if !defined(BRIMFUL_MIDDLE)
#define BRIMFUL_MIDDLE kContexts
#endif
inline constexpr Middle kMiddle = Middle::BRIMFUL_MIDDLE;

inline constexpr const char* kVersion = kMiddle == Middle::kContexts     ? "0.1.0"
                                        : kMiddle == Middle::kClassMutex ? "0.1.0 (study: class mutex)"
                                                                         : "0.1.0 (study: global lock)";

}  // namespace brimful::config
