// SPDX-License-Identifier: MIT
//
// The whole test framework of tests/abi: one header, C and C++, no dependency but libc.
//
// A program calls begin(), then RUN(function) for each test, and returns finish(). A test's name is a
// sentence written with underscores. A failed CHECK prints file, line, the expression and the values, and the
// test goes on.
//
// Two rules shape this header:
//   1. Messages go out through write(2) from a buffer on the stack. The programs test malloc, so the
//   framework
//      must be able to speak from a signal handler, after fork, and when no memory is left.
//   2. The compiler knows malloc and free and likes to delete pairs of them, or to warn about sizes it can
//   see to
//      be impossible. keep() and opaque() hide a pointer or a number from it.
//
// The same program runs under glibc's own malloc (there it proves that the test itself is right) and under
// brimful: preloaded, linked statically, and as static-pie. BRIMFUL_EXPECT=1 in the environment makes it fail
// when the allocator in use is not brimful, so a run that silently tested glibc can't pass for one that
// tested the library.
#ifndef BRIMFUL_TESTS_ABI_CHECK_H_
#define BRIMFUL_TESTS_ABI_CHECK_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#define CHECK_NOTHROW noexcept
#else
#define CHECK_NOTHROW
#endif

// Symbols that glibc 2.36 lacks or hides; weak, so that the same program links and runs under plain glibc.
extern const char* brimful_version(void) __attribute__((weak));
extern void* brimful_malloc(size_t) CHECK_NOTHROW __attribute__((weak));
extern void free_sized(void*, size_t) CHECK_NOTHROW __attribute__((weak));
extern void free_aligned_sized(void*, size_t, size_t) CHECK_NOTHROW __attribute__((weak));
extern void cfree(void*) CHECK_NOTHROW __attribute__((weak));

#ifdef __cplusplus
}
#endif

#define CHECK_UNUSED __attribute__((unused))

static int check_failures;       // failed CHECKs of the whole program; any thread, atomic
static int check_passed_tests;   // main thread only
static int check_failed_tests;   // main thread only
static int check_skipped_tests;  // main thread only
static const char* volatile check_current_test = "start-up";
static const char* check_skip_reason;

// Prints one line to standard output without allocating.
__attribute__((format(printf, 1, 2))) CHECK_UNUSED static void say(const char* format, ...) {
  char line[768];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  line[length] = '\n';
  ssize_t written = write(STDOUT_FILENO, line, (size_t)length + 1);
  (void)written;
}

// Counts a failure; only the first 25 are printed, because a broken heap fails in every iteration of a loop.
#define CHECK_FAIL(...)                                                          \
  do {                                                                           \
    int check_number = __atomic_add_fetch(&check_failures, 1, __ATOMIC_SEQ_CST); \
    int check_errno = errno;                                                     \
    if (check_number <= 25) {                                                    \
      say("%s:%d: in %s", __FILE__, __LINE__, check_current_test);               \
      say("    " __VA_ARGS__);                                                   \
    }                                                                            \
    errno = check_errno;                                                         \
  } while (0)

