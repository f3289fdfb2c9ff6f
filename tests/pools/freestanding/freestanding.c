/* SPDX-License-Identifier: MIT
 *
 * The proof that the pools need nothing: a program without libc, without start-up code and without an operating system but
 * for two system calls, one to say what failed and one to end. It is linked with libbrimful-pools.a and -nostdlib, so a
 * symbol too many is an error of the linker; it runs a TLSF pool, a page pool and a handle pool on arrays of its own; and its
 * exit code is 0, or the number of the part that failed.
 */
#include <brimful/handle.h>
#include <brimful/pagepool.h>
#include <brimful/tlsf.h>

/* The four functions that a freestanding compiler may call. Byte by byte: what counts here is that they are ours. */
void* memcpy(void* restrict to, const void* restrict from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) ((char*)to)[i] = ((const char*)from)[i];
  return to;
}

void* memmove(void* to, const void* from, size_t bytes) {
  if ((uintptr_t)to <= (uintptr_t)from) return memcpy(to, from, bytes);
  for (size_t i = bytes; i > 0; --i) ((char*)to)[i - 1] = ((const char*)from)[i - 1];
  return to;
}

void* memset(void* to, int value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) ((char*)to)[i] = (char)value;
  return to;
}

int memcmp(const void* one, const void* other, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    const int difference = ((const unsigned char*)one)[i] - ((const unsigned char*)other)[i];
    if (difference != 0) return difference;
  }
  return 0;
}

#if defined(__x86_64__)
enum { kWrite = 1, kExit = 60 };
static long system_call(long number, long a, long b, long c) {
  __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return number;
}
__asm__(".globl _start\n_start:\n  xor %ebp, %ebp\n  and $-16, %rsp\n  call run\n  hlt\n");
#elif defined(__aarch64__)
enum { kWrite = 64, kExit = 93 };
static long system_call(long number, long a, long b, long c) {
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x8 __asm__("x8") = number;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
  return x0;
}
__asm__(".globl _start\n_start:\n  mov x29, #0\n  bl run\n  brk #0\n");
#else
#error "no way to end the program is known for this machine"
#endif

/* What firmware would write: pages out of an array, first fit. */
enum { kPageBytes = 4096, kPages = 2048 };
struct page_array {
  unsigned char taken[kPages];
  size_t live;
};
static _Alignas(kPageBytes) unsigned char pages[kPages][kPageBytes];

static void* get_pages(void* context, size_t bytes) {
  struct page_array* array = context;
  const size_t wanted = bytes / kPageBytes;
  size_t run = 0;
  for (size_t i = 0; i < kPages; ++i) {
    run = array->taken[i] ? 0 : run + 1;
    if (run < wanted) continue;
    const size_t first = i + 1 - wanted;
    memset(array->taken + first, 1, wanted);
    array->live += wanted;
    return pages[first];
  }
  return NULL;
}

static void give_pages(void* context, void* start, size_t bytes) {
  struct page_array* array = context;
  const size_t first = (size_t)((unsigned char*)start - pages[0]) / kPageBytes;
  memset(array->taken + first, 0, bytes / kPageBytes);
  array->live -= bytes / kPageBytes;
}

static struct page_array array;
static const struct brimful_pool_host host = {
    sizeof(struct brimful_pool_host), kPageBytes, &array, get_pages, give_pages, NULL, NULL, NULL};

static uint64_t random_state = 1;
static size_t random_below(size_t limit) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(random_state >> 33) % limit;
}

static int is_filled(const unsigned char* bytes, size_t count, unsigned char value) {
  for (size_t i = 0; i < count; ++i) {
    if (bytes[i] != value) return 0;
  }
  return 1;
}

enum { kObjects = 256, kRounds = 20000 };

