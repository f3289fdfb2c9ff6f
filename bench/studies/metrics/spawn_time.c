// SPDX-License-Identifier: MIT
//
// spawn_time: how long a program takes from vfork to the end of wait, under several environments that
// take turns.
//
//   spawn_time ROUNDS SEED PROGRAM [ARGUMENT]... -- ENVIRONMENT...
//
// Each ENVIRONMENT is a blank-separated list of NAME=VALUE (it may be empty). In each round every
// environment runs once, in an order drawn anew. Output: one line per run, "environment nanoseconds";
// the reader compares the runs of one round. Differences of tenths of a millisecond are what is looked
// for, so nothing but vfork, exec and wait lies between the two clock readings, and this program is linked
// statically and stays small.

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMaxEnvironments = 16, kMaxVariables = 8 };

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t run(char** command, char** environment) {
  const int64_t start = now();
  const pid_t child = vfork();
  if (child == 0) {
    execve(command[0], command, environment);
    _exit(127);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    fprintf(stderr, "spawn_time: %s failed: status %d\n", command[0], status);
    exit(1);
  }
  return now() - start;
}

int main(int argc, char** argv) {
  int split = 3;
  while (split < argc && strcmp(argv[split], "--") != 0) split++;
  const int count = argc - split - 1;
  if (argc < 6 || split == 3 || count < 1 || count > kMaxEnvironments) {
    fprintf(stderr, "usage: spawn_time ROUNDS SEED PROGRAM [ARGUMENT]... -- ENVIRONMENT...\n");
    return 2;
  }
  argv[split] = NULL;
  static char* environments[kMaxEnvironments][kMaxVariables + 1];
  for (int i = 0; i < count; i++) {
    int at = 0;
    for (char* word = strtok(argv[split + 1 + i], " "); word != NULL && at < kMaxVariables; word = strtok(NULL, " ")) {
      environments[i][at++] = word;
    }
  }
  uint64_t random = strtoull(argv[2], NULL, 10) * 2 + 1;
  const int rounds = atoi(argv[1]);
  int order[kMaxEnvironments];
  for (int i = 0; i < count; i++) order[i] = i;
  for (int round = 0; round < rounds; round++) {
    for (int i = count - 1; i > 0; i--) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const int j = (int)((random >> 33) % (uint64_t)(i + 1));
      const int other = order[j];
      order[j] = order[i];
      order[i] = other;
    }
    for (int i = 0; i < count; i++) printf("%d %lld\n", order[i], (long long)run(argv + 3, environments[order[i]]));
  }
  return 0;
}
