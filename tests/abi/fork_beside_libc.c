// SPDX-License-Identifier: MIT
//
// fork() beside threads that are inside the C library. Many of its functions allocate while they hold a lock of their
// own, and some of those locks fork() takes, after the handlers in which an allocator takes its own: whoever then holds the
// allocator's locks and waits for the library's must not meet one who does it the other way round.
//
// Each test lets threads call one part of the C library, with one thread that forks and, in the child, allocates, which
// a child of glibc can do. A thread that makes no step for several seconds is a deadlock, and named.
//
// What the child does not do: call what the C library itself leaves locked in a child (setlocale, dlopen, tzset).
//
// no-static: dlopen and the name services load shared libraries
#include "check.h"

#include <dirent.h>
#include <dlfcn.h>
#include <grp.h>
#include <iconv.h>
#include <link.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <sys/wait.h>
#include <wchar.h>

enum { kMostThreads = 6, kStallSeconds = 8 };
static const double kSecondsEach = 0.12;

typedef void (*Step)(uint64_t* random);

struct Worker {
  const char* name;
  Step step;
  volatile long steps;
  pthread_t thread;
};

static struct Worker worker[kMostThreads];
static volatile int is_over;

static void* work(void* argument) {
  struct Worker* self = argument;
  uint64_t random = (uint64_t)(uintptr_t)self;
  while (!is_over) {
    self->step(&random);
    __atomic_add_fetch(&self->steps, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

static int use_heap(void) {
  static const size_t kSizes[] = {24, 500, 5000, 40000, 400000};
  for (int i = 0; i < 5; ++i) {
    char* object = malloc(kSizes[i]);
    if (object == NULL) return 0;
    object[0] = 1;
    object = realloc(object, kSizes[i] * 2);
    if (object == NULL) return 0;
    free(object);
  }
  return 1;
}

static void step_fork(uint64_t* random) {
  (void)random;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGALRM, SIG_DFL);
    alarm(20);
    _exit(use_heap() ? 0 : 3);
  }
  if (child < 0) {
    CHECK_FAIL("fork: errno %d", errno);
    return;
  }
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with wait status %#x", status);
}

static void run_beside_forks(int count) {
  worker[count] = (struct Worker){"fork", step_fork, 0, 0};
  is_over = 0;
  for (int i = 0; i <= count; ++i) CHECK_EQ(pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
  long seen[kMostThreads] = {0};
  double begin = seconds_now(), moved[kMostThreads];
  for (int i = 0; i <= count; ++i) moved[i] = begin;
  int all_moved = 0;
  while (seconds_now() < begin + kSecondsEach || !all_moved) {
    sleep_ms(5);
    all_moved = 1;
    double now = seconds_now();
    for (int i = 0; i <= count; ++i) {
      long steps = __atomic_load_n(&worker[i].steps, __ATOMIC_RELAXED);
      if (steps != seen[i]) moved[i] = now;
      seen[i] = steps;
      all_moved &= steps > 0;
      if (now - moved[i] < kStallSeconds) continue;
      say("FAIL  %s: deadlock: these wait for one another, for %d seconds by now:", check_current_test, kStallSeconds);
      for (int k = 0; k <= count; ++k)
        if (now - moved[k] >= 2) say("      %s, after %ld steps", worker[k].name, seen[k]);
      _exit(97);
    }
  }
  is_over = 1;
  for (int i = 0; i <= count; ++i) pthread_join(worker[i].thread, NULL);
  say("      %ld forks beside %ld steps of %s", worker[count].steps, worker[0].steps, worker[0].name);
}

static void beside_forks(const char* name_1, Step step_1, const char* name_2, Step step_2) {
  int count = 0;
  worker[count++] = (struct Worker){name_1, step_1, 0, 0};
  if (step_2 != NULL) worker[count++] = (struct Worker){name_2, step_2, 0, 0};
  run_beside_forks(count);
}

// --- streams ---------------------------------------------------------------------------------------------------------

// Lines that grow, so that getline() calls realloc() again and again, with its stream locked.
static char lines[1 << 17];

static void fill_lines(void) {
  size_t at = 0;
  for (size_t length = 100; at + length + 1 < sizeof lines; length += length / 2) {
    memset(lines + at, 'x', length);
    lines[at + length] = '\n';
    at += length + 1;
  }
  if (at + 1 < sizeof lines) lines[at] = '\n';
}

static void step_getline(uint64_t* random) {
  (void)random;
  FILE* stream = fmemopen(lines, sizeof lines, "r");
  if (stream == NULL) return;
  char* line = NULL;
  size_t capacity = 0;
  for (int i = 0; i < 14 && getline(&line, &capacity, stream) >= 0; ++i) {
  }
  free(line);
  fclose(stream);
}

static void step_flush_all(uint64_t* random) {
  (void)random;
  fflush(NULL);
}

static void step_memory_stream(uint64_t* random) {
  char* text = NULL;
  size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  if (stream == NULL) return;
  for (int i = 0; i < 200; ++i) fprintf(stream, "%*d\n", (int)(next_random(random) % 400), i);
  fclose(stream);
  free(text);
}

static void step_open_close(uint64_t* random) {
  (void)random;
  FILE* stream = fopen("/dev/null", "w");
  if (stream == NULL) return;
  setvbuf(stream, NULL, _IOFBF, 20000);
  fwprintf(stream, L"%ls %f", L"wide", 1.5);
  fclose(stream);
}

static void streams(void) {
  beside_forks("getline", step_getline, "fflush(NULL)", step_flush_all);
  beside_forks("open_memstream", step_memory_stream, "fflush(NULL)", step_flush_all);
  beside_forks("fopen", step_open_close, "getline", step_getline);
}

// --- the other parts -------------------------------------------------------------------------------------------------

static const char* const kLibraries[] = {"libm.so.6", "libresolv.so.2", "libutil.so.1", "libnss_compat.so.2",
                                         "libnss_hesiod.so.2", "libthread_db.so.1"};

static void step_dlopen(uint64_t* random) {
  void* library = dlopen(kLibraries[next_random(random) % 6], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    (void)dlerror();  // allocates, too
    return;
  }
  (void)dlsym(library, "no_such_symbol");
  (void)dlerror();
  dlclose(library);
}

static int visit_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)info;
  (void)size;
  free(malloc(100 + (size_t)++*(int*)data));
  return 0;
}
static void step_iterate(uint64_t* random) {
  int visited = 0;
  (void)random;
  dl_iterate_phdr(visit_object, &visited);
}

