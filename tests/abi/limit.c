// SPDX-License-Identifier: MIT
//
// limit and soft_limit, by option (each test program executes itself with one): every entry point answers NULL and ENOMEM
// when the heap holds as much as it may, resident memory never passes the limit, and after freeing the same amount is
// there again, for any size.
#include "check.h"

#include <sys/wait.h>

enum { kMost = 4000000 };
static const size_t kLimit = (size_t)64 << 20;

static size_t take_all(size_t size, void** list) {
  size_t filled = 0;
  for (int i = 0; i < kMost; ++i) {
    errno = 0;
    void** block = malloc(size);
    if (block == NULL) {
      CHECK_EQ(errno, ENOMEM);
      return filled;
    }
    memset(block, 0x5c, size);
    *block = *list;
    *list = block;
    filled += size;
  }
  CHECK_FAIL("there is no limit at size %zu", size);
  return filled;
}

static void free_all(void** list) {
  while (*list != NULL) {
    void* next = *(void**)*list;
    free(*list);
    *list = next;
  }
}

static size_t resident(void) {
  char text[4096];
  read_proc_file("/proc/self/statm", text, sizeof text);
  char* rest = NULL;
  strtoull(text, &rest, 10);
  return (size_t)strtoull(rest, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

// What a program without heap has, generously.
static const size_t kRest = (size_t)12 << 20;

static void every_size_ends_at_the_limit_and_comes_back(void) {
  static const size_t kSizes[] = {65536, 100, 1000000, 5000, 24, 300000, 40000, 512, 9000000, 16, 65536};
  for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i) {
    void* list = NULL;
    size_t filled = take_all(kSizes[i], &list);
    CHECK_MSG(filled >= kLimit / 2, "only %zu KiB in blocks of %zu", filled >> 10, kSizes[i]);
    CHECK_MSG(filled <= kLimit, "%zu KiB in blocks of %zu", filled >> 10, kSizes[i]);
    CHECK_MSG(resident() <= kLimit + kRest, "%zu KiB resident with blocks of %zu", resident() >> 10, kSizes[i]);
    free_all(&list);
  }
}

static void every_entry_point_says_enomem(void) {
  void* list = NULL;
  take_all(1 << 20, &list);
  take_all(16, &list);
  for (int i = 0; i < 20; ++i) {
    errno = 0;
    CHECK_PTR_EQ(calloc(1000, 3000), NULL);
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_PTR_EQ(realloc(NULL, 3000000), NULL);
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_PTR_EQ(keep(aligned_alloc(65536, 3 << 20)), NULL);
    CHECK_EQ(errno, ENOMEM);
    void* untouched = &untouched;
    CHECK_EQ(posix_memalign(&untouched, 4096, 3000000), ENOMEM);
    CHECK_PTR_EQ(untouched, &untouched);
    errno = 0;
    CHECK_PTR_EQ(malloc((size_t)1 << 40), NULL);
    CHECK_EQ(errno, ENOMEM);
  }
  free_all(&list);
  void* block = keep(malloc((size_t)40 << 20));
  CHECK(block != NULL);
  free(block);
}

static void realloc_counts_what_it_adds(void) {
  // 40 MiB, grown to 50 of 64: not both at once.
  char* block = malloc((size_t)40 << 20);
  CHECK(block != NULL);
  if (block == NULL) return;
  memset(block, 1, (size_t)40 << 20);
  void* wall = malloc(100000);  // growth in place is barred, wherever the block ends
  char* grown = realloc(block, (size_t)50 << 20);
  CHECK(grown != NULL);
  if (grown != NULL) {
    CHECK_EQ(grown[((size_t)40 << 20) - 1], 1);
    block = grown;
  }
  errno = 0;
  CHECK_PTR_EQ(realloc(block, (size_t)90 << 20), NULL);
  CHECK_EQ(errno, ENOMEM);
  CHECK_EQ(block[0], 1);
  free(wall);
  free(block);
}

static void the_program_goes_on_above_the_soft_limit_without_free_memory(void) {
  void* live = NULL;
  for (int i = 0; i < 1500; ++i) {
    void** block = malloc(65536);
    CHECK(block != NULL);
    if (block == NULL) return;
    memset(block, 1, 65536);
    *block = live;
    live = block;
  }
  size_t before = resident();
  CHECK_GE(before, (size_t)90 << 20);
  // Freed memory of one size would stay for the purge delay, which is an hour here, beside that of the next.
  for (size_t size = 70000; size < 3000000; size += size / 2) {
    void* list = NULL;
    for (size_t bytes = 0; bytes < (size_t)20 << 20; bytes += size) {
      void** block = malloc(size);
      CHECK(block != NULL);
      if (block == NULL) return;
      memset(block, 1, size);
      *block = list;
      list = block;
    }
    free_all(&list);
    free(keep(malloc(33000)));
    CHECK_MSG(resident() <= before + ((size_t)26 << 20), "%zu KiB resident at %zu", resident() >> 10, size);
  }
  free_all(&live);
}

static int run_with(const char* conf, const char* name) {
  pid_t child = fork();
  if (child == 0) {
    char text[256];
    const char* given = getenv("BRIMFUL_CONF");
    snprintf(text, sizeof text, "%s,%s", given != NULL ? given : "", conf);
    setenv("BRIMFUL_CONF", text, 1);
    execl("/proc/self/exe", "limit", name, (char*)NULL);
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) say("      ended by signal %d", WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void a_hard_limit_holds(void) { CHECK_EQ(run_with("limit:64M", "hard"), 0); }
static void a_hard_limit_holds_without_purging(void) { CHECK_EQ(run_with("limit:64M,purge_delay_ms:-1", "hard"), 0); }
static void a_soft_limit_below_a_hard_one_changes_nothing(void) {
  CHECK_EQ(run_with("limit:64M,soft_limit:20M", "hard"), 0);
}
static void a_soft_limit_gives_back(void) { CHECK_EQ(run_with("soft_limit:64M,purge_delay_ms:3600000", "soft"), 0); }

int main(int argc, char** argv) {
  begin(60);
  if (argc > 1 && strcmp(argv[1], "hard") == 0) {
    RUN(every_size_ends_at_the_limit_and_comes_back);
    RUN(every_entry_point_says_enomem);
    RUN(realloc_counts_what_it_adds);
  } else if (argc > 1) {
    RUN(the_program_goes_on_above_the_soft_limit_without_free_memory);
  } else {
    RUN(a_hard_limit_holds);
    RUN(a_hard_limit_holds_without_purging);
    RUN(a_soft_limit_below_a_hard_one_changes_nothing);
    RUN(a_soft_limit_gives_back);
  }
  return finish();
}
