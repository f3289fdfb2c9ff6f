// SPDX-License-Identifier: MIT
//
// Thin calls to brimful_*, with the deliberate faults of --sabotage; see subject.h.
#include "subject.h"

#include <brimful/brimful.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace brimful::stress {
namespace {

Sabotage sabotage = Sabotage::kNone;

// A fault every few hundred calls: often enough to be met within a second, rare enough that the workload
// runs.
constexpr unsigned kFaultPeriod = 500;
thread_local unsigned calls = 0;
thread_local void* previous = nullptr;  // a live object of this thread, the victim of overlap and scribble

void forget(const void* pointer) {
  if (pointer == previous) previous = nullptr;
}

bool faulty(Sabotage kind) { return sabotage == kind && ++calls % kFaultPeriod == 0; }

}  // namespace

void set_sabotage(Sabotage kind) { sabotage = kind; }

namespace subject {

void* allocate(size_t size) {
  if (size <= 64 && previous != nullptr && faulty(Sabotage::kOverlap)) return previous;
  void* pointer = brimful_malloc(size);
  if (sabotage != Sabotage::kNone && size >= 64) previous = pointer;
  return pointer;
}

void* allocate_new(size_t size) {
  static void* (*const volatile standard)(size_t) = &std::malloc;
  static void* (*const volatile ours)(size_t) = &brimful_malloc;
  return standard == ours ? ::operator new(size) : allocate(size);
}

void* allocate_zeroed(size_t count, size_t size) {
  void* pointer = brimful_calloc(count, size);
  const size_t total = count * size;
  if (pointer != nullptr && total > 0 && faulty(Sabotage::kDirtyCalloc)) static_cast<char*>(pointer)[total - 1] = 1;
  return pointer;
}

void* reallocate(void* pointer, size_t size) {
  forget(pointer);
  void* moved = brimful_realloc(pointer, size);
  if (moved != nullptr && size > 0 && faulty(Sabotage::kTornRealloc)) static_cast<char*>(moved)[0] ^= 0x40;
  return moved;
}

void* reallocate_array(void* pointer, size_t count, size_t size) {
  forget(pointer);
  return brimful_reallocarray(pointer, count, size);
}

void* allocate_aligned(size_t alignment, size_t size) {
  if (alignment > 16 && faulty(Sabotage::kMisaligned)) {
    void* pointer = brimful_aligned_alloc(alignment, size + 16);
    return pointer == nullptr ? nullptr : static_cast<char*>(pointer) + 16;
  }
  return brimful_aligned_alloc(alignment, size);
}

void* allocate_memalign(size_t alignment, size_t size) { return brimful_memalign(alignment, size); }

int allocate_posix(void** pointer, size_t alignment, size_t size) {
  return brimful_posix_memalign(pointer, alignment, size);
}

void release(void* pointer) {
  forget(pointer);
  if (previous != nullptr && faulty(Sabotage::kScribble)) {
    std::memset(previous, 0x5A, 16);
  }
  brimful_free(pointer);
  if (faulty(Sabotage::kLostErrno)) errno = 4711;
}

void release_sized(void* pointer, size_t size) {
  forget(pointer);
  brimful_free_sized(pointer, size);
}

void release_aligned_sized(void* pointer, size_t alignment, size_t size) {
  forget(pointer);
  brimful_free_aligned_sized(pointer, alignment, size);
}

size_t usable_size(void* pointer) {
  const size_t usable = brimful_usable_size(pointer);
  return faulty(Sabotage::kShortUsable) ? 0 : usable;
}

}  // namespace subject

}  // namespace brimful::stress
