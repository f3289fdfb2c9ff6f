// SPDX-License-Identifier: MIT
//
// measure: runs one command and reports what it cost and which allocator it really had, as JSON.
//
// Why not do this from Python: ru_maxrss of a child starts at the resident size of the process that
// forked it, so a 40 MiB interpreter hides every smaller peak. This program is statically linked and
// needs well under 1 MiB, so the peak it reports is the command's own. It stays single-threaded, and
// sets LD_PRELOAD in the child only, so neither it nor the scripts around it run on the allocator
// under test.
//
// While the command runs, the maps of every process below it (a compiler driver's cc1plus and as
// too) are read a few times each, and every mapped file whose name smells of an allocator is noted.
// A preload that the loader refused is thereby visible instead of being measured as if it were there.
// The reading is the same for every allocator, so it cannot favour one.
//
//   measure [--preload LIB] [--set NAME=VALUE]... [--unset NAME]... [--timeout SECONDS]
//           [--stdout FILE] -- COMMAND ARGUMENT...
//
// Exit code: 0 if the command could be measured (its own code is in the JSON), 2 on wrong usage,
// 3 if it could not be started, 130 if interrupted. The command is in a process group of its own,
// which is killed on timeout, interrupt and termination.

#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  kMaxProcesses = 64,
  kMaxLibraries = 8,
  kPathBytes = 512,
  kLooksPerProcess = 4,  // the first look may find the loader still at work; more would only disturb
  kFirstTickNs = 4000000,
  kLastTickNs = 50000000,
};

struct process {
  pid_t pid;
  int looks;
  int libraries;
  char name[32];  // what the process calls itself; the file may be a link's target
  char exe[kPathBytes];
  char library[kMaxLibraries][kPathBytes];
};

static struct process g_seen[kMaxProcesses];
static int g_seen_count;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char* what) {
  fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
  exit(3);
}

// Whether a mapped file can be what serves malloc. libc is noted too: it is there in every process,
// and if nothing else is, it is the allocator.
static bool is_allocator(const char* path) {
  static const char* const kWords[] = {"malloc", "brimful", "/libc.so", "/libc-", "hoard", "ld-musl"};
  const char* name = strrchr(path, '/');
  if (name == NULL) return false;
  for (size_t i = 0; i < sizeof kWords / sizeof *kWords; i++) {
    if (strstr(name, kWords[i]) != NULL) return true;
  }
  return false;
}

static void note_library(struct process* p, const char* path) {
  for (int i = 0; i < p->libraries; i++) {
    if (strcmp(p->library[i], path) == 0) return;
  }
  if (p->libraries < kMaxLibraries) snprintf(p->library[p->libraries++], kPathBytes, "%s", path);
}

static void read_name(struct process* p) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/comm", p->pid);
  FILE* file = fopen(path, "re");
  if (file == NULL) return;
  if (fgets(p->name, sizeof p->name, file) != NULL) p->name[strcspn(p->name, "\n")] = 0;
  fclose(file);
}

static void read_maps(struct process* p) {
  char name[64], line[kPathBytes + 128];
  snprintf(name, sizeof name, "/proc/%d/maps", p->pid);
  FILE* file = fopen(name, "re");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = 0;
    char* path = strchr(line, '/');
    if (path != NULL && is_allocator(path)) note_library(p, path);
  }
  fclose(file);
}

static void look_at(pid_t pid) {
  char name[64], exe[kPathBytes];
  snprintf(name, sizeof name, "/proc/%d/exe", pid);
  ssize_t length = readlink(name, exe, sizeof exe - 1);
  if (length <= 0) return;
  exe[length] = 0;
  // A process that has forked and not yet exec'd is still a copy of this program: not of interest.
  static char self[kPathBytes];
  if (self[0] == 0 && readlink("/proc/self/exe", self, sizeof self - 1) <= 0) self[0] = '?';
  if (strcmp(exe, self) == 0) return;
  struct process* p = NULL;
  for (int i = 0; i < g_seen_count; i++) {
    if (g_seen[i].pid == pid && strcmp(g_seen[i].exe, exe) == 0) p = &g_seen[i];
  }
  if (p == NULL) {
    if (g_seen_count == kMaxProcesses) return;
    p = &g_seen[g_seen_count++];
    p->pid = pid;
    memcpy(p->exe, exe, sizeof exe);
  }
  if (p->looks < kLooksPerProcess) {
    p->looks++;
    read_name(p);
    read_maps(p);
  }
}

