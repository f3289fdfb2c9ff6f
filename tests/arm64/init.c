// SPDX-License-Identifier: MIT
//
// The first process of the emulated machine (kernel.py): runs the programs that /tests/list names, one after the other, says
// how each ended, and turns the machine off. A line of the list is
//
//   name|seconds|NAME=VALUE NAME=VALUE …|program argument …
//
// and what is printed for it: its output, and `result: NAME: exit CODE` or `signal NUMBER`, or `late` after the seconds.
// No shell: a program that starts a process, opens a file and prints a line is all there is to it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kWords = 64 };

static void split(char* text, char** words) {
  int count = 0;
  for (char* word = strtok(text, " "); word != NULL && count < kWords - 1; word = strtok(NULL, " ")) {
    words[count++] = word;
  }
  words[count] = NULL;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Until the program has ended or its seconds are over. Others that it left behind are collected, too.
static int wait_for(pid_t program, double end, int* status) {
  for (;;) {
    const pid_t ended = waitpid(-1, status, WNOHANG);
    if (ended == program) return 1;
    if (ended > 0) continue;
    if (seconds_now() > end) return 0;
    usleep(10000);
  }
}

static void run(char* line) {
  char* name = strsep(&line, "|");
  const char* seconds = strsep(&line, "|");
  char* environment = strsep(&line, "|");
  char* variables[kWords];
  char* words[kWords];
  if (line == NULL) return;
  split(environment, variables);
  split(line, words);
  printf("begin: %s\n", name);
  const double began = seconds_now();
  const pid_t program = fork();
  if (program == 0) {
    setpgid(0, 0);
    execve(words[0], words, variables);
    perror(words[0]);
    _exit(127);
  }
  int status = 0;
  if (!wait_for(program, began + atof(seconds), &status)) {
    kill(-program, SIGKILL);
    waitpid(program, &status, 0);
    printf("\nresult: %s: late\n", name);
  } else if (WIFEXITED(status)) {
    printf("\nresult: %s: exit %d after %.1f s\n", name, WEXITSTATUS(status), seconds_now() - began);
  } else {
    printf("\nresult: %s: signal %d after %.1f s\n", name, WTERMSIG(status), seconds_now() - began);
  }
}

static void write_to(const char* path, const char* text) {
  const int file = open(path, O_WRONLY);
  if (file < 0 || write(file, text, strlen(text)) < 0) perror(path);
  close(file);
}

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);
  mkdir("/proc", 0755);
  mkdir("/sys", 0755);
  mkdir("/dev", 0755);
  mkdir("/tmp", 01777);
  mount("proc", "/proc", "proc", 0, NULL);
  mount("sysfs", "/sys", "sysfs", 0, NULL);
  mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
  mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
  // The kernel says where a program crashed, with its registers.
  write_to("/proc/sys/debug/exception-trace", "1");
  write_to("/proc/sys/kernel/printk", "7");
  struct utsname machine;
  uname(&machine);
  printf("machine: %s %s, %ld processors, pages of %ld bytes\n", machine.release, machine.machine,
         sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_PAGESIZE));
  FILE* list = fopen("/tests/list", "r");
  char line[4096];
  while (list != NULL && fgets(line, sizeof line, list) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] != '\0') run(line);
  }
  printf("machine: done\n");
  sync();
  reboot(RB_POWER_OFF);
  return 0;
}
