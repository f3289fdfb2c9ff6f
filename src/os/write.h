// SPDX-License-Identifier: MIT
//
// Writing a whole text to a descriptor.
#pragma once

#include <cstddef>

namespace brimful::os {

// Calls write(2) until all is written; one call where the system takes it in one. Returns 0 or the error number of the
// call that failed. errno is kept.
int write_whole(int descriptor, const char* text, std::size_t bytes);

}  // namespace brimful::os
