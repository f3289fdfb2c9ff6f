// SPDX-License-Identifier: MIT
//
// The functions that a compiler's thread-sanitizer instrumentation calls, as the ears of traffic.h. Only the library is
// compiled that way; this file and the rest of the program are not. No sanitizer is linked.
//
// The interface is that of compiler-rt's tsan_interface.h and tsan_interface_atomic.h; of it the 128-bit
// atomics, which the library can have no use for, are left out.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "meta/header.h"
#include "traffic.h"

namespace {

using brimful::topology::traffic::access;

std::uintptr_t number(const volatile void* address) { return reinterpret_cast<std::uintptr_t>(address); }

const bool hooked = [] {
  brimful::topology::traffic::enable();
  return true;
}();

// A store of 0 by exchange unlocks, a change from 0 to 1 locks: no other word of the library does that under a lock's
// address.
void see_unlock(const volatile void* address) { brimful::topology::traffic::released(number(address)); }
void see_lock(const volatile void* address) { brimful::topology::traffic::acquired(number(address)); }

}  // namespace

// The instrumented code sees the strongest order: it runs on one thread.
#define ACCESS(bytes)                                                                   \
  void __tsan_read##bytes(void* p) { access(number(p), bytes, false); }                 \
  void __tsan_write##bytes(void* p) { access(number(p), bytes, true); }                 \
  void __tsan_unaligned_read##bytes(const void* p) { access(number(p), bytes, false); } \
  void __tsan_unaligned_write##bytes(void* p) { access(number(p), bytes, true); }

#define ATOMIC(bits, type)                                              \
  type __tsan_atomic##bits##_load(const volatile type* p, int) {        \
    access(number(p), sizeof(type), false);                             \
    return *p;                                                          \
  }                                                                     \
  void __tsan_atomic##bits##_store(volatile type* p, type value, int) { \
    access(number(p), sizeof(type), true);                              \
    *p = value;                                                         \
  }

#define EXCHANGE(bits, type)                                                                                    \
  type __tsan_atomic##bits##_exchange(volatile type* p, type value, int) {                                      \
    access(number(p), sizeof(type), true);                                                                      \
    if (value == 0) see_unlock(p);                                                                              \
    const type before = *p;                                                                                     \
    *p = value;                                                                                                 \
    return before;                                                                                              \
  }                                                                                                             \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type value, int, int) {   \
    access(number(p), sizeof(type), true);                                                                      \
    if (*p != *expected) {                                                                                      \
      *expected = *p;                                                                                           \
      return 0;                                                                                                 \
    }                                                                                                           \
    if (*expected == 0 && value == 1) see_lock(p);                                                              \
    *p = value;                                                                                                 \
    return 1;                                                                                                   \
  }                                                                                                             \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type value, int a, int b) { \
    return __tsan_atomic##bits##_compare_exchange_strong(p, expected, value, a, b);                             \
  }                                                                                                             \
  type __tsan_atomic##bits##_fetch_add(volatile type* p, type value, int) {                                     \
    access(number(p), sizeof(type), true);                                                                      \
    const type before = *p;                                                                                     \
    *p = static_cast<type>(before + value);                                                                     \
    return before;                                                                                              \
  }                                                                                                             \
  type __tsan_atomic##bits##_fetch_sub(volatile type* p, type value, int) {                                     \
    access(number(p), sizeof(type), true);                                                                      \
    const type before = *p;                                                                                     \
    *p = static_cast<type>(before - value);                                                                     \
    return before;                                                                                              \
  }                                                                                                             \
  type __tsan_atomic##bits##_fetch_and(volatile type* p, type value, int) {                                     \
    access(number(p), sizeof(type), true);                                                                      \
    const type before = *p;                                                                                     \
    *p = static_cast<type>(before & value);                                                                     \
    return before;                                                                                              \
  }                                                                                                             \
  type __tsan_atomic##bits##_fetch_xor(volatile type* p, type value, int) {                                     \
    access(number(p), sizeof(type), true);                                                                      \
    const type before = *p;                                                                                     \
    *p = static_cast<type>(before ^ value);                                                                     \
    return before;                                                                                              \
  }                                                                                                             \
  type __tsan_atomic##bits##_fetch_or(volatile type* p, type value, int) {                                      \
    access(number(p), sizeof(type), true);                                                                      \
    const type before = *p;                                                                                     \
    *p = static_cast<type>(before | value);                                                                     \
    return before;                                                                                              \
  }

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void* p, std::size_t bytes) { access(number(p), bytes, false); }
void __tsan_write_range(void* p, std::size_t bytes) { access(number(p), bytes, true); }
ATOMIC(8, std::uint8_t)
ATOMIC(16, std::uint16_t)
ATOMIC(32, std::uint32_t)
ATOMIC(64, std::uint64_t)
EXCHANGE(8, std::uint8_t)
EXCHANGE(16, std::uint16_t)
EXCHANGE(32, std::uint32_t)
EXCHANGE(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}

// The linker gives these the library's calls (--wrap): functions of libc are not instrumented.
void* __real_memset(void* to, int value, std::size_t bytes);
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  if (bytes != 0) access(number(to), bytes, true);
  return __real_memset(to, value, bytes);
}
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) {
    access(number(from), bytes, false);
    access(number(to), bytes, true);
  }
  return __real_memcpy(to, from, bytes);
}

// slots::make_slab(), to know what a slab's lines are.
brimful::Slab* __real__ZN7brimful5slots9make_slabEhjNS0_8ExpectedE(brimful::ClassId size_class, std::uint32_t owner,
                                                                   int expected);
brimful::Slab* __wrap__ZN7brimful5slots9make_slabEhjNS0_8ExpectedE(brimful::ClassId size_class, std::uint32_t owner,
                                                                   int expected) {
  brimful::Slab* slab = __real__ZN7brimful5slots9make_slabEhjNS0_8ExpectedE(size_class, owner, expected);
  if (slab != nullptr) brimful::topology::traffic::remember_slab(number(slab), slab->groups);
  return slab;
}

}  // extern "C"
