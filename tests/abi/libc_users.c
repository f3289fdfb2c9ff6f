// SPDX-License-Identifier: MIT
//
// The parts of libc that take memory from malloc behind the program's back and let the program free it, or
// free it themselves: getline, asprintf, strdup, memory streams, regular expressions, large sorts, directory
// scans, search trees, the environment, locales. Each would show an entry point that is not interposed:
// memory that comes from one allocator and is freed by another.
#include "check.h"

#include <argz.h>
#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <locale.h>
#include <obstack.h>
#include <regex.h>
#include <search.h>
#include <wchar.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

static void strings_are_duplicated_onto_the_heap(void) {
  for (int i = 0; i < 1000; ++i) {
    char* copy = strdup("the quick brown fox jumps over the lazy dog");
    CHECK(copy != NULL && strcmp(copy + 4, "quick brown fox jumps over the lazy dog") == 0);
    CHECK_GE(malloc_usable_size(copy), strlen(copy) + 1);
    copy = realloc(copy, 1000);
    free(copy);
    copy = strndup("abcdef", 3);
    CHECK_EQ(strlen(copy), 3);
    free(copy);
    wchar_t* wide = wcsdup(L"wide");
    CHECK_EQ(wcslen(wide), 4);
    free(wide);
  }
}

static void asprintf_gives_memory_that_free_takes(void) {
  for (int i = 1; i < 200000; i *= 3) {
    char* text = NULL;
    int length = asprintf(&text, "%*d|%s", i, 42, "end");
    CHECK_EQ(length, (i < 2 ? 2 : i) + 4);
    CHECK(strcmp(text + length - 4, "|end") == 0);
    free(text);
  }
}

static void getline_and_getdelim_grow_a_buffer_of_ours(void) {
  FILE* file = tmpfile();
  CHECK(file != NULL);
  for (int i = 0; i < 2000; ++i) {
    for (int j = 0; j < i % 300; ++j) fputc('a' + j % 26, file);
    fputc('\n', file);
  }
  rewind(file);
  size_t capacity = 8;
  char* line = malloc(capacity);
  for (int i = 0; i < 2000; ++i) CHECK_EQ(getline(&line, &capacity, file), i % 300 + 1);
  CHECK_EQ(getline(&line, &capacity, file), -1);
  rewind(file);
  CHECK_GE(getdelim(&line, &capacity, 'z', file), 1);
  free(line);
  fclose(file);
}

static void memory_streams_hand_their_buffer_over(void) {
  char* text = NULL;
  size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  for (int i = 0; i < 50000; ++i) fprintf(stream, "%d,", i);
  fclose(stream);
  CHECK_EQ(strlen(text), length);
  CHECK(strncmp(text + length - 6, "49999,", 6) == 0);
  free(text);
  stream = fmemopen(NULL, 4096, "w+");
  CHECK(stream != NULL);
  fputs("in memory", stream);
  fclose(stream);
}

static void regular_expressions_compile_match_and_free(void) {
  for (int i = 0; i < 200; ++i) {
    regex_t expression;
    CHECK_EQ(regcomp(&expression, "^(a|b)*(c[d-z]+)?([0-9]{2,5})$", REG_EXTENDED), 0);
    regmatch_t match[4];
    CHECK_EQ(regexec(&expression, "ababcxyz1234", 4, match, 0), 0);
    CHECK_EQ(match[3].rm_eo - match[3].rm_so, 4);
    CHECK_EQ(regexec(&expression, "nothing", 4, match, 0), REG_NOMATCH);
    regfree(&expression);
  }
}

static int by_number(const void* left, const void* right) {
  const unsigned a = *(const unsigned*)left, b = *(const unsigned*)right;
  return a < b ? -1 : a > b;
}

static void large_sorts_use_the_heap_for_merging(void) {
  enum { kCount = 300000 };
  unsigned* numbers = malloc(kCount * sizeof *numbers);
  uint64_t random = 5;
  for (int i = 0; i < kCount; ++i) numbers[i] = (unsigned)next_random(&random);
  qsort(numbers, kCount, sizeof *numbers, by_number);
  for (int i = 1; i < kCount; ++i) CHECK_LE(numbers[i - 1], numbers[i]);
  free(numbers);
}

static void paths_and_directories_come_from_the_heap(void) {
  char* here = getcwd(NULL, 0);
  CHECK(here != NULL && here[0] == '/');
  free(here);
  char* real = realpath("/proc/self/../self/exe", NULL);
  CHECK(real != NULL);
  free(real);
  struct dirent** entry = NULL;
  int count = scandir("/proc/self", &entry, NULL, alphasort);
  CHECK_GE(count, 10);
  for (int i = 0; i < count; ++i) free(entry[i]);
  free(entry);
  glob_t paths;
  CHECK_EQ(glob("/proc/self/*", 0, NULL, &paths), 0);
  CHECK_GE(paths.gl_pathc, 10);
  globfree(&paths);
}

