// SPDX-License-Identifier: MIT
//
// fork() beside threads that are inside the C library. Many of its functions allocate while they hold a lock of their
// own, and some of those locks fork() takes, after the handlers in which an allocator takes its own: whoever then holds the
// allocator's locks and waits for the library's must not meet one who does it the other way round.
//
// Each test takes one part of the C library; streams have a test of their own (fork_beside_streams.c).
//
// What the child does not do: call what the C library itself leaves locked in a child (setlocale, dlopen, tzset).
//
// no-static: dlopen and the name services load shared libraries
#include "beside_forks.h"

#include <dirent.h>
#include <dlfcn.h>
#include <grp.h>
#include <iconv.h>
#include <link.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>

static const char* const kLibraries[] = {"libm.so.6",          "libresolv.so.2",     "libutil.so.1",
                                         "libnss_compat.so.2", "libnss_hesiod.so.2", "libthread_db.so.1"};

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
  free(malloc(100 + (size_t)++ * (int*)data));
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
  beside_forks("tzset", step_time_zone, NULL, NULL);
  beside_forks("setenv", step_environment, NULL,
               NULL);  // not beside the other, whose getenv() no lock protects from it
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

static void threads_and_handlers(void) { beside_forks("pthread_create", step_thread, "pthread_atfork", step_register); }

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
  RUN(name_services_at_first_use);
  RUN(loader);
  RUN(locales);
  RUN(time_zones_and_environment);
  RUN(name_services);
  RUN(threads_and_handlers);
  RUN(commands_and_folders);
  return finish();
}
