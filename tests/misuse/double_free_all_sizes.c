// SPDX-License-Identifier: MIT
//
// Double frees at every size from 1 byte to 1 GiB. For each size a forked child commits the fault, and this
// program checks what run.py checks for the others: SIGABRT, and exactly one line that begins with the fault
// and names the pointer. Four ways for each size: at once; with neighbours freed in between; memory of
// calloc; after the memory went back to the system. Exit code 0 when all were reported; else each miss is
// printed.
#include "misuse.h"

#include <signal.h>
#include <sys/wait.h>

static const char* const kWays[] = {"at once", "neighbours in between", "calloc", "after the release"};

static void commit(size_t size, int way) {
  char* object = way == 2 ? hide(calloc(size, 1)) : NULL;
  char* neighbour[4];
  if (object == NULL) object = allocate(size);
  int count = size > ((size_t)64 << 20) ? 1 : 4;
  for (int i = 0; i < count; ++i) neighbour[i] = allocate(size);
  free(object);
  if (way != 0)
    for (int i = 0; i < count; ++i) free(neighbour[i]);
  if (way == 3) malloc_trim(0);
  free(about_to_misuse(object));
  _exit(0);
}

static size_t read_all(int descriptor, char* text, size_t capacity) {
  size_t length = 0;
  ssize_t got;
  while ((got = read(descriptor, text + length, capacity - 1 - length)) > 0) length += (size_t)got;
  text[length] = '\0';
  close(descriptor);
  return length;
}

// Returns 1 when the fault was reported as it should be.
static int is_reported(size_t size, int way) {
  int out[2], error[2];
  if (pipe(out) != 0 || pipe(error) != 0) _exit(4);
  pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(error[1], STDERR_FILENO);
    commit(size, way);
  }
  close(out[1]);
  close(error[1]);
  char announced[256], message[4096], expected[128];
  read_all(out[0], announced, sizeof announced);
  read_all(error[0], message, sizeof message);
  int status = 0;
  waitpid(child, &status, 0);
  announced[strcspn(announced, "\n")] = '\0';
  snprintf(expected, sizeof expected, "brimful: double free: free(%.64s): ", announced + strlen("pointer "));
  int is_one_line = strchr(message, '\n') != NULL && strchr(message, '\n')[1] == '\0';
  int is_right = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && is_one_line &&
                 strncmp(message, expected, strlen(expected)) == 0;
  if (!is_right) {
    char line[512];
    snprintf(line, sizeof line, "%zu bytes, %s: %.40s, status %#x, message: %.200s\n", size, kWays[way], announced,
             (unsigned)status, message);
    print_line(line);
  }
  return is_right;
}

int main(void) {
  int sizes = 0, missed = 0;
  // A heap with some life in it, so that the first slab of a class is not always the case.
  for (int i = 0; i < 1000; ++i) free(allocate((size_t)i * 40 + 1));
  for (size_t size = 1; size <= (size_t)1 << 30;) {
    for (int way = 0; way < 4 && missed < 20; ++way) missed += !is_reported(size, way);
    ++sizes;
    if (size == 1)
      size = 8;
    else if (size < 1024)
      size += 8;
    else if (size < 40000)
      size += size / 24 / 8 * 8;
    else if (size < (size_t)1 << 30)
      size = size + size / 3 < (size_t)1 << 30 ? size + size / 3 : (size_t)1 << 30;
    else
      break;
  }
  char line[128];
  snprintf(line, sizeof line, "%d sizes, %d double frees missed\n", sizes, missed);
  print_line(line);
  return missed == 0 ? 0 : 1;
}
