// SPDX-License-Identifier: MIT
//
// What the compiler calls at each access (-fsanitize=thread; gcc's tsan.def), and calls of the C library that write memory, wait
// or end the process (linked with --wrap). Compiled without that option.
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fibers.h"

namespace brimful::weak {
namespace {

std::uintptr_t address_of(const volatile void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// Our own accesses, and those of a thread that the explorer does not run, are what they are.
bool is_modelled() { return !is_busy && explorer().is_active(); }

void plain(std::uintptr_t site, const volatile void* pointer, std::size_t bytes, bool is_write) {
  if (is_busy) return;
  const Busy busy;
  explorer().access(site, address_of(pointer), bytes, is_write);
}

void outside(const volatile void* pointer, std::size_t bytes) {
  if (is_busy) return;
  const Busy busy;
  explorer().log(address_of(pointer), bytes);
}

}  // namespace
}  // namespace brimful::weak

using namespace brimful::weak;
#define SITE reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

#define PLAIN(bytes)                                                           \
  void __tsan_read##bytes(void* p) { plain(SITE, p, bytes, false); }           \
  void __tsan_write##bytes(void* p) { plain(SITE, p, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* p) { plain(SITE, p, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* p) { plain(SITE, p, bytes, true); } \
  void __tsan_volatile_read##bytes(void* p) { plain(SITE, p, bytes, false); }  \
  void __tsan_volatile_write##bytes(void* p) { plain(SITE, p, bytes, true); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
void __tsan_read_range(void* p, std::size_t bytes) { plain(SITE, p, bytes, false); }
void __tsan_write_range(void* p, std::size_t bytes) { plain(SITE, p, bytes, true); }
void __tsan_vptr_update(void** p, void*) { plain(SITE, p, 8, true); }
void __tsan_vptr_read(void** p) { plain(SITE, p, 8, false); }

#define MODIFY(bits, type, name, expression)                                                                   \
  type __tsan_atomic##bits##_##name(volatile type* p, type v, int order) {                                     \
    if (!is_modelled()) {                                                                                      \
      outside(p, bits / 8);                                                                                    \
      const type b = *p;                                                                                       \
      *p = static_cast<type>(expression);                                                                      \
      return b;                                                                                                \
    }                                                                                                          \
    const Busy busy;                                                                                           \
    return static_cast<type>(explorer().modify(SITE, address_of(p), bits / 8, static_cast<Order>(order),       \
                                               [v](std::uint64_t b) -> std::uint64_t { return expression; })); \
  }
#define ATOMIC(bits, type)                                                                                      \
  type __tsan_atomic##bits##_load(const volatile type* p, int order) {                                          \
    if (!is_modelled()) return *p;                                                                              \
    const Busy busy;                                                                                            \
    return static_cast<type>(explorer().load(SITE, address_of(p), bits / 8, static_cast<Order>(order)));        \
  }                                                                                                             \
  void __tsan_atomic##bits##_store(volatile type* p, type v, int order) {                                       \
    if (!is_modelled()) {                                                                                       \
      outside(p, bits / 8);                                                                                     \
      *p = v;                                                                                                   \
      return;                                                                                                   \
    }                                                                                                           \
    const Busy busy;                                                                                            \
    explorer().store(SITE, address_of(p), bits / 8, static_cast<std::uint64_t>(v), static_cast<Order>(order));  \
  }                                                                                                             \
  MODIFY(bits, type, exchange, (static_cast<void>(b), v))                                                       \
  MODIFY(bits, type, fetch_add, b + v)                                                                          \
  MODIFY(bits, type, fetch_sub, b - v)                                                                          \
  MODIFY(bits, type, fetch_and, b& v)                                                                           \
  MODIFY(bits, type, fetch_or, b | v)                                                                           \
  MODIFY(bits, type, fetch_xor, b ^ v)                                                                          \
  static int compare_exchange##bits(std::uintptr_t site, volatile type* p, type* expected, type v, int success, \
                                    int failure) {                                                              \
    if (!is_modelled()) {                                                                                       \
      outside(p, bits / 8);                                                                                     \
      const type b = *p;                                                                                        \
      if (b == *expected) {                                                                                     \
        *p = v;                                                                                                 \
        return 1;                                                                                               \
      }                                                                                                         \
      *expected = b;                                                                                            \
      return 0;                                                                                                 \
    }                                                                                                           \
    const Busy busy;                                                                                            \
    std::uint64_t found = *expected;                                                                            \
    const bool done = explorer().compare_exchange(site, address_of(p), bits / 8, found, v,                      \
                                                  static_cast<Order>(success), static_cast<Order>(failure));    \
    *expected = static_cast<type>(found);                                                                       \
    return done ? 1 : 0;                                                                                        \
  }                                                                                                             \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* e, type v, int s, int f) {          \
    return compare_exchange##bits(SITE, p, e, v, s, f);                                                         \
  }                                                                                                             \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* e, type v, int s, int f) {            \
    return compare_exchange##bits(SITE, p, e, v, s, f);                                                         \
  }
ATOMIC(8, unsigned char)
ATOMIC(16, unsigned short)
ATOMIC(32, unsigned int)
ATOMIC(64, unsigned long)

void __tsan_atomic_thread_fence(int order) {
  if (!is_modelled()) return;
  const Busy busy;
  explorer().fence(SITE, static_cast<Order>(order));
}
// A thread has one fiber and no signal handlers.
void __tsan_atomic_signal_fence(int) {}

// Calls of the C library that write memory or wait (linked with --wrap).
void* __real_memset(void*, int, std::size_t);
void* __real_memcpy(void*, const void*, std::size_t);
void* __real_memmove(void*, const void*, std::size_t);
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  plain(SITE, to, bytes, true);
  return __real_memset(to, value, bytes);
}
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  plain(SITE, from, bytes, false);
  plain(SITE, to, bytes, true);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  plain(SITE, from, bytes, false);
  plain(SITE, to, bytes, true);
  return __real_memmove(to, from, bytes);
}

long __real_syscall(long, ...);
long __wrap_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& one : a) one = va_arg(list, long);
  va_end(list);
  if (is_modelled()) {
    const Busy busy;
    if (number == SYS_nanosleep || number == SYS_clock_nanosleep) explorer().sleep();
    if (number == SYS_futex) {
      const auto address = static_cast<std::uintptr_t>(a[0]);
      if ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT)
        return explorer().futex_wait(address, static_cast<std::uint32_t>(a[2]));
      return explorer().futex_wake(address);
    }
  }
  return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

[[noreturn]] void __real_abort();
[[noreturn]] void __wrap_abort() {
  if (is_modelled()) {
    is_busy = true;
    explorer().leave("the library ends the process");
  }
  __real_abort();
}

}  // extern "C"
