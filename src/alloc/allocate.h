// SPDX-License-Identifier: MIT
//
// The allocation calls by their meaning, below any name of the C library: routing between size classes, large and huge
// blocks, alignment, reallocation, classification of pointers. The standard names in abi/ add errno and quirks.
//
// All of them: thread-safe, callable in signal handlers that interrupt one of them, nullptr when there is no memory.
// errno: ENOMEM where nullptr is returned, else as before. Cost: a hit is 20 (malloc) or 29 (free) instructions; see slots/ and alloc/large.h for misses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::alloc {

// At least `bytes` bytes on a multiple of 16; 0 gives a block of its own, too.
void* allocate(std::size_t bytes);

// As allocate(), all zero.
void* allocate_zeroed(std::size_t count, std::size_t bytes);

// On a multiple of `alignment`, a power of two of any size.
void* allocate_aligned(std::size_t alignment, std::size_t bytes);

// A block of `bytes` bytes with the contents of `pointer` (live, not nullptr) as far as they fit, in place where
// possible; `pointer` is freed if the result lies elsewhere. nullptr: nothing has changed. kMisused: `pointer` is not live,
// which has been reported (meta/misuse.h).
void* reallocate(void* pointer, std::size_t bytes);
inline void* const kMisused = reinterpret_cast<void*>(UINTPTR_MAX);

// As C has it: nullptr with errno ENOMEM, or EINVAL for kMisused; a block, with errno as it was.
void* or_errno(void* block);

// Bytes that may be used from `pointer` (live) on; constant for its life. `call` names the caller in a report. 0: it is not
// live, which has been reported.
std::size_t usable_bytes(const void* pointer, const char* call);

// What usable_bytes() will say of a block that allocate_aligned() gives, which allocates nothing. 0: there is no such block.
std::size_t usable_bytes_of_request(std::size_t alignment, std::size_t bytes);

// The number of the program's heap that `pointer` (live) is of; 0: of none (slots/user_heap.h). kNotLive: it is not
// live, which has been reported.
inline constexpr std::uint32_t kNotLive = UINT32_MAX;
std::uint32_t heap_number_of(const void* pointer, const char* call);

// A block of whole granules or of a mapping of its own, of no heap.
void* allocate_run_of(std::size_t bytes, std::size_t alignment);

// Checks that the live object `pointer` is one that a request of `bytes` with `alignment` gets, and reports what is not so. false: it
// is not live, so there is nothing to free; a live one is what it is, whatever size the caller believes it has.
[[nodiscard]] bool check_size(const void* pointer, std::size_t bytes, std::size_t alignment);

// Gives all free memory back to the system. Bytes given back.
std::size_t trim();

}  // namespace brimful::alloc
