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
//   measure [--preload LIB] [--set NAME=VALUE]... [--unset NAME]... [--timeout SECONDS] [--cpus LIST]
//           [--stdout FILE] [--stderr FILE] [--sample-ms N] -- COMMAND ARGUMENT...
//
// What it prints: times and faults as the kernel accounts them to the command and its waited-for
// descendants (peak_rss_kib is that of the largest single process among them); counters.h; and
// process_tree.h, with "series" (memory of the whole tree over time) if --sample-ms is given. Such a run
// disturbs what it watches: its times are not for comparing. --cpus (as "0,2-3") pins the command.
//
// Exit code: 0 if the command could be measured (its own code is in the JSON; 127 is a command that
// cannot be executed), 2 on wrong usage, 3 if nothing could be started, 130 if interrupted. The command is
// in a process group of its own, which is killed on timeout, interrupt and termination.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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

#include "counters.h"
#include "process_tree.h"

enum {
  kFirstTickNs = 4000000,
  kLastTickNs = 50000000,
  kLongestTickNs = 900000000,
  kRestPerLook = 50,  // a look at thousands of threads takes long: it must not become part of the load
  kNsPerMs = 1000000,
};

struct options {
  const char* preload;
  const char* output;
  const char* errors;  // NULL: this program's own
  double timeout_s;
  long sample_ms;  // 0: memory over time is not wanted
  bool pinned;
  cpu_set_t cpus;
};

struct outcome {
  double wall_s;
  int status;
  bool timed_out;
  bool interrupted;
  struct rusage usage;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char* what) {
  fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
  exit(3);
}

// --- arguments --------------------------------------------------------------------------------------

// "0,2-3" as the kernel writes lists of CPUs. False if `text` is none.
static bool read_cpus(const char* text, cpu_set_t* cpus) {
  CPU_ZERO(cpus);
  for (;;) {
    char* end;
    const long first = strtol(text, &end, 10);
    if (end == text || first < 0) return false;
    long last = first;
    if (*end == '-') {
      text = end + 1;
      last = strtol(text, &end, 10);
      if (end == text) return false;
    }
    if (last < first || last >= CPU_SETSIZE) return false;
    for (long cpu = first; cpu <= last; cpu++) CPU_SET((size_t)cpu, cpus);
    if (*end == 0) return true;
    if (*end != ',') return false;
    text = end + 1;
  }
}

// One `--name value` pair. False if it is not understood.
static bool read_option(struct options* o, const char* name, char* value) {
  char* end = NULL;
  if (strcmp(name, "--preload") == 0) {
    o->preload = value;
  } else if (strcmp(name, "--set") == 0) {
    return strchr(value, '=') != NULL && putenv(value) == 0;
  } else if (strcmp(name, "--unset") == 0) {
    return unsetenv(value) == 0;
  } else if (strcmp(name, "--timeout") == 0) {
    o->timeout_s = strtod(value, &end);
    return end != value && *end == 0 && o->timeout_s > 0;
  } else if (strcmp(name, "--sample-ms") == 0) {
    o->sample_ms = strtol(value, &end, 10);
    return end != value && *end == 0 && o->sample_ms > 0 && o->sample_ms < 1000;
  } else if (strcmp(name, "--cpus") == 0) {
    o->pinned = true;
    return read_cpus(value, &o->cpus);
  } else if (strcmp(name, "--stdout") == 0) {
    o->output = value;
  } else if (strcmp(name, "--stderr") == 0) {
    o->errors = value;
  } else {
    return false;
  }
  return true;
}

// Reads the arguments before "--"; returns the index of the command, or 0 on wrong usage.
static int read_options(struct options* o, int argc, char** argv) {
  int at = 1;
  for (; at + 1 < argc && strcmp(argv[at], "--") != 0; at += 2) {
    if (!read_option(o, argv[at], argv[at + 1])) {
      fprintf(stderr, "measure: bad argument: %s %s\n", argv[at], argv[at + 1]);
      return 0;
    }
  }
  return at + 1 < argc && strcmp(argv[at], "--") == 0 ? at + 1 : 0;
}

// --- the command ------------------------------------------------------------------------------------

struct files {
  int in, out, errors;
};

static int open_or_die(const char* path, int flags) {
  const int file = open(path, flags | O_CLOEXEC, 0644);
  if (file < 0) die(path);
  return file;
}

