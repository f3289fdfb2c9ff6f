// SPDX-License-Identifier: MIT
//
// The standard names: C, POSIX, glibc. Most of them are labels on the fast paths (arch/); what is here has work of its own.
// Present in builds that replace the system's allocator only.
#include <errno.h>
#include <malloc.h>

#include <cstddef>

#include "base/units.h"
#include "brimful/brimful.h"
#include "os/calls.h"

#pragma GCC visibility push(default)
extern "C" {

void* reallocarray(void* pointer, std::size_t count, std::size_t bytes) noexcept {
  return brimful_reallocarray(pointer, count, bytes);
}
void* valloc(std::size_t bytes) noexcept { return brimful_memalign(brimful::os::page_bytes(), bytes); }
void* pvalloc(std::size_t bytes) noexcept {
  const std::size_t page = brimful::os::page_bytes();
  if (bytes > PTRDIFF_MAX) {
    errno = ENOMEM;
    return nullptr;
  }
  return brimful_memalign(page, brimful::round_up(bytes, page));
}
void free_aligned_sized(void* pointer, std::size_t alignment, std::size_t bytes) {
  brimful_free_aligned_sized(pointer, alignment, bytes);
}

void* __libc_reallocarray(void* pointer, std::size_t count, std::size_t bytes) {
  return brimful_reallocarray(pointer, count, bytes);
}
void* __libc_valloc(std::size_t bytes) { return valloc(bytes); }
void* __libc_pvalloc(std::size_t bytes) { return pvalloc(bytes); }

}  // extern "C"

#pragma GCC visibility pop
