// SPDX-License-Identifier: MIT
//
// The names that jemalloc adds to C's, all of them: mallctl() and its like, the calls with flags, malloc_stats_print(). A
// program that is linked with jemalloc and preloads us otherwise gets malloc from here and these from there: figures of a
// heap that nobody uses, and blocks of one heap given to the free() of the other. Source: jemalloc(3).
//
// That they are there must not make a program take us for jemalloc and rely on what we are not. What it can find out
// with has no answer: thread.allocatedp, arenas.create and extent hooks are ENOENT (docs/design/0037).
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "alloc/allocate.h"
#include "brimful/brimful.h"
#include "control/names.h"
#include "os/errno_guard.h"
#include "os/write.h"
#include "stats/output.h"
#include "stats/print.h"

namespace {

using brimful::control::Name;

// Flags of the calls with an x. A cache or an arena (bits 8 to 31) can be named; there is one heap for all of them.
constexpr int kAlignmentBits = 0x3f;
constexpr int kZero = 0x40;

std::size_t alignment_of(int flags) { return std::size_t{1} << (flags & kAlignmentBits); }
bool is_zero(int flags) { return (flags & kZero) != 0; }

// With kZero all that is usable is zero, so that a block that grows is zero behind its former usable size.
void* allocate(std::size_t bytes, int flags) {
  const std::size_t alignment = alignment_of(flags);
  if (!is_zero(flags)) return brimful::alloc::allocate_aligned(alignment, bytes);
  const std::size_t usable = brimful::alloc::usable_bytes_of_request(alignment, bytes);
  if (usable == 0) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return brimful::alloc::allocate_zeroed(1, usable);
  void* block = brimful::alloc::allocate_aligned(alignment, usable);
  return block != nullptr ? memset(block, 0, usable) : nullptr;
}

// The order in which a program that reads and writes at once means it.
int control(const Name& name, void* old_value, std::size_t* old_size, const void* value, std::size_t size) {
  const bool reads = old_value != nullptr && old_size != nullptr;
  const bool writes = value != nullptr || size != 0;
  if (brimful::control::is_action(name)) {
    if (old_value != nullptr || old_size != nullptr) return EPERM;
    return brimful::control::set(name, value, size);
  }
  if (writes && brimful::control::is_written_first(name)) {
    if (const int fault = brimful::control::set(name, value, size)) return fault;
    return reads ? brimful::control::get(name, old_value, old_size) : 0;
  }
  // One buffer may be both.
  std::uint64_t wanted = 0;
  if (value != nullptr) memcpy(&wanted, value, std::min(size, sizeof wanted));
  if (reads) {
    if (const int fault = brimful::control::get(name, old_value, old_size)) return fault;
  }
  return writes ? brimful::control::set(name, value != nullptr ? &wanted : nullptr, size) : 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int mallctl(const char* name, void* old_value, std::size_t* old_size, void* value, std::size_t size) {
  const brimful::os::ErrnoGuard guard;
  Name found = {};
  return brimful::control::find(name, found) ? control(found, old_value, old_size, value, size) : ENOENT;
}

int mallctlnametomib(const char* name, std::size_t* mib, std::size_t* length) {
  return brimful::control::to_mib(name, mib, length);
}

int mallctlbymib(const std::size_t* mib, std::size_t length, void* old_value, std::size_t* old_size, void* value,
                 std::size_t size) {
  const brimful::os::ErrnoGuard guard;
  Name found = {};
  return brimful::control::from_mib(mib, length, found) ? control(found, old_value, old_size, value, size) : ENOENT;
}

// Our statistics, as tables, or with "J" in the options as JSON (ours); in one piece. No function: on standard error.
void malloc_stats_print(void (*write)(void* context, const char* text), void* context, const char* options) {
  const brimful::os::ErrnoGuard guard;
  brimful::stats::Output output;
  const bool is_json = options != nullptr && strchr(options, 'J') != nullptr;
  if (brimful::stats::print(output, is_json ? brimful::stats::Format::kJson : brimful::stats::Format::kText) != 0)
    return;
  if (write == nullptr) {
    brimful::os::write_whole(STDERR_FILENO, output.data(), output.size());
  } else {
    write(context, output.data());
  }
}

void* mallocx(std::size_t bytes, int flags) { return allocate(bytes, flags); }

void* rallocx(void* pointer, std::size_t bytes, int flags) {
  const std::size_t alignment = alignment_of(flags);
  const std::size_t before = brimful::alloc::usable_bytes(pointer, "rallocx");
  const std::size_t wanted = is_zero(flags) ? brimful::alloc::usable_bytes_of_request(alignment, bytes) : bytes;
  if (wanted == 0) return nullptr;
  void* block = pointer;
  if (alignment <= alignof(std::max_align_t)) {
    block = brimful::alloc::reallocate(pointer, wanted);
    if (block == nullptr || block == brimful::alloc::kMisused) return nullptr;
  } else if (reinterpret_cast<std::uintptr_t>(pointer) % alignment != 0 || before < wanted || before / 2 >= wanted) {
    block = brimful::alloc::allocate_aligned(alignment, wanted);
    if (block == nullptr) return nullptr;
    memcpy(block, pointer, std::min(before, bytes));
    brimful_free(pointer);
  }
  if (is_zero(flags)) {
    const std::size_t usable = brimful::alloc::usable_bytes(block, "rallocx");
    if (usable > before) memset(static_cast<char*>(block) + before, 0, usable - before);
  }
  return block;
}

// In place or not at all, and never more than there is anyway: the answer says how much that is.
std::size_t xallocx(void* pointer, std::size_t /*bytes*/, std::size_t /*extra*/, int /*flags*/) {
  return brimful::alloc::usable_bytes(pointer, "xallocx");
}

std::size_t sallocx(const void* pointer, int /*flags*/) { return brimful::alloc::usable_bytes(pointer, "sallocx"); }

void dallocx(void* pointer, int /*flags*/) { brimful_free(pointer); }

// Any size from what was asked for to what is usable is right, so no size proves a mistake below that.
void sdallocx(void* pointer, std::size_t /*bytes*/, int /*flags*/) { brimful_free(pointer); }

std::size_t nallocx(std::size_t bytes, int flags) {
  return brimful::alloc::usable_bytes_of_request(alignment_of(flags), bytes);
}

}  // extern "C"
#pragma GCC visibility pop
