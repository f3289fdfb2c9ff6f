// SPDX-License-Identifier: MIT
//
// The brimful_* names of include/brimful/brimful.h: the allocation calls with C's conventions (errno, special
// arguments). Most of the names are the fast paths themselves (arch/), and what
// is here is where they go when the arguments are unusual.
#include <errno.h>

#include <bit>
#include <cstddef>

#include "alloc/allocate.h"
#include "alloc/large.h"
#include "arch/sequences.h"
#include "base/units.h"
#include "brimful/brimful.h"
#include "config/build.h"
#include "os/calls.h"
#include "pages/page_heap.h"

namespace {

int (*user_hook)(std::size_t) = nullptr;

bool call_user_hook(std::size_t bytes) { return user_hook != nullptr && user_hook(bytes) != 0; }

}  // namespace

extern "C" {

void* brimful::arch::brimful_calloc_slow(std::size_t count, std::size_t bytes) {
  return brimful::alloc::or_errno(brimful::alloc::allocate_zeroed(count, bytes));
}

void* brimful_reallocarray(void* pointer, std::size_t count, std::size_t bytes) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) return brimful::alloc::or_errno(nullptr);
  return brimful_realloc(pointer, total);
}

void* brimful::arch::brimful_aligned_alloc_slow(std::size_t alignment, std::size_t bytes) {
  if (!brimful::is_power_of_two(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return brimful::alloc::or_errno(brimful::alloc::allocate_aligned(alignment, bytes));
}

void* brimful::arch::brimful_memalign_slow(std::size_t alignment, std::size_t bytes) {
  // As glibc: above 2^63 no power of two is left to round up to; up to there it is the memory that is missing.
  constexpr std::size_t kMostAlignment = SIZE_MAX / 2 + 1;
  if (alignment > kMostAlignment) {
    errno = EINVAL;
    return nullptr;
  }
  return brimful::alloc::or_errno(brimful::alloc::allocate_aligned(std::bit_ceil(alignment), bytes));
}

int brimful::arch::brimful_posix_memalign_slow(void** result, std::size_t alignment, std::size_t bytes) {
  if (!brimful::is_power_of_two(alignment) || alignment < sizeof(void*)) return EINVAL;
  // POSIX leaves open what becomes of errno. Programs that look there have glibc in mind, which says the same in both.
  void* block = brimful::alloc::or_errno(brimful::alloc::allocate_aligned(alignment, bytes));
  if (block == nullptr) return ENOMEM;
  *result = block;
  return 0;
}

void brimful_free_aligned_sized(void* pointer, std::size_t alignment, std::size_t bytes) {
  if (pointer == nullptr) return;
  if (brimful::alloc::check_size(pointer, bytes, alignment)) brimful_free(pointer);
}

const char* brimful_version() { return brimful::config::kVersion; }

void brimful_set_exhaustion_hook(int (*hook)(std::size_t bytes)) {
  user_hook = hook;
  brimful::pages::exhaustion_hook = hook != nullptr ? call_user_hook : nullptr;
}

}  // extern "C"
