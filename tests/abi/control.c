// SPDX-License-Identifier: MIT
//
// brimful_get() and brimful_set(): numbers that agree with what the program holds, types that are jemalloc's, what wrong
// names, sizes and values get, switches that do what they say, and all of it from threads, from a forked child and from a
// signal handler. glibc has none of this; there, everything is skipped.
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#pragma weak brimful_get
#pragma weak brimful_set
#include "brimful/brimful.h"

static size_t number_of(const char* name) {
  size_t value = 0, size = sizeof value;
  CHECK_MSG(brimful_get(name, &value, &size) == 0, "%s", name);
  return value;
}

static int64_t setting_of(const char* name) {
  int64_t value = 0;
  size_t size = sizeof value;
  CHECK_MSG(brimful_get(name, &value, &size) == 0, "%s", name);
  return value;
}

static int change(const char* name, int64_t value) { return brimful_set(name, &value, sizeof value); }

static int renew(void) { return change("epoch", 1); }

static void allocated_follows_what_the_program_holds(void) {
  free(malloc(100));  // the first call keeps something for itself
  CHECK_EQ(renew(), 0);
  size_t before = number_of("stats.allocated"), large = number_of("stats.arenas.0.large.allocated");
  static void* block[100];
  for (int i = 0; i < 100; ++i) block[i] = malloc(100000);
  CHECK_EQ(number_of("stats.allocated"), before);  // the numbers are of the epoch
  CHECK_EQ(renew(), 0);
  size_t grown = number_of("stats.allocated") - before;
  CHECK_MSG(grown >= 10000000 && grown <= 11000000, "grew by %zu", grown);
  CHECK_EQ(number_of("stats.arenas.0.large.allocated") - large, grown);
  for (int i = 0; i < 100; ++i) free(block[i]);
  CHECK_EQ(renew(), 0);
  CHECK_EQ(number_of("stats.allocated"), before);
}

static void the_numbers_of_an_epoch_belong_together(void) {
  CHECK_EQ(renew(), 0);
  size_t allocated = number_of("stats.allocated"), active = number_of("stats.active");
  size_t metadata = number_of("stats.metadata"), page = number_of("arenas.page");
  size_t dirty = number_of("stats.arenas.0.pdirty") * page;
  CHECK_GE(active, allocated);
  CHECK_EQ(active % page, 0);
  CHECK_EQ(number_of("stats.mapped"), active + metadata);
  CHECK_EQ(number_of("stats.resident"), active + metadata + dirty);
  CHECK_EQ(number_of("stats.arenas.0.pactive") * page, active);
  CHECK_EQ(number_of("stats.arenas.0.small.allocated") + number_of("stats.arenas.0.large.allocated"), allocated);
}

static void classes_sum_up_to_what_is_small(void) {
  CHECK_EQ(renew(), 0);
  unsigned bins = 0;
  size_t size = sizeof bins, sum = 0, before = 0;
  CHECK_EQ(brimful_get("arenas.nbins", &bins, &size), 0);
  for (unsigned i = 0; i < bins; ++i) {
    char name[64];
    snprintf(name, sizeof name, "arenas.bin.%u.size", i);
    size_t bytes = number_of(name);
    CHECK_GE(bytes, before + 16);
    before = bytes;
    snprintf(name, sizeof name, "stats.arenas.0.bins.%u.curregs", i);
    sum += bytes * number_of(name);
  }
  CHECK_EQ(before, 32768);
  CHECK_EQ(sum, number_of("stats.arenas.0.small.allocated"));
}

static void an_epoch_has_a_number_that_grows(void) {
  size_t before = number_of("epoch");
  CHECK_EQ(renew(), 0);
  CHECK_EQ(number_of("epoch"), before + 1);
}

static void every_type_says_its_size(void) {
  static const struct {
    const char* name;
    size_t bytes;
  } expected[] = {{"version", sizeof(char*)},    {"epoch", 8},        {"background_thread", 1},
                  {"arenas.narenas", 4},         {"prof.active", 1},  {"stats.allocated", sizeof(size_t)},
                  {"arena.0.dirty_decay_ms", 8}, {"brimful.limit", 8}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i) {
    size_t size = 4711;
    CHECK_EQ(brimful_get(expected[i].name, NULL, &size), 0);
    CHECK_EQ(size, expected[i].bytes);
  }
  const char* version = NULL;
  size_t size = sizeof version;
  CHECK_EQ(brimful_get("version", &version, &size), 0);
  CHECK_EQ(strcmp(version, brimful_version()), 0);
}

