// SPDX-License-Identifier: MIT
//
// What can be seen from outside of a command and everything below it: which allocators are mapped, and how much memory.
//
// The maps of every process (a compiler driver's cc1plus and as too) are read a few times each, and every mapped file
// that was preloaded or whose name smells of an allocator is noted, so that a preload that the loader refused is visible
// instead of being measured as if it were there. The loader maps preloaded libraries before libc: a process that shows
// libc without the library runs without it, one that shows neither was looked at too early or is static. The reading is the
// same for every allocator, so it cannot favour one.
//
// Memory is read from /proc/PID/smaps_rollup (proc(5)), only when asked for: the kernel walks the page tables for it
// and holds the process's memory map meanwhile, which a timed run must not suffer. RSS counts a page once for each
// process that maps it, PSS divides it among them; AnonHugePages are those mapped as a whole (2 MiB on x86-64).
//
// Reading either needs the right to trace the process. A set-user-id program, or one in another user namespace, refuses;
// it is then marked "unreadable" and nothing is concluded from what it did not show.
#pragma once

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum {
  kMaxProcesses = 64,
  kMaxLibraries = 8,
  kPathBytes = 512,
  kLooksPerProcess = 4,  // the first look may find the loader still at work; more would only disturb
  kMaxDepth = 8,
};

struct process {
  pid_t pid;
  int looks;
  int libraries;
  bool unreadable;  // the kernel refuses to show it
  char name[32];    // what the process calls itself; the file may be a link's target
  char exe[kPathBytes];
  char library[kMaxLibraries][kPathBytes];
};

struct memory {
  double at_s;
  long rss_kib, pss_kib, huge_kib;
};

static struct process g_seen[kMaxProcesses];
static int g_seen_count;
static char g_preloaded[PATH_MAX];  // the library under test as maps will show it; "" if there is none
static struct memory* g_series;
static int g_series_count;
static int g_series_room;

// The name under which /proc/PID/maps lists what is preloaded: the kernel knows no symbolic links.
static void expect_library(const char* path) {
  if (realpath(path, g_preloaded) == NULL) g_preloaded[0] = 0;
}

// Whether a mapped file can be what serves malloc. libc is noted too: it is there in every dynamic process, and if
// nothing else is, it is the allocator.
static bool is_allocator(const char* path) {
  static const char* const kWords[] = {"malloc", "brimful", "/libc.so", "/libc-",
                                       "hoard",  "scudo",   "/libmesh", "ld-musl"};
  if (strcmp(path, g_preloaded) == 0) return true;
  const char* name = strrchr(path, '/');
  if (name == NULL) return false;
  for (size_t i = 0; i < sizeof kWords / sizeof *kWords; i++) {
    if (strstr(name, kWords[i]) != NULL) return true;
  }
  return false;
}

static bool has_library(const struct process* p, const char* path) {
  for (int i = 0; i < p->libraries; i++) {
    if (strcmp(p->library[i], path) == 0) return true;
  }
  return false;
}

static void note_library(struct process* p, const char* path) {
  if (!has_library(p, path) && p->libraries < kMaxLibraries)
    snprintf(p->library[p->libraries++], kPathBytes, "%s", path);
}

// Opens /proc/`pid`/`name`; NULL if the process has ended, or refuses, which is noted in `refused`.
static FILE* open_proc(pid_t pid, const char* name, bool* refused) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  FILE* file = fopen(path, "re");
  if (file == NULL && (errno == EACCES || errno == EPERM)) *refused = true;
  return file;
}

static void read_name(struct process* p) {
  FILE* file = open_proc(p->pid, "comm", &p->unreadable);
  if (file == NULL) return;
  if (fgets(p->name, sizeof p->name, file) != NULL) p->name[strcspn(p->name, "\n")] = 0;
  fclose(file);
}

// Adds what the maps show to `p`. False if they were not read to their end: a process that exits meanwhile shows the
// lower part of its addresses only. The stack is the last of a process's own mappings.
static bool read_maps(struct process* p) {
  char line[kPathBytes + 128];
  bool whole = false;
  FILE* file = open_proc(p->pid, "maps", &p->unreadable);
  if (file == NULL) return false;
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = 0;
    if (strstr(line, "[stack]") != NULL) whole = true;
    char* path = strchr(line, '/');
    if (path != NULL && is_allocator(path)) note_library(p, path);
  }
  fclose(file);
  return whole;
}

// Notes the allocators of `p`. Maps are read piecemeal while the loader adds to them, so the library may have come in
// behind the reader: if it is not there, a second reading, begun after all that the first one saw, decides.
static void look_at_maps(struct process* p) {
  static struct process fresh;
  fresh.pid = p->pid;
  fresh.libraries = 0;
  fresh.unreadable = false;
  bool whole = read_maps(&fresh);
  if (whole && g_preloaded[0] != 0 && !has_library(&fresh, g_preloaded)) whole = read_maps(&fresh);
  if (fresh.unreadable) p->unreadable = true;
  for (int i = 0; whole && i < fresh.libraries; i++) note_library(p, fresh.library[i]);
}

