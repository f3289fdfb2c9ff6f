// SPDX-License-Identifier: MIT
//
// The calls of alloc/allocate.h for heaps of the program (include/brimful/heap.h, slots/user_heap.h): routing between
// objects and blocks of their own. errno: ENOMEM where nullptr is returned. Heaps that are closed are reported; `call`
// is the function's name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "meta/header.h"
#include "slots/user_heap.h"

namespace brimful::alloc {

// At least `bytes` bytes of the heap on a multiple of `alignment`, a power of two.
void* allocate_in_heap(slots::HeapHandle handle, std::size_t bytes, std::size_t alignment, const char* call);

// The same of the calling thread's current heap, which it has.
void* allocate_in_current_heap(std::size_t bytes, std::size_t alignment);

// The same of the heap with this number, for a block of it that moves.
void* allocate_beside(std::uint32_t heap_number, std::size_t bytes);

// As allocate_in_heap(), all zero.
void* allocate_zeroed_in_heap(slots::HeapHandle handle, std::size_t count, std::size_t bytes, const char* call);

// As reallocate(); the result is the heap's.
void* reallocate_in_heap(slots::HeapHandle handle, void* pointer, std::size_t bytes, const char* call);

// As resize_large() for a block of a heap. Inside a SlowScope that is not nested.
void* resize_large_in_heap(Run* run, std::uint64_t start, std::size_t bytes);

}  // namespace brimful::alloc
