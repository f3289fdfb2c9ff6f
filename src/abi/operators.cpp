// SPDX-License-Identifier: MIT
//
// C++ operator new and delete beyond the plain ones (which are labels on the fast paths, arch/): failure by new-handler
// and bad_alloc, nothrow, aligned and sized forms. [new.delete] of the C++ standard.
//
// This file alone is compiled with exceptions: a new-handler may throw, and the nothrow forms turn that into nullptr.
// libstdc++ is not linked: a C program must not load it for our sake. Its two functions that we need are weak, and
// where they are absent (libstdc++ came later, by dlopen) they are looked up when memory has run out.
#include <dlfcn.h>
#include <errno.h>

#include <cstddef>
#include <new>

#include "alloc/allocate.h"
#include "arch/sequences.h"
#include "brimful/brimful.h"
#include "os/report.h"

extern "C" {
__attribute__((weak)) std::new_handler _ZSt15get_new_handlerv();
__attribute__((weak)) void _ZSt17__throw_bad_allocv();
}

// The dynamic linker is weak, too: a static program should not get it for our sake.
extern "C" __attribute__((weak)) void* weak_dlopen(const char* file, int mode) asm("dlopen");
extern "C" __attribute__((weak)) void* weak_dlsym(void* handle, const char* name) asm("dlsym");

// What the compiler calls for try and catch, weak for the same reason.
asm(".weak __gxx_personality_v0, __cxa_begin_catch, __cxa_end_catch, _ZSt9terminatev");

namespace {

using GetHandler = std::new_handler (*)();
using ThrowBadAlloc = void (*)();

template <class Function>
Function find(Function linked, const char* name) {
  if (linked != nullptr) return linked;
  if (weak_dlopen == nullptr || weak_dlsym == nullptr) return nullptr;
  void* library = weak_dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Function>(library != nullptr ? weak_dlsym(library, name) : nullptr);
}

// Calls the new-handler; false when there is none.
bool handler_made_room() {
  const GetHandler get = find(&_ZSt15get_new_handlerv, "_ZSt15get_new_handlerv");
  const std::new_handler handler = get != nullptr ? get() : nullptr;
  if (handler == nullptr) return false;
  handler();
  return true;
}

[[noreturn]] void throw_bad_alloc(std::size_t bytes) {
  const ThrowBadAlloc thrower = find(&_ZSt17__throw_bad_allocv, "_ZSt17__throw_bad_allocv");
  if (thrower != nullptr) thrower();
  brimful::os::report_and_abort(brimful::Line() << "out of memory: operator new(" << std::uint64_t{bytes}
                                                << ") failed, and there is no C++ run time to throw bad_alloc");
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* block = brimful::alloc::allocate_aligned(alignment, bytes);
  while (block == nullptr) {
    if (!handler_made_room()) throw_bad_alloc(bytes);
    block = brimful::alloc::allocate_aligned(alignment, bytes);
  }
  return block;
}

void* allocate_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  void* block = brimful::alloc::allocate_aligned(alignment, bytes);
  if (block != nullptr) return block;
  try {
    while (block == nullptr && handler_made_room()) block = brimful::alloc::allocate_aligned(alignment, bytes);
    return block;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

// Where the fast path of operator new goes when it misses.
extern "C" void* brimful::arch::brimful_new_slow(std::size_t bytes) {
  void* block = brimful_malloc_slow(bytes);
  return block != nullptr ? block : allocate_or_throw(bytes, 1);
}

extern "C" void* brimful::arch::brimful_new_aligned_slow(std::size_t bytes, std::size_t alignment) {
  return allocate_or_throw(bytes, alignment);
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes, 1); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, static_cast<std::size_t>(alignment));
}

void operator delete(void* pointer, std::size_t bytes, std::align_val_t alignment) noexcept {
  brimful_free_aligned_sized(pointer, static_cast<std::size_t>(alignment), bytes);
}
void operator delete[](void* pointer, std::size_t bytes, std::align_val_t alignment) noexcept {
  brimful_free_aligned_sized(pointer, static_cast<std::size_t>(alignment), bytes);
}