// Visits `pid` and everything below it. The kernel lists children by the thread that forked them.
static void look_at_tree(pid_t pid, int depth) {
  look_at(pid);
  if (depth == 8) return;
  char name[96];
  snprintf(name, sizeof name, "/proc/%d/task", pid);
  DIR* tasks = opendir(name);
  if (tasks == NULL) return;
  for (struct dirent* task; (task = readdir(tasks)) != NULL;) {
    if (!isdigit((unsigned char)task->d_name[0])) continue;
    snprintf(name, sizeof name, "/proc/%d/task/%.20s/children", pid, task->d_name);
    FILE* file = fopen(name, "re");
    if (file == NULL) continue;
    for (int child; fscanf(file, "%d", &child) == 1;) look_at_tree(child, depth + 1);
    fclose(file);
  }
  closedir(tasks);
}

static void print_string(const char* text) {
  putchar('"');
  for (; *text != 0; text++) {
    if (*text == '"' || *text == '\\') putchar('\\');
    if ((unsigned char)*text >= ' ') putchar(*text);
  }
  putchar('"');
}

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static void print_result(double wall, int status, bool timed_out, const struct rusage* r) {
  printf("{\"wall_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, \"peak_rss_kib\": %ld, ", wall, seconds(r->ru_utime),
         seconds(r->ru_stime), r->ru_maxrss);
  printf("\"minor_faults\": %ld, \"major_faults\": %ld, \"voluntary_switches\": %ld, ", r->ru_minflt, r->ru_majflt,
         r->ru_nvcsw);
  printf("\"involuntary_switches\": %ld, \"exit_code\": %d, \"signal\": %d, \"timed_out\": %s, \"processes\": [",
         r->ru_nivcsw, WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
         timed_out ? "true" : "false");
  for (int i = 0; i < g_seen_count; i++) {
    printf("%s{\"name\": ", i == 0 ? "" : ", ");
    print_string(g_seen[i].name);
    printf(", \"exe\": ");
    print_string(g_seen[i].exe);
    printf(", \"allocators\": [");
    for (int k = 0; k < g_seen[i].libraries; k++) {
      if (k != 0) printf(", ");
      print_string(g_seen[i].library[k]);
    }
    printf("]}");
  }
  printf("]}\n");
}

static void become(char** command, const char* preload, const char* output, const sigset_t* mask) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int in = open("/dev/null", O_RDONLY);
  int out = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (in < 0 || out < 0) die(output);
  dup2(in, 0);
  dup2(out, 1);
  if (preload != NULL) setenv("LD_PRELOAD", preload, 1);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(command[0], command);
  fprintf(stderr, "measure: %s: %s\n", command[0], strerror(errno));
  _exit(127);
}

int main(int argc, char** argv) {
  const char* preload = NULL;
  const char* output = "/dev/null";
  double timeout = 120;
  int at = 1;
  unsetenv("LD_PRELOAD");
  for (; at + 1 < argc && strcmp(argv[at], "--") != 0; at += 2) {
    char* value = argv[at + 1];
    if (strcmp(argv[at], "--preload") == 0) {
      preload = value;
    } else if (strcmp(argv[at], "--set") == 0 && strchr(value, '=') != NULL) {
      putenv(value);
    } else if (strcmp(argv[at], "--unset") == 0) {
      unsetenv(value);
    } else if (strcmp(argv[at], "--timeout") == 0) {
      timeout = atof(value);
    } else if (strcmp(argv[at], "--stdout") == 0) {
      output = value;
    } else {
      break;
    }
  }
  if (at + 1 >= argc || strcmp(argv[at], "--") != 0) {
    fprintf(stderr, "usage: measure [--preload LIB] [--set N=V] [--unset N] [--timeout S] [--stdout FILE] -- CMD...\n");
    return 2;
  }

  sigset_t wanted, before;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGINT);
  sigaddset(&wanted, SIGTERM);
  sigprocmask(SIG_BLOCK, &wanted, &before);

  const double start = now();
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) become(argv + at + 1, preload, output, &before);
  setpgid(child, child);

  bool timed_out = false, interrupted = false;
  long tick = kFirstTickNs;
  int status = 0;
  struct rusage usage;
  for (;;) {
    const struct timespec wait_for = {0, tick};
    const int number = sigtimedwait(&wanted, NULL, &wait_for);
    if (wait4(child, &status, WNOHANG, &usage) == child) break;
    if (number == SIGINT || number == SIGTERM) interrupted = true;
    if (now() - start > timeout) timed_out = true;
    if (interrupted || timed_out) {
      kill(-child, SIGKILL);
      wait4(child, &status, 0, &usage);
      break;
    }
    look_at_tree(child, 0);
    tick = tick * 5 / 4 < kLastTickNs ? tick * 5 / 4 : kLastTickNs;
  }
  const double wall = now() - start;
  if (interrupted) return 130;
  print_result(wall, status, timed_out, &usage);
  return 0;
}
