// SPDX-License-Identifier: MIT
//
// What the reserved address space costs others: nothing. It is at most 64 GiB, inaccessible or without pages,
// kept out of core dumps, harmless to mlockall (which would otherwise fill it with locked memory), and an
// idle program is hardly larger than under glibc. The last is measured against the same program under glibc's
// malloc, executed without the preload; a static program has nothing to compare with and skips it.
//
// Larger means memory of the process's own, and the library's file.
#include "check.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

typedef struct Mapping {
  size_t kib;
  long resident;
  char permissions[8];
  char flags[256];
} Mapping;

// Calls visit for every mapping of /proc/self/smaps.
static void for_each_mapping(void (*visit)(const Mapping*, void*), void* argument) {
  FILE* file = fopen("/proc/self/smaps", "re");
  CHECK(file != NULL);
  if (file == NULL) return;
  char line[4096];
  Mapping mapping;
  memset(&mapping, 0, sizeof mapping);
  while (fgets(line, sizeof line, file) != NULL) {
    unsigned long low, high;
    if (sscanf(line, "%lx-%lx %7s", &low, &high, mapping.permissions) == 3) mapping.kib = (high - low) >> 10;
    if (strncmp(line, "Rss:", 4) == 0) mapping.resident = atol(line + 4);
    if (strncmp(line, "VmFlags:", 8) == 0) {
      snprintf(mapping.flags, sizeof mapping.flags, "%.250s", line + 8);
      visit(&mapping, argument);
    }
  }
  fclose(file);
}

static void check_mapping(const Mapping* mapping, void* argument) {
  size_t* total = argument;
  *total += mapping->kib;
  if (mapping->kib < (size_t)512 << 10) return;
  int is_inaccessible = strncmp(mapping->permissions, "---", 3) == 0 && mapping->resident == 0;
  int is_undumped = strstr(mapping->flags, " dd") != NULL;
  say("      %zu MiB %s, resident %ld KiB, flags%.80s", mapping->kib >> 10, mapping->permissions, mapping->resident,
      strtok(strdup(mapping->flags), "\n"));
  CHECK(is_inaccessible || is_undumped);
}

static void reserved_space_is_bounded_and_out_of_core_dumps(void) {
  free(malloc(100));
  free(malloc(1 << 20));
  size_t total = 0;
  for_each_mapping(check_mapping, &total);
  say("      %zu MiB of address space in all", total >> 10);
  CHECK_LE(total, (size_t)65 << 20);
}

static void live_memory_is_in_core_dumps(void) {
  if (!is_brimful()) {
    SKIP("a question about brimful's use of MADV_DONTDUMP");
    return;
  }
  // The opposite mistake: a heap whose live objects are missing from every core dump.
  char* object = malloc(100);
  char* large = malloc(1 << 20);
  memset(large, 1, 1 << 20);
  for (int i = 0; i < 2; ++i) {
    uintptr_t address = (uintptr_t)(i == 0 ? object : large);
    FILE* file = fopen("/proc/self/smaps", "re");
    char line[4096];
    int is_inside = 0, was_seen = 0;
    while (fgets(line, sizeof line, file) != NULL) {
      unsigned long low, high;
      char permissions[8];
      if (sscanf(line, "%lx-%lx %7s", &low, &high, permissions) == 3) is_inside = address >= low && address < high;
      if (is_inside && strncmp(line, "VmFlags:", 8) == 0) {
        was_seen = 1;
        CHECK_MSG(strstr(line, " dd") == NULL, "%s object: %s", i == 0 ? "small" : "large", line);
      }
    }
    fclose(file);
    CHECK(was_seen);
  }
  free(object);
  free(large);
}

static int child_status(void (*action)(void)) {
  pid_t child = fork();
  if (child == 0) {
    check_failures = 0;
    action();
    _exit(check_failures != 0 ? 1 : check_skip_reason != NULL ? 77 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void lock_all_and_allocate(void) {
  long before = resident_kib();
  struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_MEMLOCK, &unlimited);
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    check_skip_reason = "mlockall is not permitted here";
    return;
  }
  enum { kCount = 8000 };
  static void* object[kCount];
  for (int i = 0; i < kCount; ++i) {
    object[i] = malloc((size_t)(i * 7 % 400) + 1);
    CHECK(object[i] != NULL);
  }
  void* large = malloc(4 << 20);
  CHECK(large != NULL);
  // 1.6 MB of small objects and 4 MiB of large ones: 64 MiB more than before leave much room, a reserved
  // gigabyte none.
  CHECK_LE(resident_kib() - before, 64 << 10);
  for (int i = 0; i < kCount; ++i) free(object[i]);
  free(large);
  for (int i = 0; i < kCount; ++i) free(memset(malloc((size_t)i * 10 + 1), 1, (size_t)i * 10 + 1));
  CHECK_LE(resident_kib() - before, 64 << 10);
}

static void mlockall_does_not_fill_the_reserved_space(void) {
  int status = child_status(lock_all_and_allocate);
  if (status == 77) {
    SKIP("mlockall is not permitted here");
    return;
  }
  CHECK_EQ(status, 0);
}

static long idle_kib_of_child(int with_preload) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    if (!with_preload) unsetenv("LD_PRELOAD");
    unsetenv("BRIMFUL_EXPECT");
    execl("/proc/self/exe", "address_space_use", "idle", (char*)NULL);
    _exit(126);
  }
  close(ends[1]);
  char text[64] = "";
  ssize_t got = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  waitpid(child, NULL, 0);
  return got > 0 ? atol(text) : -1;
}

static void an_idle_program_is_hardly_larger_than_under_glibc(void) {
  if (getenv("LD_PRELOAD") == NULL) {
    SKIP("needs a preloaded allocator and glibc's beside it");
    return;
  }
  long best = -1, best_glibc = -1;
  for (int i = 0; i < 5; ++i) {
    long here = idle_kib_of_child(1), glibc = idle_kib_of_child(0);
    if (best < 0 || here < best) best = here;
    if (best_glibc < 0 || glibc < best_glibc) best_glibc = glibc;
  }
  say("      an idle program's own memory: %ld KiB, under glibc %ld KiB", best, best_glibc);
  CHECK(best > 0 && best_glibc > 0);
  if (is_brimful()) CHECK_LE(best, best_glibc + 160);
}

static void the_library_is_small(void) {
  if (!is_brimful() || getenv("LD_PRELOAD") == NULL) {
    SKIP("needs brimful preloaded");
    return;
  }
  static char text[1 << 16];
  CHECK(read_proc_file("/proc/self/maps", text, sizeof text) > 0);
  size_t kib = 0;
  for (char* line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    unsigned long low, high;
    if (strstr(line, "libbrimful") != NULL && sscanf(line, "%lx-%lx", &low, &high) == 2) kib += (high - low) >> 10;
  }
  say("      the library's file takes %zu KiB of address space", kib);
  CHECK(kib > 0);
  CHECK_LE(kib, 320);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "idle") == 0) {
    for (int i = 0; i < 5; ++i) free(memset(malloc((size_t)i * 200 + 1), 1, 1));
    say("%ld", resident_kib());
    return 0;
  }
  begin(60);
  RUN(reserved_space_is_bounded_and_out_of_core_dumps);
  RUN(live_memory_is_in_core_dumps);
  RUN(mlockall_does_not_fill_the_reserved_space);
  RUN(an_idle_program_is_hardly_larger_than_under_glibc);
  RUN(the_library_is_small);
  return finish();
}
