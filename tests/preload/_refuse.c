/* SPDX-License-Identifier: MIT
 *
 * System calls that fail on demand, where the library is the caller: preloaded in front of it, this object takes the place of
 * libc's syscall(2), by which all of the library's calls go but the few of arch/system_call.h. A call from elsewhere is
 * passed on untouched: that programs survive their own failures is their affair. (strace's injection can't tell the two
 * apart, and takes some ten times as long.)
 *
 * What to refuse, and what was seen, stand in a file that the test leaves open at a fixed descriptor and that all processes
 * of a tree share, so the k-th call is the k-th of the tree and the tally outlives a crash. Nothing here allocates, takes a lock or asks
 * the environment: the first call may come from the dynamic linker.
 *
 * Built with -DCOUNT_NULLS it also counts what malloc and its like refuse: to tell a program that falls over a NULL from a
 * library that falls.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { kDescriptor = 200, kCalls = 512, kAny = -1, kMemory = -2 };
static const uint64_t kMagic = 0x6573756665726d62;

/* As tests/preload/_refusals.py writes and reads it. */
struct Shared {
  uint64_t magic;
  int64_t call;  /* its number, kAny, or kMemory: those that can be short of memory */
  uint64_t first; /* of those calls, counted from 1; 0: none */
  uint64_t last;
  int64_t error;
  _Atomic uint64_t seen;
  _Atomic uint64_t refused;
  _Atomic uint64_t nulls;
  _Atomic uint64_t counts[kCalls];
};

extern char brimful_version __attribute__((weak));
static _Atomic(struct Shared*) shared;
static struct Shared nobody_asks;

static long call_kernel(long number, long a, long b, long c, long d, long e, long f) {
  long result = number;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
}

static struct Shared* begin(void) {
  struct Shared* known = atomic_load(&shared);
  if (known != NULL) return known;
  const long result = call_kernel(SYS_mmap, 0, sizeof *known, PROT_READ | PROT_WRITE, MAP_SHARED, kDescriptor, 0);
  known = result > 0 || result < -4095 ? (struct Shared*)result : &nobody_asks;
  if (known->magic != kMagic) known = &nobody_asks;
  atomic_store(&shared, known);
  return known;
}

static int is_of_library(void* address) {
  struct dl_find_object caller, library;
  return &brimful_version != NULL && _dl_find_object(address, &caller) == 0 &&
         _dl_find_object(&brimful_version, &library) == 0 && caller.dlfo_map_start == library.dlfo_map_start;
}

/* What the kernel never refuses to a caller in its right mind. */
static int always_succeeds(long number, long operation) {
  switch (number) {
    case SYS_getpid:
    case SYS_gettid:
    case SYS_exit:
    case SYS_rt_sigprocmask:
    case SYS_sched_yield:
      return 1;
    case SYS_futex:
      return (operation & FUTEX_CMD_MASK) == FUTEX_WAKE;
    default:
      return 0;
  }
}

static int is_meant(const struct Shared* plan, long number) {
  switch (plan->call) {
    case kAny:
      return 1;
    case kMemory:
      return number == SYS_mmap || number == SYS_mprotect || number == SYS_madvise || number == SYS_mremap;
    default:
      return plan->call == number;
  }
}

static int is_refused(long number, long operation, void* caller) {
  struct Shared* plan = begin();
  if (plan == &nobody_asks || number < 0 || number >= kCalls || always_succeeds(number, operation)) return 0;
  if (!is_of_library(caller)) return 0;
  atomic_fetch_add(&plan->counts[number], 1);
  if (!is_meant(plan, number)) return 0;
  const uint64_t n = atomic_fetch_add(&plan->seen, 1) + 1;
  if (plan->first == 0 || n < plan->first || n > plan->last) return 0;
  atomic_fetch_add(&plan->refused, 1);
  return 1;
}

/* The same registers and stack as the variadic one that it replaces. */
long syscall(long number, long a, long b, long c, long d, long e, long f) {
  long result = 0;
  if (is_refused(number, b, __builtin_return_address(0))) {
    if (number == SYS_close) call_kernel(number, a, b, c, d, e, f); /* its descriptor is closed even if it fails */
    result = -begin()->error;
  } else {
    result = call_kernel(number, a, b, c, d, e, f);
  }
  if (result < 0 && result >= -4095) {
    errno = (int)-result;
    return -1;
  }
  return result;
}

#ifdef COUNT_NULLS
static void* counted(void* result) {
  struct Shared* plan = begin();
  if (result == NULL) atomic_fetch_add(&plan->nulls, 1);
  return result;
}
extern void* brimful_malloc(size_t) __attribute__((weak));
extern void* brimful_calloc(size_t, size_t) __attribute__((weak));
extern void* brimful_realloc(void*, size_t) __attribute__((weak));
extern void* brimful_aligned_alloc(size_t, size_t) __attribute__((weak));
void* malloc(size_t bytes) { return counted(brimful_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) { return counted(brimful_calloc(count, bytes)); }
void* realloc(void* block, size_t bytes) {
  void* result = brimful_realloc(block, bytes);
  return bytes == 0 ? result : counted(result);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return counted(brimful_aligned_alloc(alignment, bytes)); }
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  void* result = counted(brimful_aligned_alloc(alignment, bytes));
  if (result == NULL) return ENOMEM;
  *block = result;
  return 0;
}
#endif
