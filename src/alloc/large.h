// SPDX-License-Identifier: MIT
//
// Blocks above 32 KiB: runs of granules in a window, or, above 1/8 of the first window, mappings of their own.
// Usable size is whole system pages. Blocks of up to 1 MiB come and go in arch/ while a stack has them, or has room for them
// (pages/run_stacks.h). A run that the context's cache has, or has room for (pages/run_cache.h), takes no
// lock; everything else here takes the heap lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "meta/header.h"

namespace brimful::alloc {

// Requests above this are impossible everywhere (PTRDIFF_MAX).
inline constexpr std::size_t kMostBytes = PTRDIFF_MAX;

// A block that waits in the running context's cache; nullptr when there is none. Takes no lock, touches no errno; any
// moment.
void* allocate_large_lightly(std::size_t bytes, std::size_t alignment);

// nullptr when there is no memory. `alignment` is a power of two. O(log runs) + system calls for fresh memory.
void* allocate_large(std::size_t bytes, std::size_t alignment);

// Clears what allocate_large() gave, as far as it was ever written.
void clear_large(void* pointer, std::size_t bytes);

// With the option `zero`: clears [from, end) of the block, which no program may use any more. Above 256 KiB the memory goes
// back to the system instead, which is quicker.
void clear_freed(const Run* run, std::uint64_t from, std::uint64_t end);

// Ends the life of the block `run` that callers found at `start`, without a lock. false: it is there no more, so another
// thread was faster and this is the second free of two. Any moment.
[[nodiscard]] bool claim_large(Run* run, std::uint64_t start);

// Whether the block that the caller has claimed is the one at `start`. A header can be another block's by the time of the claim,
// which then lives on; false, as above.
[[nodiscard]] bool holds_claim(Run* run, std::uint64_t start);

// Keeps a claimed block in the running context's cache. false: it has to be free_large(). As allocate_large_lightly().
[[nodiscard]] bool free_large_lightly(Run* run);

// Frees a claimed block.
void free_large(Run* run);

// The same in a signal handler that interrupted a slow path: it waits in a lock-free list for the next call.
void free_large_nested(Run* run);

// Frees a claimed block of a heap (slots/user_heap.h). Inside a SlowScope that is not nested.
void free_large_of_heap(Run* run);

// Frees the huge block that starts at `start`. false: there is none.
[[nodiscard]] bool free_huge(std::uint64_t start);

// As free_large_nested() for a pointer that leads to no header: perhaps a huge block, whose list a handler must not read. The next call
// outside of handlers frees it, or reports it. Keeps the address in the handlers' reserve; if that is used up, the block
// stays allocated for good.
void free_huge_nested(std::uint64_t start);

// Grows or shrinks the block `run` that callers found at `start` without moving the contents by hand: in place, or by
// moving pages. Returns the block's address, or nullptr when the contents have to be copied to a new block.
void* resize_large(Run* run, std::uint64_t start, std::size_t bytes);

// The huge block that starts at `start`, or nullptr.
Run* find_huge(std::uint64_t start);

}  // namespace brimful::alloc
