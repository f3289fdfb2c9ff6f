// SPDX-License-Identifier: MIT
//
// What the allocator itself believes to be live: the other half of the balance. The oracle sees an object
// that is handed out twice; only the allocator's own count shows one that is never handed out again.
#pragma once

#include <cstddef>

namespace brimful::stress {

// Bytes in live objects and blocks by the allocator's count. Exact while no other thread allocates, except
// for frees that wait in other contexts to be told.
size_t live_bytes();

// Tells what this thread's context can tell, and gives free memory back.
void trim();

}  // namespace brimful::stress
