// SPDX-License-Identifier: MIT
//
// What bad input gets: one line that names the fault, the call, the pointer and, where known, the object; then abort(),
// before the call returns. Nothing here allocates or locks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/compiler.h"
#include "meta/header.h"

namespace brimful::meta {

// Object `index` of the slab was free already when `call` got it.
[[noreturn]] BRIMFUL_COLD void report_double_free(const char* call, const Slab& slab, std::uint64_t index);

// `pointer` is not the start of a live block. `call` is the function's name. `owner` is the slab or block whose memory
// holds the pointer, or nullptr; `was_used`: the pointer lies in the heap, where memory was handed out at some time.
[[noreturn]] BRIMFUL_COLD void report_bad_pointer(const char* call, std::uint64_t pointer, bool was_used,
                                                  const Header* owner);

// free_sized() or sized delete with a size of another class.
[[noreturn]] BRIMFUL_COLD void report_wrong_size(std::uint64_t pointer, std::size_t claimed, std::size_t usable);

// The program wrote behind the end of the object of `usable` bytes, `offset` bytes from there on, before free() got it.
[[noreturn]] BRIMFUL_COLD void report_overflow(std::uint64_t object, std::size_t usable, std::size_t offset);

// The program wrote to byte `offset` of the object while it was free, as was seen when malloc was to hand it out again.
[[noreturn]] BRIMFUL_COLD void report_written_when_free(std::uint64_t object, std::size_t usable, std::size_t offset);

// `pointer` is a block of a heap that was destroyed.
[[noreturn]] BRIMFUL_COLD void report_destroyed(const char* call, std::uint64_t pointer);

// `handle` is no heap: of one that was destroyed, or never of any.
[[noreturn]] BRIMFUL_COLD void report_bad_heap(const char* call, std::uint64_t handle, bool was_heap);

}  // namespace brimful::meta
