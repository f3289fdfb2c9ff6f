// SPDX-License-Identifier: MIT
//
// Life under RLIMIT_AS, as `ulimit -v` sets it. The program executes itself under a limit of 64 MiB, because
// a process that is already running has reserved its address space: it must start, use most of what it may
// have, get NULL and ENOMEM at the end of it (no abort, no signal), and after freeing have the same amount
// again, whatever size of objects it asks for then. A second limit, of 1 GiB, is for single requests that
// don't fit.
#include "check.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { kMost = 2000000 };
static size_t last_filled;

// Allocates blocks of one size until there is no more; returns the bytes. The blocks form a list through
// their first word, because under such a limit there is no room for a table of them.
static void* take_all(size_t size) {
  void* newest = NULL;
  last_filled = 0;
  for (int i = 0; i < kMost; ++i) {
    errno = 0;
    void** block = malloc(size);
    if (block == NULL) {
      CHECK_EQ(errno, ENOMEM);
      return newest;
    }
    memset(block, 0x5c, size);
    *block = newest;
    newest = block;
    last_filled += size;
  }
  CHECK_FAIL("there is no limit at size %zu", size);
  return newest;
}

static void free_list(void* newest, size_t size) {
  while (newest != NULL) {
    void* next = *(void**)newest;
    for (size_t i = sizeof next; i < size; i += 61)
      if (((unsigned char*)newest)[i] != 0x5c) {
        CHECK_FAIL("byte %zu of a block of %zu at %p is damaged", i, size, newest);
        break;
      }
    free(newest);
    newest = next;
  }
}

static void memory_ends_with_null_and_comes_back_when_freed(void) {
  void* all = take_all(65536);
  size_t first = last_filled;
  say("      %zu KiB of 64 KiB blocks fit into 64 MiB of address space", first >> 10);
  CHECK_GE(first, 24 << 20);
  free_list(all, 65536);
  for (int round = 0; round < 3; ++round) {
    all = take_all(65536);
    CHECK_GE(last_filled, first / 10 * 9);
    free_list(all, 65536);
  }
}

static void freed_memory_serves_every_other_size(void) {
  static const size_t kSizes[] = {65536, 100, 1000000, 5000, 24, 300000, 40000, 512, 65536};
  for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i) {
    void* all = take_all(kSizes[i]);
    CHECK_MSG(last_filled >= (size_t)12 << 20, "only %zu KiB in blocks of %zu", last_filled >> 10, kSizes[i]);
    free_list(all, kSizes[i]);
  }
}

static void every_entry_point_says_enomem_when_memory_is_full(void) {
  void* all = take_all(1 << 20);
  void* middle = take_all(20000);
  void* small = take_all(16);
  CHECK_EQ(errno, ENOMEM);
  // Few: a call that fails looks everywhere for memory first, some milliseconds long.
  for (int i = 0; i < 5; ++i) {
    errno = 0;
    CHECK_PTR_EQ(calloc(1000, 3000), NULL);
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_PTR_EQ(realloc(NULL, 3000000), NULL);
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_PTR_EQ(keep(aligned_alloc(65536, 3000000)), NULL);
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_PTR_EQ(keep(pvalloc(3000000)), NULL);
    CHECK_EQ(errno, ENOMEM);
    void* untouched = &untouched;
    CHECK_EQ(posix_memalign(&untouched, 4096, 3000000), ENOMEM);
    CHECK_PTR_EQ(untouched, &untouched);
  }
  errno = 0;
  void* failed = realloc(all, 40 << 20);
  CHECK_PTR_EQ(failed, NULL);
  CHECK_EQ(errno, ENOMEM);
  free_list(small, 16);
  free_list(middle, 20000);
  free_list(all, 1 << 20);  // the block that could not grow is intact and part of it
  free_list(take_all(65536), 65536);
  CHECK_GE(last_filled, 16 << 20);
}

static void* allocate_a_little(void* argument) {
  for (int i = 0; i < 1000; ++i) free(memset(malloc((size_t)i * 10 + 1), 1, 1));
  return argument;
}

static void threads_start_under_the_limit(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  for (int round = 0; round < 20; ++round) {
    pthread_t thread[4];
    int started = 0;
    for (; started < 4; ++started)
      if (pthread_create(&thread[started], &attributes, allocate_a_little, NULL) != 0) break;
    CHECK_EQ(started, 4);
    for (int i = 0; i < started; ++i) pthread_join(thread[i], NULL);
  }
}

static void requests_beyond_the_limit_fail_and_smaller_ones_go_on(void) {
  for (int round = 0; round < 50; ++round) {
    errno = 0;
    CHECK_PTR_EQ(malloc((size_t)2 << 30), NULL);
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_PTR_EQ(calloc(3, (size_t)1 << 30), NULL);
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_PTR_EQ(keep(memalign((size_t)1 << 30, (size_t)1 << 30)), NULL);
    CHECK_EQ(errno, ENOMEM);
    char* block = malloc(100 << 20);
    CHECK(block != NULL);
    if (block == NULL) return;
    block[0] = 'x';
    errno = 0;
    CHECK_PTR_EQ(realloc(block, (size_t)3 << 30), NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK_EQ(block[0], 'x');
    free(block);
    free(malloc(1000));
  }
}

static int run_under_limit(const char* name, rlim_t bytes) {
  pid_t child = fork();
  if (child == 0) {
    struct rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
    execl("/proc/self/exe", "address_space_limit", name, (char*)NULL);
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) say("      ended by signal %d", WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void a_program_lives_under_64_mib_of_address_space(void) {
  CHECK_EQ(run_under_limit("64 MiB", (rlim_t)64 << 20), 0);
}
static void a_program_lives_under_1_gib_of_address_space(void) {
  CHECK_EQ(run_under_limit("1 GiB", (rlim_t)1 << 30), 0);
}

static void a_limit_set_at_run_time_is_obeyed_too(void) {
  pid_t child = fork();
  if (child == 0) {
    check_failures = 0;
    // Whatever address space is reserved already counts, so the limit goes 256 MiB above what is there.
    char text[4096];
    read_proc_file("/proc/self/statm", text, sizeof text);
    rlim_t bytes = strtoull(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)256 << 20);
    struct rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
    for (int round = 0; round < 3; ++round) {
      errno = 0;
      CHECK_PTR_EQ(malloc((size_t)1 << 40), NULL);
      CHECK_EQ(errno, ENOMEM);
      free(malloc(1000));
      free(malloc(10 << 20));
    }
    _exit(check_failures != 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

int main(int argc, char** argv) {
  begin(60);
  if (argc > 1 && strcmp(argv[1], "64 MiB") == 0) {
    RUN(threads_start_under_the_limit);
    RUN(memory_ends_with_null_and_comes_back_when_freed);
    RUN(freed_memory_serves_every_other_size);
    RUN(every_entry_point_says_enomem_when_memory_is_full);
  } else if (argc > 1) {
    RUN(requests_beyond_the_limit_fail_and_smaller_ones_go_on);
  } else {
    RUN(a_program_lives_under_64_mib_of_address_space);
    RUN(a_program_lives_under_1_gib_of_address_space);
    RUN(a_limit_set_at_run_time_is_obeyed_too);
  }
  return finish();
}