static void wrong_names_sizes_and_values_are_refused(void) {
  static const char* const unknown[] = {"",
                                        "stats",
                                        "stats.allocated.x",
                                        "stats.allocate",
                                        "arenas.bin.1000.size",
                                        "arena.2.purge",
                                        "arena..purge",
                                        "brimful.limits",
                                        "arena.x.purge",
                                        "thread.allocatedp",
                                        "thread.allocated",
                                        "arenas.create",
                                        "brimful.",
                                        "arenas.bin.99999999999999999999.size"};
  size_t value = 7, size = sizeof value;
  errno = 4711;
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; ++i) {
    CHECK_MSG(brimful_get(unknown[i], &value, &size) == ENOENT, "%s", unknown[i]);
    CHECK_MSG(brimful_set(unknown[i], NULL, 0) == ENOENT, "%s", unknown[i]);
  }
  size = 4;
  CHECK_EQ(brimful_get("stats.allocated", &value, &size), EINVAL);
  CHECK_EQ(size, sizeof(size_t));
  CHECK_EQ(brimful_get("stats.allocated", &value, NULL), EINVAL);
  CHECK_EQ(brimful_get("arena.0.purge", &value, &size), EPERM);
  CHECK_EQ(change("stats.allocated", 1), EPERM);
  CHECK_EQ(change("arena.0.purge", 1), EPERM);
  CHECK_EQ(change("brimful.tier", 1), EPERM);
  CHECK_EQ(brimful_set("epoch", NULL, 0), EINVAL);
  CHECK_EQ(change("background_thread", 1), EINVAL);
  CHECK_EQ(change("brimful.purge_delay_ms", -2), EINVAL);
  CHECK_EQ(change("brimful.limit", -2), EINVAL);
  CHECK_EQ(errno, 4711);
}

static void a_limit_set_at_run_time_holds(void) {
  CHECK_EQ(renew(), 0);
  int64_t before = setting_of("brimful.limit");
  CHECK_EQ(change("brimful.limit", (int64_t)(number_of("stats.resident") + (64 << 20))), 0);
  void* block = malloc((size_t)128 << 20);
  CHECK_PTR_EQ(block, NULL);
  CHECK_EQ(change("brimful.limit", before), 0);
  block = malloc((size_t)128 << 20);
  CHECK(block != NULL);
  free(block);
}

static void memory_stays_or_goes_as_the_delay_says(void) {
  int64_t before = setting_of("brimful.purge_delay_ms");
  CHECK_EQ(change("arenas.dirty_decay_ms", -1), 0);
  CHECK_EQ(setting_of("brimful.purge_delay_ms"), -1);
  char* block[40];
  for (int i = 0; i < 40; ++i) block[i] = memset(malloc(1 << 20), 1, 1 << 20);
  for (int i = 0; i < 40; ++i) free(block[i]);
  long full = resident_kib();
  CHECK_EQ(brimful_set("arena.0.purge", NULL, 0), 0);
  CHECK_LE(resident_kib(), full - 30 * 1024);
  CHECK_EQ(renew(), 0);
  CHECK_EQ(number_of("stats.arenas.0.pdirty"), 0);
  CHECK_EQ(change("arenas.dirty_decay_ms", before), 0);
  CHECK_EQ(brimful_set("arena.4096.decay", NULL, 0), 0);
}

static void samples_begin_end_and_go_to_a_file(void) {
  _Bool on = 1;
  int64_t before = setting_of("brimful.prof");
  CHECK_EQ(change("brimful.prof", 1000), 0);
  for (int i = 0; i < 2000; ++i) free(malloc(1000));
  char path[] = "/tmp/brimful-control-XXXXXX";
  close(mkstemp(path));
  const char* place = path;
  CHECK_EQ(brimful_set("prof.dump", &place, sizeof place), 0);
  char text[64] = "";
  int file = open(path, O_RDONLY);
  CHECK_EQ(read(file, text, 18), 18);
  CHECK(strncmp(text, "brimful samples 1\n", 18) == 0);
  CHECK_GE(lseek(file, 0, SEEK_END), 4096);
  close(file);
  unlink(path);
  place = "/nowhere/at/all";
  errno = 0;
  CHECK_EQ(brimful_set("prof.dump", &place, sizeof place), EFAULT);
  CHECK_EQ(errno, ENOENT);
  size_t size = sizeof on;
  on = 0;
  CHECK_EQ(brimful_set("prof.active", &on, sizeof on), 0);
  CHECK_EQ(setting_of("brimful.prof"), 0);
  CHECK_EQ(brimful_get("prof.active", &on, &size), 0);
  CHECK_EQ(on, 0);
  CHECK_EQ(change("brimful.prof", before), 0);
}

static void nothing_is_allocated_for_it(void) {
  renew();
  size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 100; ++i) {
    renew();
    number_of("stats.arenas.0.bins.3.curregs");
  }
  CHECK_EQ(mallinfo2().uordblks, before);
}