#define CHECK(condition)                                    \
  do {                                                      \
    if (!(condition)) CHECK_FAIL("failed: %s", #condition); \
  } while (0)

// A CHECK with a message that shows the values of this iteration.
#define CHECK_MSG(condition, ...)                        \
  do {                                                   \
    if (!(condition)) {                                  \
      CHECK_FAIL("failed: %s", #condition);              \
      if (check_failures <= 25) say("    " __VA_ARGS__); \
    }                                                    \
  } while (0)

#define CHECK_COMPARE(left, op, right)                                                                \
  do {                                                                                                \
    long long check_left = (long long)(left), check_right = (long long)(right);                       \
    if (!(check_left op check_right))                                                                 \
      CHECK_FAIL("failed: %s %s %s: %lld against %lld", #left, #op, #right, check_left, check_right); \
  } while (0)
#define CHECK_EQ(left, right) CHECK_COMPARE(left, ==, right)
#define CHECK_LE(left, right) CHECK_COMPARE(left, <=, right)
#define CHECK_GE(left, right) CHECK_COMPARE(left, >=, right)

#define CHECK_PTR_EQ(left, right)                                                            \
  do {                                                                                       \
    const void *check_left = (const void*)(left), *check_right = (const void*)(right);       \
    if (check_left != check_right)                                                           \
      CHECK_FAIL("failed: %s == %s: %p against %p", #left, #right, check_left, check_right); \
  } while (0)

// Use inside a test and then return: the test counts as skipped, and the reason is printed.
#define SKIP(reason) (check_skip_reason = (reason))

#define RUN(test)                                                             \
  do {                                                                        \
    int check_before = __atomic_load_n(&check_failures, __ATOMIC_SEQ_CST);    \
    check_current_test = #test;                                               \
    check_skip_reason = NULL;                                                 \
    double check_started = seconds_now();                                     \
    test();                                                                   \
    double check_took = seconds_now() - check_started;                        \
    if (__atomic_load_n(&check_failures, __ATOMIC_SEQ_CST) != check_before) { \
      ++check_failed_tests;                                                   \
      say("FAIL  %s (%.2f s)", #test, check_took);                            \
    } else if (check_skip_reason != NULL) {                                   \
      ++check_skipped_tests;                                                  \
      say("skip  %s: %s", #test, check_skip_reason);                          \
    } else {                                                                  \
      ++check_passed_tests;                                                   \
      say("ok    %s (%.2f s)", #test, check_took);                            \
    }                                                                         \
  } while (0)

CHECK_UNUSED static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

CHECK_UNUSED static void sleep_ms(long ms) {
  struct timespec wait = {ms / 1000, (ms % 1000) * 1000000L};
  nanosleep(&wait, NULL);
}

// Hides a pointer from the optimiser, which must then assume that the memory is read and written.
CHECK_UNUSED static inline void* keep(void* pointer) {
  __asm__ volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

// Hides a number from the optimiser, so that it can't warn about, or fold, an impossible size.
CHECK_UNUSED static inline size_t opaque(size_t value) {
  __asm__ volatile("" : "+r"(value));
  return value;
}

// In C every plain call goes through keep(): a compiler may otherwise drop the writes that come right before
// a free, and with them the dirt, the patterns and the page touches that these tests are about. A use without
// parentheses (the address of malloc) is not a macro call and still names the function. C++ programs call
// keep() themselves, because a macro named free would reach into the standard headers.
#ifndef __cplusplus
#define malloc(size) keep((malloc)(size))
#define free(pointer) ((free)(keep(pointer)))
#define realloc(pointer, size) keep((realloc)(keep(pointer), (size)))
#define calloc(count, size) keep((calloc)((count), (size)))
#endif

// Small, fast, reproducible random numbers (splitmix64).
CHECK_UNUSED static inline uint64_t next_random(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Fills [0, size) with a pattern that depends on the seed and the position, so that a shifted copy shows.
CHECK_UNUSED static void fill_pattern(void* memory, size_t size, uint64_t seed) {
  unsigned char* bytes = (unsigned char*)memory;
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t word = (seed + i) * 0x9e3779b97f4a7c15u;
    memcpy(bytes + i, &word, 8);
  }
  for (; i < size; ++i) bytes[i] = (unsigned char)(seed + i * 7);
}

// Returns the first position in [0, size) whose eight bytes differ from the pattern, or size when all is
// intact. The last up to 7 bytes are compared only when size is the size that was filled.
CHECK_UNUSED static size_t find_damage(const void* memory, size_t size, size_t filled_size, uint64_t seed) {
  const unsigned char* bytes = (const unsigned char*)memory;
  size_t words = filled_size & ~(size_t)7, i = 0;
  for (; i + 8 <= size && i + 8 <= words; i += 8) {
    uint64_t word = (seed + i) * 0x9e3779b97f4a7c15u, found;
    memcpy(&found, bytes + i, 8);
    if (found != word) return i;
  }
  if (size < words) return size;
  for (i = words; i < size && i < filled_size; ++i)
    if (bytes[i] != (unsigned char)(seed + i * 7)) return i;
  return size;
}

// Returns the position of the first byte that is not zero, or size.
CHECK_UNUSED static size_t find_nonzero(const void* memory, size_t size) {
  const unsigned char* bytes = (const unsigned char*)memory;
  if (size == 0) return 0;
  if (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0) return size;
  size_t i = 0;
  while (i < size && bytes[i] == 0) ++i;
  return i;
}

// Reads a file of /proc in one buffer without allocating; returns its length (buffer is terminated), or -1.
CHECK_UNUSED static ssize_t read_proc_file(const char* path, char* buffer, size_t capacity) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  size_t length = 0;
  ssize_t got;
  while (length + 1 < capacity && (got = read(descriptor, buffer + length, capacity - 1 - length)) > 0)
    length += (size_t)got;
  close(descriptor);
  buffer[length] = '\0';
  return (ssize_t)length;
}

// Resident KiB of this process's own memory, exactly where the kernel can say so (smaps_rollup, from 4.14 on): statm lags
// behind by per-CPU batches. Pages of files are left out: how many are mapped around a fault depends on what the
// system's cache has (with large folios libc's share alone differs by some hundred KiB from one machine to the next).
CHECK_UNUSED static long resident_kib(void) {
  char text[4096];
  if (read_proc_file("/proc/self/smaps_rollup", text, sizeof text) > 0) {
    const char* line = strstr(text, "\nAnonymous:");
    if (line != NULL) return atol(line + 11);
  }
  long pages = 0;
  long of_files = 0;
  if (read_proc_file("/proc/self/statm", text, sizeof text) <= 0) return -1;
  if (sscanf(text, "%*d %ld %ld", &pages, &of_files) != 2) return -1;
  return (pages - of_files) * (sysconf(_SC_PAGESIZE) / 1024);
}

// Copies the path (or [name]) of the mapping that holds an address; true when there is such a mapping.
CHECK_UNUSED static int mapping_of(const void* address, char* name, size_t capacity) {
  static char text[1 << 20];
  if (read_proc_file("/proc/self/maps", text, sizeof text) <= 0) return 0;
  for (char* line = text; line != NULL && *line != '\0';) {
    char* end = strchr(line, '\n');
    if (end != NULL) *end = '\0';
    char* rest;
    uintptr_t low = (uintptr_t)strtoull(line, &rest, 16);
    uintptr_t high = (uintptr_t)strtoull(rest + 1, NULL, 16);
    if ((uintptr_t)address >= low && (uintptr_t)address < high) {
      const char* path = strpbrk(line, "/[");
      snprintf(name, capacity, "%s", path == NULL ? "" : path);
      return 1;
    }
    line = end == NULL ? NULL : end + 1;
  }
  return 0;
}

// True when malloc of this process is brimful's: it is linked in (weak symbols resolve, or the heap's
// mappings carry its name), or malloc's own code lies in libbrimful.so. Cached, because some tests ask in a
// loop.
CHECK_UNUSED static int is_brimful(void) {
  static int answer = -1;
  if (answer >= 0) return answer;
  char name[512] = "";
  void* (*code)(size_t) = malloc;
  const void* address;
  memcpy(&address, &code, sizeof address);
  answer = mapping_of(keep((void*)(uintptr_t)address), name, sizeof name) && strstr(name, "libbrimful") != NULL;
  // A preloaded library is no proof that it is the one that is called, but in a static program there is no
  // other.
  int is_static = strstr(name, ".so") == NULL;
  if (!answer && is_static && (brimful_version != NULL || brimful_malloc != NULL)) answer = 1;
  if (!answer && is_static) {
    void* object = keep(malloc(64));
    if (mapping_of(object, name, sizeof name)) answer = strstr(name, "brimful") != NULL;
    free(object);
  }
  return answer;
}

CHECK_UNUSED static void check_deadline_reached(int signal_number) {
  (void)signal_number;
  say("FAIL  %s: still running at the deadline", check_current_test);
  _exit(99);
}

// Ends the process with a message after so many seconds: a hang is a failure with a name, not a stuck run.
CHECK_UNUSED static void set_deadline(unsigned seconds) {
  signal(SIGALRM, check_deadline_reached);
  alarm(seconds);
}

CHECK_UNUSED static void require_brimful(void) {
  const char* expect = getenv("BRIMFUL_EXPECT");
  if (expect == NULL || strcmp(expect, "1") != 0 || is_brimful()) return;
  say("FAIL  brimful is expected (BRIMFUL_EXPECT=1), but malloc of this process is somebody else's");
  _exit(98);
}

CHECK_UNUSED static void begin(unsigned deadline_seconds) {
  require_brimful();
  set_deadline(deadline_seconds);
}

CHECK_UNUSED static int finish(void) {
  say("%d passed, %d failed, %d skipped", check_passed_tests, check_failed_tests, check_skipped_tests);
  return check_failed_tests == 0 && check_failures == 0 ? 0 : 1;
}

#endif  // BRIMFUL_TESTS_ABI_CHECK_H_