static void loader(void) { beside_forks("dlopen", step_dlopen, "dl_iterate_phdr", step_iterate); }

static void step_locale(uint64_t* random) {
  static const char* const kNames[] = {"C", "C.UTF-8", "en_US.UTF-8", "POSIX"};
  const char* name = kNames[next_random(random) % 4];
  setlocale(LC_ALL, name);
  locale_t own = newlocale(LC_ALL_MASK, name, NULL);
  if (own == NULL) return;
  locale_t copy = duplocale(own);
  if (copy != NULL) freelocale(copy);
  freelocale(own);
}

static void step_iconv(uint64_t* random) {
  static const char* const kNames[] = {"ISO-8859-1", "UTF-16", "KOI8-R", "UTF-7"};
  iconv_t converter = iconv_open("UTF-8", kNames[next_random(random) % 4]);
  if (converter != (iconv_t)-1) iconv_close(converter);
}

static void locales(void) { beside_forks("setlocale", step_locale, "iconv_open", step_iconv); }

static void step_time_zone(uint64_t* random) {
  static const char* const kZones[] = {"Europe/Berlin", "America/New_York", "UTC", "XYZ-3ABC"};
  // setenv() allocates with the lock of the environment held.
  setenv("TZ", kZones[next_random(random) % 4], 1);
  time_t now = time(NULL);
  struct tm parts;
  tzset();
  localtime_r(&now, &parts);
  (void)mktime(&parts);
}

static void step_environment(uint64_t* random) {
  char name[32], value[64];
  snprintf(name, sizeof name, "BRIMFUL_TEST_%d", (int)(next_random(random) % 8));
  snprintf(value, sizeof value, "%*d", (int)(next_random(random) % 50), 1);
  setenv(name, value, 1);
  if (next_random(random) % 3 == 0) unsetenv(name);
}

