// SPDX-License-Identifier: MIT
//
// Memory for signal handlers that allocate after interrupting a slow path of their own thread: the locks may be held by
// the very code that waits below the handler, so this path takes none. 1 MiB, bump-allocated; when the last piece is
// freed it starts again from the beginning. POSIX lets no handler call malloc; programs do (crash reporters,
// profilers), and a deadlock there is an outage. Blocks carry their size in the 16 bytes in front.
#pragma once

#include <cstddef>
#include <cstdint>

#include "meta/header.h"

namespace brimful::alloc {

// nullptr when the reserve is used up or was never made. Any thread, any moment; no lock, no system call.
void* allocate_emergency(std::size_t bytes, std::size_t alignment);

// `pointer` lies in the emergency granules. false: it is not the start of a piece.
bool free_emergency(std::uint64_t pointer);

// Usable bytes of the piece.
std::size_t emergency_bytes(std::uint64_t pointer);

// Makes the reserve. Called once, outside of signal handlers.
void prepare_emergency();

}  // namespace brimful::alloc
