// SPDX-License-Identifier: MIT
//
// Before main, and in a bare world. Constructors of the highest priority allocate before most of the program
// is initialised, and each entry point may be the first that a process ever calls; a daemon starts with
// standard streams closed and without an environment. The program executes itself for the variants that need
// a fresh start and reports through its exit code, because there may be no stream to report to.
#include "check.h"

#include <sys/resource.h>
#include <sys/wait.h>

static char* from_constructor[100];
static void* first_object;

// 101 is the first priority that a program may use.
__attribute__((constructor(101))) static void allocate_before_main(void) {
  for (int i = 0; i < 100; ++i) {
    from_constructor[i] = malloc((size_t)i * 100 + 1);
    if (from_constructor[i] != NULL) fill_pattern(from_constructor[i], (size_t)i * 100 + 1, (uint64_t)i);
  }
}

__attribute__((destructor(101))) static void free_after_main(void) {
  free(first_object);
  free(malloc(5000));
}

static void constructors_can_allocate_before_main(void) {
  for (int i = 0; i < 100; ++i) {
    size_t size = (size_t)i * 100 + 1;
    CHECK(from_constructor[i] != NULL);
    CHECK_EQ(find_damage(from_constructor[i], size, size, (uint64_t)i), size);
    from_constructor[i] = realloc(from_constructor[i], size * 3);
    CHECK_EQ(find_damage(from_constructor[i], size, size, (uint64_t)i), size);
    free(from_constructor[i]);
  }
  first_object = malloc(100);
}

static int run_variant(const char* variant, char* const* environment, int close_streams) {
  pid_t child = fork();
  if (child == 0) {
    if (close_streams)
      for (int i = 0; i < 3; ++i) close(i);
    char* const arguments[] = {(char*)"start_up", (char*)variant, NULL};
    execve("/proc/self/exe", arguments, environment);
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

extern char** environ;

static void a_program_starts_with_all_streams_closed(void) {
  CHECK_EQ(run_variant("churn", environ, 1), 0);
  CHECK_EQ(run_variant("descriptors", environ, 1), 0);
}

static void a_program_starts_with_an_empty_environment(void) {
  char preload[4200];
  const char* library = getenv("LD_PRELOAD");
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library == NULL ? "" : library);
  char* const only_preload[] = {preload, NULL};
  char* const nothing[] = {NULL};
  char* const* environment = library == NULL ? nothing : only_preload;
  CHECK_EQ(run_variant("churn", environment, 0), 0);
  CHECK_EQ(run_variant("churn", environment, 1), 0);
}

static void a_program_starts_with_a_huge_environment(void) {
  static char variable[400][300];
  static char* all[1000];
  int count = 0;
  for (char** each = environ; *each != NULL && count < 500; ++each) all[count++] = *each;
  for (int i = 0; i < 400; ++i) {
    snprintf(variable[i], sizeof variable[i], "FILLER_%d=%0280d", i, i);
    all[count++] = variable[i];
  }
  CHECK_EQ(run_variant("churn", all, 0), 0);
}

static void every_entry_point_may_be_the_first_call(void) {
  static const char* const kFirst[] = {"free", "realloc", "calloc", "memalign", "usable", "mallinfo", "trim", "fork"};
  for (size_t i = 0; i < sizeof kFirst / sizeof kFirst[0]; ++i)
    CHECK_MSG(run_variant(kFirst[i], environ, 0) == 0, "first call: %s", kFirst[i]);
}

static void a_program_starts_with_few_descriptors_left(void) {
  pid_t child = fork();
  if (child == 0) {
    for (int fd = 3; fd < 256; ++fd) close(fd);  // whatever the test's runner left open
    struct rlimit few = {4, 4};
    setrlimit(RLIMIT_NOFILE, &few);
    execl("/proc/self/exe", "start_up", "churn", (char*)NULL);
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

static int churn(void) {
  static void* object[3000];
  for (int i = 0; i < 3000; ++i) {
    object[i] = malloc((size_t)i * 13);
    if (object[i] == NULL) return 2;
    memset(object[i], i, (size_t)i * 13);
  }
  for (int i = 0; i < 3000; ++i) free(object[i]);
  void* large = malloc(10 << 20);
  if (large == NULL) return 3;
  memset(large, 1, 10 << 20);
  large = realloc(large, 100 << 20);
  if (large == NULL || ((char*)large)[(10 << 20) - 1] != 1) return 4;
  free(large);
  return 0;
}

// With the streams closed, a file that the allocator kept open would sit at 0, 1 or 2, where the program's
// own output would run into it.
static int no_descriptor_is_taken(void) {
  free(malloc(100));
  for (int i = 0; i < 3; ++i)
    if (fcntl(i, F_GETFD) >= 0) return 5;
  return churn();
}

static int run_first_call(const char* variant) {
  if (strcmp(variant, "free") == 0) free(NULL);
  if (strcmp(variant, "realloc") == 0) free(realloc(NULL, 100));
  if (strcmp(variant, "calloc") == 0) free(calloc(10, 10));
  if (strcmp(variant, "memalign") == 0) free(keep(memalign(4096, 100)));
  if (strcmp(variant, "usable") == 0 && malloc_usable_size(keep(NULL)) != 0) return 6;
  if (strcmp(variant, "mallinfo") == 0) (void)mallinfo2();
  if (strcmp(variant, "trim") == 0) (void)malloc_trim(0);
  if (strcmp(variant, "fork") == 0) {
    pid_t child = fork();
    if (child == 0) _exit(churn());
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 7;
  }
  return strcmp(variant, "descriptors") == 0 ? no_descriptor_is_taken() : churn();
}

int main(int argc, char** argv) {
  if (argc > 1) return run_first_call(argv[1]);
  begin(60);
  RUN(constructors_can_allocate_before_main);
  RUN(every_entry_point_may_be_the_first_call);
  RUN(a_program_starts_with_all_streams_closed);
  RUN(a_program_starts_with_an_empty_environment);
  RUN(a_program_starts_with_a_huge_environment);
  RUN(a_program_starts_with_few_descriptors_left);
  return finish();
}
