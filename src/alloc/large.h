// SPDX-License-Identifier: MIT
//
// Blocks above 32 KiB: runs of granules in a window, or, above 1/8 of the first window, mappings of their own.
// Usable size is whole system pages. Everything here takes the heap lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "meta/header.h"

namespace brimful::alloc {

// Requests above this are impossible everywhere (PTRDIFF_MAX).
inline constexpr std::size_t kMostBytes = PTRDIFF_MAX;

// nullptr when there is no memory. `alignment` is a power of two. O(log runs) + system calls for fresh memory.
void* allocate_large(std::size_t bytes, std::size_t alignment);

// Clears what allocate_large() gave, as far as it was ever written.
void clear_large(void* pointer, std::size_t bytes);

// Frees the block that starts at `start`. false: there is none; callers have looked before, without the lock, so another
// thread was faster and this is the second free of two.
[[nodiscard]] bool free_large(std::uint64_t start);

// Frees a block from a signal handler that interrupted a slow path: it waits in a lock-free list for the next call.
// false: it waits there already.
[[nodiscard]] bool free_large_nested(Run* run);

// The same for a pointer that leads to no header: perhaps a huge block, whose list a handler must not read. The next call
// outside of handlers frees it, or reports it. Keeps the address in the handlers' reserve; if that is used up, the block
// stays allocated for good.
void free_huge_nested(std::uint64_t start);

// Grows or shrinks the block at `start` without moving the contents by hand: in place, or by moving pages. Returns the
// block's address, or nullptr when the contents have to be copied to a new block.
void* resize_large(std::uint64_t start, std::size_t bytes);

// The huge block that starts at `start`, or nullptr.
Run* find_huge(std::uint64_t start);

}  // namespace brimful::alloc