static int by_string(const void* left, const void* right) { return strcmp(left, right); }

static void search_trees_and_tables_live_on_the_heap(void) {
  void* root = NULL;
  for (int i = 0; i < 5000; ++i) {
    char* key = NULL;
    CHECK_GE(asprintf(&key, "key %d", (i * 7919) % 5000), 5);
    CHECK(tsearch(key, &root, by_string) != NULL);
  }
  CHECK(tfind("key 4242", &root, by_string) != NULL);
  tdestroy(root, (free));
  struct hsearch_data table;
  memset(&table, 0, sizeof table);
  CHECK(hcreate_r(3000, &table) != 0);
  ENTRY item = {.key = strdup("name"), .data = NULL}, *found = NULL;
  CHECK(hsearch_r(item, ENTER, &found, &table) != 0);
  hdestroy_r(&table);
  free(item.key);
}

static void the_environment_grows_and_shrinks(void) {
  char name[32], value[400];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 500; ++i) {
      snprintf(name, sizeof name, "CHECK_VARIABLE_%d", i);
      memset(value, 'a' + round, sizeof value - 1);
      value[i % 399] = '\0';
      value[sizeof value - 1] = '\0';
      CHECK_EQ(setenv(name, value, 1), 0);
    }
    for (int i = 0; i < 500; ++i) {
      snprintf(name, sizeof name, "CHECK_VARIABLE_%d", i);
      const char* read = getenv(name);
      CHECK(read != NULL && strlen(read) == (size_t)(i % 399));
      if (i % 2 == 0) unsetenv(name);
    }
  }
}

static void locales_are_made_copied_and_freed(void) {
  for (int i = 0; i < 20; ++i) {
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    CHECK(locale != (locale_t)0);
    locale_t copy = duplocale(locale);
    CHECK(copy != (locale_t)0);
    freelocale(locale);
    freelocale(copy);
    CHECK(setlocale(LC_ALL, i % 2 == 0 ? "C" : "") != NULL || i % 2 != 0);
  }
  setlocale(LC_ALL, "C");
}

static void argument_vectors_and_obstacks_grow(void) {
  char* vector = NULL;
  size_t length = 0;
  for (int i = 0; i < 2000; ++i) CHECK_EQ(argz_add(&vector, &length, "an argument"), 0);
  CHECK_EQ(argz_count(vector, length), 2000);
  free(vector);
  struct obstack stack;
  obstack_init(&stack);
  for (int i = 0; i < 20000; ++i) CHECK(obstack_copy0(&stack, "object", 6) != NULL);
  obstack_free(&stack, NULL);
}

static void many_files_have_their_buffers_on_the_heap(void) {
  FILE* file[64];
  for (int i = 0; i < 64; ++i) {
    file[i] = tmpfile();
    CHECK(file[i] != NULL);
    setvbuf(file[i], NULL, _IOFBF, (size_t)1000 << (i % 8));
    for (int j = 0; j < 3000; ++j) fputc(j, file[i]);
  }
  for (int i = 0; i < 64; ++i) {
    CHECK_EQ(ftell(file[i]), 3000);
    fclose(file[i]);
  }
}

static void long_patterns_match_with_heap_memory(void) {
  enum { kLength = 200000 };
  char* text = malloc(kLength + 1);
  memset(text, 'x', kLength);
  text[kLength] = '\0';
  CHECK_EQ(fnmatch("*x", text, 0), 0);
  wchar_t* wide = malloc((kLength + 1) * sizeof *wide);
  CHECK_EQ(mbstowcs(wide, text, kLength + 1), kLength);
  free(wide);
  free(text);
}

int main(void) {
  begin(60);
  RUN(strings_are_duplicated_onto_the_heap);
  RUN(asprintf_gives_memory_that_free_takes);
  RUN(getline_and_getdelim_grow_a_buffer_of_ours);
  RUN(memory_streams_hand_their_buffer_over);
  RUN(regular_expressions_compile_match_and_free);
  RUN(large_sorts_use_the_heap_for_merging);
  RUN(paths_and_directories_come_from_the_heap);
  RUN(search_trees_and_tables_live_on_the_heap);
  RUN(the_environment_grows_and_shrinks);
  RUN(locales_are_made_copied_and_freed);
  RUN(argument_vectors_and_obstacks_grow);
  RUN(many_files_have_their_buffers_on_the_heap);
  RUN(long_patterns_match_with_heap_memory);
  return finish();
}