// Everything that can fail is done before the fork, so that its failure cannot be taken for the command's.
static struct files prepare(const struct options* o) {
  const int fresh = O_WRONLY | O_CREAT | O_TRUNC;
  cpu_set_t before;
  if (o->pinned) {
    if (sched_getaffinity(0, sizeof before, &before) != 0 || sched_setaffinity(0, sizeof o->cpus, &o->cpus) != 0 ||
        sched_setaffinity(0, sizeof before, &before) != 0) {
      die("cannot run on these CPUs");
    }
  }
  if (o->preload != NULL) expect_library(o->preload);
  open_counters();
  return (struct files){open_or_die("/dev/null", O_RDONLY), open_or_die(o->output, fresh),
                        o->errors == NULL ? STDERR_FILENO : open_or_die(o->errors, fresh)};
}

static void become(char** command, const struct options* o, const struct files* files, const sigset_t* mask) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (o->pinned) sched_setaffinity(0, sizeof o->cpus, &o->cpus);
  dup2(files->in, STDIN_FILENO);
  dup2(files->out, STDOUT_FILENO);
  dup2(files->errors, STDERR_FILENO);
  if (o->preload != NULL) setenv("LD_PRELOAD", o->preload, 1);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(command[0], command);
  fprintf(stderr, "measure: %s: %s\n", command[0], strerror(errno));
  _exit(127);
}

// How long to leave the command alone after a look that took `look_ns`: rarely once it is known, and never so often that
// looking takes more than a fiftieth of the time.
static long next_tick(long tick, long look_ns) {
  const long rarer = tick * 5 / 4 < kLastTickNs ? tick * 5 / 4 : kLastTickNs;
  const long rest = look_ns < kLongestTickNs / kRestPerLook ? look_ns * kRestPerLook : kLongestTickNs;
  return rarer > rest ? rarer : rest;
}

// Waits for the end of `child`, looking at it meanwhile, and ends it when its time is up.
static void watch(pid_t child, const struct options* o, double start, const sigset_t* wanted, struct outcome* out) {
  const bool sampling = o->sample_ms != 0;
  long tick = sampling ? o->sample_ms * kNsPerMs : kFirstTickNs;
  for (;;) {
    const struct timespec wait_for = {0, tick};
    const int number = sigtimedwait(wanted, NULL, &wait_for);
    if (wait4(child, &out->status, WNOHANG, &out->usage) == child) return;
    out->interrupted = number == SIGINT || number == SIGTERM;
    out->timed_out = now() - start > o->timeout_s;
    if (out->interrupted || out->timed_out) {
      kill(-child, SIGKILL);
      wait4(child, &out->status, 0, &out->usage);
      return;
    }
    if (sampling) {
      if (!sample_memory(child, now() - start)) die("series");
    } else {
      const double began = now();
      look_at_tree(child, 0, NULL);
      tick = next_tick(tick, (long)(1e9 * (now() - began)));
    }
  }
}

// --- the report -------------------------------------------------------------------------------------

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static void print_outcome(const struct outcome* out, bool sampled) {
  const struct rusage* r = &out->usage;
  printf("{\"wall_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, \"peak_rss_kib\": %ld, ", out->wall_s,
         seconds(r->ru_utime), seconds(r->ru_stime), r->ru_maxrss);
  printf("\"minor_faults\": %ld, \"major_faults\": %ld, \"voluntary_switches\": %ld, ", r->ru_minflt, r->ru_majflt,
         r->ru_nvcsw);
  printf("\"involuntary_switches\": %ld, \"exit_code\": %d, \"signal\": %d, \"timed_out\": %s, ", r->ru_nivcsw,
         WIFEXITED(out->status) ? WEXITSTATUS(out->status) : -1, WIFSIGNALED(out->status) ? WTERMSIG(out->status) : 0,
         out->timed_out ? "true" : "false");
  print_counters();
  printf(", ");
  print_processes();
  if (sampled) {
    printf(", ");
    print_series();
  }
  printf("}\n");
}

int main(int argc, char** argv) {
  struct options options = {.output = "/dev/null", .timeout_s = 120};
  unsetenv("LD_PRELOAD");
  const int at = read_options(&options, argc, argv);
  if (at == 0) {
    fprintf(stderr,
            "usage: measure [--preload LIB] [--set N=V] [--unset N] [--timeout S] [--cpus LIST] [--stdout FILE]\n"
            "               [--stderr FILE] [--sample-ms 1..999] -- CMD...\n");
    return 2;
  }
  const struct files files = prepare(&options);

  sigset_t wanted, before;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGINT);
  sigaddset(&wanted, SIGTERM);
  sigprocmask(SIG_BLOCK, &wanted, &before);

  const double start = now();
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) become(argv + at, &options, &files, &before);
  setpgid(child, child);

  struct outcome out = {0};
  watch(child, &options, start, &wanted, &out);
  out.wall_s = now() - start;
  if (out.interrupted) return 130;
  print_outcome(&out, options.sample_ms != 0);
  return 0;
}