static void time_zones_and_environment(void) {
  beside_forks("tzset", step_time_zone, "setenv", step_environment);
}

static void step_user(uint64_t* random) {
  struct passwd user, *found;
  char buffer[2048];
  getpwnam_r(next_random(random) % 2 == 0 ? "root" : "nobody-of-that-name", &user, buffer, sizeof buffer, &found);
  struct group* group = getgrgid(0);
  (void)group;
}

static void step_address(uint64_t* random) {
  struct addrinfo hints, *list = NULL;
  memset(&hints, 0, sizeof hints);
  hints.ai_flags = next_random(random) % 2 == 0 ? AI_NUMERICHOST : 0;
  if (getaddrinfo("localhost", "80", &hints, &list) == 0) freeaddrinfo(list);
  if (getaddrinfo("127.0.0.1", NULL, &hints, &list) == 0) freeaddrinfo(list);
}

static void name_services(void) { beside_forks("getpwnam", step_user, "getaddrinfo", step_address); }

static void* return_memory(void* argument) {
  void* object = malloc(3000);
  (void)argument;
  return object;
}

static void step_thread(uint64_t* random) {
  (void)random;
  pthread_t thread;
  void* object = NULL;
  if (pthread_create(&thread, NULL, return_memory, NULL) != 0) return;
  pthread_join(thread, &object);
  free(object);
}

static void do_nothing(void) {}

// glibc keeps the handlers in an array, which grows under the lock that fork() takes after the last one has run.
static void step_register(uint64_t* random) {
  static int registered;
  (void)random;
  if (registered++ < 150) pthread_atfork(do_nothing, do_nothing, do_nothing);
  sleep_ms(1);
}

static void threads_and_handlers(void) {
  beside_forks("pthread_create", step_thread, "pthread_atfork", step_register);
}

static void step_directory(uint64_t* random) {
  (void)random;
  DIR* folder = opendir("/proc/self/task");
  if (folder == NULL) return;
  while (readdir(folder) != NULL) {
  }
  closedir(folder);
}

static void step_popen(uint64_t* random) {
  (void)random;
  // A list of its own, with a lock of its own.
  FILE* stream = popen(":", "r");
  if (stream != NULL) pclose(stream);
}

static void commands_and_folders(void) { beside_forks("popen", step_popen, "opendir", step_directory); }

// --- the first use of the name services ------------------------------------------------------------------------------

// The first getpwnam() of a process reads the configuration under a lock that fork() takes. So: in many processes, once.
static void* look_up_once(void* argument) {
  uint64_t random = 2;
  (void)argument;
  step_user(&random);
  return NULL;
}

static void name_services_at_first_use(void) {
  int rounds = 0;
  for (double end = seconds_now() + 2 * kSecondsEach; seconds_now() < end; ++rounds) {
    pid_t process = fork();
    if (process == 0) {
      signal(SIGALRM, SIG_DFL);
      alarm(kStallSeconds);
      pthread_t thread[2];
      uint64_t random = 1;
      for (int i = 0; i < 2; ++i) CHECK_EQ(pthread_create(&thread[i], NULL, look_up_once, NULL), 0);
      for (int i = 0; i < 4; ++i) step_fork(&random);
      for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
      _exit(check_failures == 0 ? 0 : 1);
    }
    int status = 0;
    CHECK_EQ(waitpid(process, &status, 0), process);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
      CHECK_FAIL("deadlock: the first getpwnam and fork wait for each other, in process %d", rounds + 1);
      return;
    }
    CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x in process %d", status, rounds + 1);
  }
  say("      %d processes", rounds);
}

int main(void) {
  begin(90);
  fill_lines();
  RUN(name_services_at_first_use);
  RUN(streams);
  RUN(loader);
  RUN(locales);
  RUN(time_zones_and_environment);
  RUN(name_services);
  RUN(threads_and_handlers);
  RUN(commands_and_folders);
  return finish();
}
