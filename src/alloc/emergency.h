// SPDX-License-Identifier: MIT
//
// Memory for signal handlers that allocate after interrupting a slow path of their own thread: the locks may be held by
// the very code that waits below the handler, so this path takes none. POSIX lets no handler call malloc; programs do
// (crash reporters, profilers), and a deadlock there is an outage.
//
// The reserve is one ordinary slab for each of four size classes, whose free objects all stand in the remote masks: a bit
// taken by an atomic AND is an allocation, and a free is the remote free that any slab of another owner gets.
#pragma once

#include <cstddef>

namespace brimful::alloc {

// nullptr when the reserve is used up, was never made, or has no class so large (16 KiB). Any thread, any moment; no
// lock, no system call.
void* allocate_emergency(std::size_t bytes, std::size_t alignment);

// Makes the reserve, once. Outside of signal handlers; takes the heap lock.
void prepare_emergency();

}  // namespace brimful::alloc