// The record of the program that `pid` runs now; NULL if there is none to be had. A process that has forked and not
// yet exec'd is still a copy of this program: not of interest.
static struct process* find_process(pid_t pid) {
  static char self[kPathBytes];
  char name[64], exe[kPathBytes];
  snprintf(name, sizeof name, "/proc/%d/exe", pid);
  const ssize_t length = readlink(name, exe, sizeof exe - 1);
  const bool refused = length < 0 && (errno == EACCES || errno == EPERM);
  if (length <= 0 && !refused) return NULL;
  exe[refused ? 0 : length] = 0;
  if (self[0] == 0 && readlink("/proc/self/exe", self, sizeof self - 1) <= 0) self[0] = '?';
  if (strcmp(exe, self) == 0) return NULL;
  for (int i = 0; i < g_seen_count; i++) {
    if (g_seen[i].pid == pid && strcmp(g_seen[i].exe, exe) == 0) return &g_seen[i];
  }
  if (g_seen_count == kMaxProcesses) return NULL;
  struct process* p = &g_seen[g_seen_count++];
  p->pid = pid;
  p->unreadable = refused;
  memcpy(p->exe, exe, sizeof exe);
  return p;
}

static void add_memory(struct process* p, struct memory* sum) {
  char line[256];
  FILE* file = open_proc(p->pid, "smaps_rollup", &p->unreadable);
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    long kib = 0;
    if (sscanf(line, "Rss: %ld", &kib) == 1) sum->rss_kib += kib;
    if (sscanf(line, "Pss: %ld", &kib) == 1) sum->pss_kib += kib;
    if (sscanf(line, "AnonHugePages: %ld", &kib) == 1) sum->huge_kib += kib;
  }
  fclose(file);
}

static void look_at(pid_t pid, struct memory* sum) {
  struct process* p = find_process(pid);
  if (p == NULL) return;
  if (p->looks < kLooksPerProcess) {
    p->looks++;
    read_name(p);
    look_at_maps(p);
  }
  if (sum != NULL) add_memory(p, sum);
}

// Visits `pid` and everything below it; adds up their memory if `sum` is given. The kernel lists children by the
// thread that forked them.
static void look_at_tree(pid_t pid, int depth, struct memory* sum) {
  look_at(pid, sum);
  if (depth == kMaxDepth) return;
  char name[96];
  snprintf(name, sizeof name, "/proc/%d/task", pid);
  DIR* tasks = opendir(name);
  if (tasks == NULL) return;
  for (struct dirent* task; (task = readdir(tasks)) != NULL;) {
    if (!isdigit((unsigned char)task->d_name[0])) continue;
    snprintf(name, sizeof name, "/proc/%d/task/%.20s/children", pid, task->d_name);
    FILE* file = fopen(name, "re");
    if (file == NULL) continue;
    for (int child; fscanf(file, "%d", &child) == 1;) look_at_tree(child, depth + 1, sum);
    fclose(file);
  }
  closedir(tasks);
}

// Looks at the tree and keeps its memory as a point of the series. A look that found nothing (before the exec, after
// the end) is no point. Returns false if there is no memory for it.
static bool sample_memory(pid_t pid, double at_s) {
  struct memory sum = {at_s, 0, 0, 0};
  look_at_tree(pid, 0, &sum);
  if (sum.rss_kib == 0) return true;
  if (g_series_count == g_series_room) {
    g_series_room = g_series_room == 0 ? 1024 : 2 * g_series_room;
    struct memory* larger = realloc(g_series, (size_t)g_series_room * sizeof *larger);
    if (larger == NULL) return false;
    g_series = larger;
  }
  g_series[g_series_count++] = sum;
  return true;
}

static void print_string(const char* text) {
  putchar('"');
  for (; *text != 0; text++) {
    if (*text == '"' || *text == '\\') putchar('\\');
    if ((unsigned char)*text >= ' ') putchar(*text);
  }
  putchar('"');
}

static void print_processes(void) {
  printf("\"processes\": [");
  for (int i = 0; i < g_seen_count; i++) {
    printf("%s{\"name\": ", i == 0 ? "" : ", ");
    print_string(g_seen[i].name);
    printf(", \"exe\": ");
    print_string(g_seen[i].exe);
    printf(", \"unreadable\": %s, \"allocators\": [", g_seen[i].unreadable ? "true" : "false");
    for (int k = 0; k < g_seen[i].libraries; k++) {
      if (k != 0) printf(", ");
      print_string(g_seen[i].library[k]);
    }
    printf("]}");
  }
  printf("]");
}

static void print_series(void) {
  printf("\"series\": {\"t_s\": [");
  for (int i = 0; i < g_series_count; i++) printf("%s%.4f", i == 0 ? "" : ", ", g_series[i].at_s);
  printf("], \"rss_kib\": [");
  for (int i = 0; i < g_series_count; i++) printf("%s%ld", i == 0 ? "" : ", ", g_series[i].rss_kib);
  printf("], \"pss_kib\": [");
  for (int i = 0; i < g_series_count; i++) printf("%s%ld", i == 0 ? "" : ", ", g_series[i].pss_kib);
  printf("], \"huge_kib\": [");
  for (int i = 0; i < g_series_count; i++) printf("%s%ld", i == 0 ? "" : ", ", g_series[i].huge_kib);
  printf("]}");
}