/* Each part replaces random objects, checks what the old one held, and gives all back at the end. NULL, or what failed. */
static const char* try_tlsf(void) {
  static unsigned char memory[1 << 20];
  static struct {
    unsigned char* start;
    size_t bytes;
  } object[kObjects];
  brimful_tlsf* pool = brimful_tlsf_create(memory, sizeof memory);
  if (pool == NULL) return "tlsf: create";
  for (size_t round = 0; round < kRounds; ++round) {
    const size_t i = random_below(kObjects);
    if (object[i].start != NULL && !is_filled(object[i].start, object[i].bytes, (unsigned char)i)) {
      return "tlsf: contents";
    }
    object[i].bytes = random_below(3000);
    object[i].start = brimful_tlsf_realloc(pool, object[i].start, object[i].bytes);
    if (object[i].start == NULL && object[i].bytes != 0) return "tlsf: realloc";
    memset(object[i].start, (int)i, object[i].bytes);
  }
  if (brimful_tlsf_check(pool, NULL) != NULL) return "tlsf: check";
  for (size_t i = 0; i < kObjects; ++i) brimful_tlsf_free(pool, object[i].start);
  struct brimful_tlsf_stats stats = {.size = sizeof stats};
  brimful_tlsf_get_stats(pool, &stats);
  return stats.live_blocks == 0 && stats.free_blocks == 1 ? NULL : "tlsf: not whole at the end";
}

static const char* try_page_pool(void) {
  static struct {
    unsigned char* start;
    size_t bytes;
  } object[kObjects];
  brimful_page_pool* pool = brimful_page_pool_create(&host);
  if (pool == NULL) return "page pool: create";
  for (size_t round = 0; round < kRounds; ++round) {
    const size_t i = random_below(kObjects);
    if (object[i].start != NULL) {
      if (!is_filled(object[i].start, object[i].bytes, (unsigned char)i)) return "page pool: contents";
      if (!brimful_page_pool_free(pool, object[i].start)) return "page pool: free";
    }
    object[i].bytes = random_below(2000);
    object[i].start = brimful_page_pool_malloc(pool, object[i].bytes);
    if (object[i].start == NULL) return "page pool: malloc";
    memset(object[i].start, (int)i, object[i].bytes);
  }
  if (brimful_page_pool_check(pool, NULL) != NULL) return "page pool: check";
  brimful_page_pool_destroy(pool);
  return array.live == 0 ? NULL : "page pool: pages left";
}

static const char* try_handle_pool(void) {
  static brimful_handle object[kObjects];
  static size_t bytes[kObjects];
  const struct brimful_handle_options options = {.size = sizeof options, .host = &host};
  brimful_handle_pool* pool = brimful_handle_pool_create(&options);
  if (pool == NULL) return "handle pool: create";
  for (size_t round = 0; round < kRounds; ++round) {
    const size_t i = random_below(kObjects);
    void* start = NULL;
    if (bytes[i] != 0) {
      if (brimful_handle_map(pool, object[i], BRIMFUL_HANDLE_READ, &start) != BRIMFUL_HANDLE_OK) {
        return "handle pool: map for reading";
      }
      if (!is_filled(start, bytes[i], (unsigned char)i)) return "handle pool: contents";
      if (brimful_handle_unmap(pool, object[i]) != BRIMFUL_HANDLE_OK) return "handle pool: unmap";
      if (brimful_handle_free(pool, object[i]) != BRIMFUL_HANDLE_OK) return "handle pool: free";
    }
    bytes[i] = 1 + random_below(4096);
    if (brimful_handle_alloc(pool, bytes[i], &object[i]) != BRIMFUL_HANDLE_OK) return "handle pool: alloc";
    if (brimful_handle_map(pool, object[i], BRIMFUL_HANDLE_WRITE, &start) != BRIMFUL_HANDLE_OK) {
      return "handle pool: map for writing";
    }
    memset(start, (int)i, bytes[i]);
    brimful_handle_unmap(pool, object[i]);
    if (round % 64 == 0) brimful_handle_compact(pool, 16, NULL);
  }
  if (brimful_handle_check(pool, NULL) != NULL) return "handle pool: check";
  brimful_handle_pool_destroy(pool);
  return array.live == 0 ? NULL : "handle pool: pages left";
}

__attribute__((noreturn, used)) void run(void) {
  const char* (*const parts[])(void) = {try_tlsf, try_page_pool, try_handle_pool};
  int code = 0;
  for (int i = 0; i < 3 && code == 0; ++i) {
    const char* failed = parts[i]();
    if (failed == NULL) continue;
    size_t length = 0;
    while (failed[length] != '\0') ++length;
    system_call(kWrite, 2, (long)failed, (long)length);
    system_call(kWrite, 2, (long)"\n", 1);
    code = i + 1;
  }
  system_call(kExit, code, 0, 0);
  __builtin_trap();
}