static int stop;

static void* allocate_and_free(void* unused) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    void* block[50];
    for (int i = 0; i < 50; ++i) block[i] = malloc((size_t)i * 1000);
    for (int i = 0; i < 50; ++i) free(block[i]);
  }
  return unused;
}

static void* read_and_write(void* number) {
  for (int i = 0; i < 300; ++i) {
    CHECK_EQ(renew(), 0);
    CHECK_GE(number_of("stats.active") + 1, 1);
    CHECK_EQ(change("brimful.muzzy_delay_ms", 10000 + i), 0);
    CHECK_EQ(change("brimful.soft_limit", 0), 0);
    CHECK_GE(setting_of("brimful.muzzy_delay_ms"), 10000);
    if (i % 100 == 0) CHECK_EQ(brimful_set("arena.0.purge", NULL, 0), 0);
  }
  return number;
}

static void threads_read_and_write_while_others_allocate_and_fork(void) {
  pthread_t worker[2], reader[3];
  for (int i = 0; i < 2; ++i) pthread_create(&worker[i], NULL, allocate_and_free, NULL);
  for (int i = 0; i < 3; ++i) pthread_create(&reader[i], NULL, read_and_write, NULL);
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) {
      void* block = malloc(1 << 20);
      int good = renew() == 0 && number_of("stats.allocated") >= 1 << 20 && change("brimful.limit", 0) == 0;
      free(block);
      _exit(good && check_failures == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  for (int i = 0; i < 3; ++i) pthread_join(reader[i], NULL);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 2; ++i) pthread_join(worker[i], NULL);
}

static int answers[2];  // of all calls of the handler: right ones, EDEADLK; any other ends the test

static void ask(int signal_number) {
  uint64_t epoch = 1;
  size_t live = 0, size = sizeof live;
  int first = brimful_set("epoch", &epoch, sizeof epoch), second = brimful_get("stats.allocated", &live, &size);
  if ((first != 0 && first != EDEADLK) || first != second) _exit(97);
  ++answers[first != 0];
  (void)signal_number;
}

static void a_handler_gets_an_answer_or_EDEADLK_and_never_hangs(void) {
  struct sigaction action = {.sa_handler = ask};
  sigaction(SIGVTALRM, &action, NULL);
  struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_VIRTUAL, &often, NULL);
  double until = seconds_now() + 10;
  while (answers[0] + answers[1] < 50 && seconds_now() < until) {
    void* block[20];
    for (int i = 0; i < 20; ++i) block[i] = malloc((size_t)1 << (10 + i % 12));
    for (int i = 0; i < 20; ++i) free(block[i]);
  }
  setitimer(ITIMER_VIRTUAL, &never, NULL);
  CHECK_GE(answers[0] + answers[1], 20);
}

static void a_background_thread_comes_and_goes(void) {
  _Bool on = 1;
  size_t size = sizeof on;
  CHECK_EQ(brimful_set("background_thread", &on, sizeof on), 0);
  CHECK_EQ(brimful_get("opt.background_thread", &on, &size), 0);
  CHECK_EQ(on, 1);
  char* held = memset(malloc(64 << 20), 1, 64 << 20);
  double until = seconds_now() + 20;
  while (number_of("stats.background_thread.num_threads") == 0 && seconds_now() < until) {
    free(memset(malloc(2 << 20), 1, 2 << 20));
    for (int i = 0; i < 2000; ++i) free(keep(malloc((size_t)i * 40)));
  }
  CHECK_EQ(number_of("stats.background_thread.num_threads"), 1);
  on = 0;
  CHECK_EQ(brimful_set("background_thread", &on, sizeof on), 0);
  CHECK_EQ(number_of("stats.background_thread.num_threads"), 0);
  free(held);
}

int main(void) {
  begin(60);
  if (brimful_get == NULL) {
    say("skip  the allocator has no such calls");
    CHECK(!is_brimful());
    return finish();
  }
  RUN(allocated_follows_what_the_program_holds);
  RUN(the_numbers_of_an_epoch_belong_together);
  RUN(classes_sum_up_to_what_is_small);
  RUN(an_epoch_has_a_number_that_grows);
  RUN(every_type_says_its_size);
  RUN(wrong_names_sizes_and_values_are_refused);
  RUN(a_limit_set_at_run_time_holds);
  RUN(memory_stays_or_goes_as_the_delay_says);
  RUN(samples_begin_end_and_go_to_a_file);
  RUN(nothing_is_allocated_for_it);
  RUN(threads_read_and_write_while_others_allocate_and_fork);
  RUN(a_handler_gets_an_answer_or_EDEADLK_and_never_hangs);
  RUN(a_background_thread_comes_and_goes);
  return finish();
}
