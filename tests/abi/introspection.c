// SPDX-License-Identifier: MIT
//
// glibc's questions about the heap, answered truthfully: mallinfo and mallinfo2 move with what the program
// holds, malloc_info writes well-formed XML into the stream it was given, malloc_stats speaks on standard
// error, malloc_trim says 0 or 1, mallopt takes glibc's parameters, and the __libc_ names are the same
// allocator as the plain ones.
#include "check.h"

#include <sys/mman.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

enum { kCount = 320000 };  // of 100 bytes: 32 MB
static void* object[kCount];

static size_t bytes_in_use(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

static void mallinfo2_follows_small_objects_up_and_down(void) {
  size_t before = mallinfo2().uordblks;
  for (int i = 0; i < kCount; ++i) object[i] = malloc(100);
  size_t grown = mallinfo2().uordblks - before;
  size_t asked = (size_t)kCount * 100;
  CHECK_MSG(grown >= asked && grown <= asked + asked / 4, "asked for %zu, uordblks grew by %zu", asked, grown);
  for (int i = 0; i < kCount; ++i) free(object[i]);
  size_t after = mallinfo2().uordblks;
  CHECK_MSG(after <= before + asked / 10, "uordblks %zu before, %zu after", before, after);
}

static void mallinfo2_follows_large_blocks_up_and_down(void) {
  size_t before = bytes_in_use();
  char* block[4];
  for (int i = 0; i < 4; ++i) {
    block[i] = malloc((size_t)16 << 20);
    block[i][0] = 1;
  }
  size_t grown = bytes_in_use() - before;
  size_t asked = (size_t)64 << 20;
  // Twice is allowed: an allocator may count a mapped block both as in use and as mapped.
  CHECK_MSG(grown >= asked && grown <= asked * 2 + (4 << 20), "asked for %zu, grew by %zu", asked, grown);
  for (int i = 0; i < 4; ++i) free(block[i]);
  CHECK_LE(bytes_in_use(), before + (4 << 20));
}

static void mallinfo2_totals_reconcile(void) {
  for (int i = 0; i < kCount; ++i) object[i] = malloc(64);
  for (int i = 0; i < kCount; i += 2) free(object[i]);
  struct mallinfo2 info = mallinfo2();
  CHECK_GE(info.arena, info.uordblks);
  CHECK_MSG(info.uordblks + info.fordblks <= info.arena + info.arena / 50 + 65536,
            "uordblks %zu + fordblks %zu, arena %zu", info.uordblks, info.fordblks, info.arena);
  for (int i = 1; i < kCount; i += 2) free(object[i]);
}

static void mallinfo_agrees_with_mallinfo2(void) {
  void* block = malloc(1000);
  struct mallinfo narrow = mallinfo();
  struct mallinfo2 wide = mallinfo2();
  CHECK_EQ((unsigned)narrow.uordblks, (unsigned)wide.uordblks);
  CHECK_EQ((unsigned)narrow.arena, (unsigned)wide.arena);
  CHECK_EQ((unsigned)narrow.hblkhd, (unsigned)wide.hblkhd);
  free(block);
}

// Returns NULL when the text is well-formed as far as malloc_info goes (elements, attributes, no text rules),
// or what is wrong with it.
static const char* xml_fault(const char* text) {
  static char open_element[64][64];
  int depth = 0, roots = 0;
  for (const char* at = text; *at != '\0';) {
    if (*at != '<') {
      if (*at == '>' || (depth == 0 && *at != '\n' && *at != ' ')) return "text outside of the root element";
      ++at;
      continue;
    }
    const char* end = at;
    int in_quotes = 0;
    while (*end != '\0' && (in_quotes || *end != '>')) {
      if (*end == '"') in_quotes = !in_quotes;
      if (in_quotes && *end == '<') return "a bare < in an attribute";
      ++end;
    }
    if (*end == '\0') return "a tag that never ends";
    if (at[1] == '?') {
      if (at != text || end[-1] != '?') return "a declaration in the wrong place";
    } else if (at[1] == '/') {
      if (depth == 0) return "a closing tag too many";
      --depth;
      size_t length = strlen(open_element[depth]);
      if (strncmp(at + 2, open_element[depth], length) != 0 || at[2 + length] != '>') return "crossed tags";
    } else {
      size_t length = strcspn(at + 1, " />\n\t");
      if (length == 0 || length >= 64 || depth >= 64) return "an element without name, or too deep";
      if (depth == 0 && roots++ != 0) return "two root elements";
      if (end[-1] != '/') {
        memcpy(open_element[depth], at + 1, length);
        open_element[depth++][length] = '\0';
      }
    }
    at = end + 1;
  }
  if (depth != 0) return "an element that is never closed";
  return roots == 1 ? NULL : "no root element";
}

static void malloc_info_writes_well_formed_xml_to_the_stream(void) {
  static char text[1 << 20];
  void* held = malloc(12345);
  FILE* stream = tmpfile();
  CHECK(stream != NULL);
  CHECK_EQ(malloc_info(0, stream), 0);
  long length = ftell(stream);
  rewind(stream);
  size_t got = fread(text, 1, sizeof text - 1, stream);
  text[got] = '\0';
  fclose(stream);
  CHECK_GE(length, 40);
  CHECK_EQ(got, length);
  CHECK(strncmp(text, "<malloc version=", 16) == 0 || strncmp(text, "<?xml", 5) == 0);
  const char* fault = xml_fault(text);
  CHECK_MSG(fault == NULL, "%s in: %.400s", fault, text);
  free(held);
}

static void malloc_info_refuses_unknown_options(void) {
  FILE* stream = tmpfile();
  CHECK(malloc_info(1, stream) != 0);
  CHECK_EQ(ftell(stream), 0);
  fclose(stream);
}

static void malloc_stats_speaks_on_standard_error(void) {
  int saved = dup(STDERR_FILENO);
  int file = memfd_create("stderr", 0);
  CHECK(saved >= 0 && file >= 0);
  dup2(file, STDERR_FILENO);
  malloc_stats();
  fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  char text[4096];
  ssize_t length = pread(file, text, sizeof text - 1, 0);
  close(file);
  CHECK_GE(length, 20);
  text[length > 0 ? length : 0] = '\0';
  CHECK_MSG(strpbrk(text, "0123456789") != NULL, "%s", text);
}

static void malloc_trim_says_zero_or_one(void) {
  long start = resident_kib();
  for (int i = 0; i < kCount; ++i) object[i] = memset(malloc(200), 1, 200);
  for (int i = 0; i < kCount; ++i) free(object[i]);
  int answer = malloc_trim(0);
  CHECK(answer == 0 || answer == 1);
  // 64 MB lie free; glibc keeps what lies below the last object in use.
  if (is_brimful()) CHECK_LE(resident_kib() - start, 16 << 10);
  answer = malloc_trim((size_t)1 << 40);
  CHECK(answer == 0 || answer == 1);
}

static void mallopt_accepts_the_parameters_of_glibc(void) {
  CHECK_EQ(mallopt(M_TRIM_THRESHOLD, 1 << 20), 1);
  CHECK_EQ(mallopt(M_TOP_PAD, 1 << 16), 1);
  CHECK_EQ(mallopt(M_MMAP_MAX, 1000), 1);
  CHECK_EQ(mallopt(M_MMAP_THRESHOLD, 1 << 20), 1);
  CHECK_EQ(mallopt(M_MXFAST, 64), 1);
  CHECK_EQ(mallopt(M_CHECK_ACTION, 3), 1);
  CHECK_EQ(mallopt(M_ARENA_TEST, 4), 1);
  CHECK_EQ(mallopt(M_ARENA_MAX, 2), 1);
}

static void cfree_is_free(void) {
  if (cfree == NULL) {
    SKIP("this libc has no cfree");
    CHECK(!is_brimful());
    return;
  }
  long before = resident_kib();
  for (int i = 0; i < 200; ++i) cfree(memset(malloc(1 << 20), 1, 1 << 20));
  CHECK_LE(resident_kib() - before, 16 << 10);
}

extern void* __libc_malloc(size_t);
extern void __libc_free(void*);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
extern void* __libc_valloc(size_t);
extern void* __libc_pvalloc(size_t);

static void the_libc_names_are_the_same_allocator(void) {
  for (size_t size = 1; size < 3000000; size = size * 3 + 1) {
    free(keep(__libc_malloc(size)));
    __libc_free(malloc(size));
    char* zero = keep(__libc_calloc(size, 1));
    CHECK_EQ(find_nonzero(zero, size), size);
    zero = keep(realloc(zero, size + 100));
    zero = keep(__libc_realloc(zero, size + 50));
    __libc_free(zero);
    void* aligned = keep(__libc_memalign(4096, size));
    CHECK_EQ((uintptr_t)aligned % 4096, 0);
    CHECK_GE(malloc_usable_size(aligned), size);
    free(aligned);
    free(keep(__libc_valloc(size)));
    free(keep(__libc_pvalloc(size)));
    __libc_free(keep(aligned_alloc(256, size)));
  }
}

int main(void) {
  begin(60);
  RUN(mallinfo2_follows_small_objects_up_and_down);
  RUN(mallinfo2_follows_large_blocks_up_and_down);
  RUN(mallinfo2_totals_reconcile);
  RUN(mallinfo_agrees_with_mallinfo2);
  RUN(malloc_info_writes_well_formed_xml_to_the_stream);
  RUN(malloc_info_refuses_unknown_options);
  RUN(malloc_stats_speaks_on_standard_error);
  RUN(malloc_trim_says_zero_or_one);
  RUN(cfree_is_free);
  RUN(the_libc_names_are_the_same_allocator);
  RUN(mallopt_accepts_the_parameters_of_glibc);
  return finish();
}
