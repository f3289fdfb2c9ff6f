// SPDX-License-Identifier: MIT
//
// The allocator under test: the brimful_* calls, and a way to make each of them wrong on purpose.
//
// A stress test that has never failed proves nothing. `--sabotage KIND` breaks the calls in one way now and
// then, and the self-test demands that the oracle ends with exit code 1 for every kind. The sabotage sits
// here, between the oracle and the library, so the oracle's code is the same in both cases.
#pragma once

#include <cstddef>

namespace brimful::stress {

enum class Sabotage {
  kNone,
  kOverlap,      // malloc hands out an object that is live already
  kDirtyCalloc,  // calloc leaves one byte that is not zero
  kTornRealloc,  // realloc loses one byte of the content
  kMisaligned,   // aligned_alloc keeps to 16 bytes only
  kScribble,     // free writes into some other live object
  kShortUsable,  // usable_size answers less than was asked for
  kLostErrno,    // free changes errno
};

inline constexpr const char* kSabotageNames[] = {"none",       "overlap",  "dirty_calloc", "torn_realloc",
                                                 "misaligned", "scribble", "short_usable", "lost_errno"};
inline constexpr size_t kSabotageCount = sizeof(kSabotageNames) / sizeof(kSabotageNames[0]);

// Set before the first call; read by all threads.
void set_sabotage(Sabotage kind);

namespace subject {
void* allocate(size_t size);
// operator new, where the library that is under test replaces it; else as allocate().
void* allocate_new(size_t size);
void* allocate_zeroed(size_t count, size_t size);
void* reallocate(void* pointer, size_t size);
void* reallocate_array(void* pointer, size_t count, size_t size);
void* allocate_aligned(size_t alignment, size_t size);
void* allocate_memalign(size_t alignment, size_t size);
int allocate_posix(void** pointer, size_t alignment, size_t size);
void release(void* pointer);
void release_sized(void* pointer, size_t size);
void release_aligned_sized(void* pointer, size_t alignment, size_t size);
size_t usable_size(void* pointer);
}  // namespace subject

}  // namespace brimful::stress
