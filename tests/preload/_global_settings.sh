# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# For tests that need another setting of the whole system (a sysctl): it is set for a few seconds, by one test at a time
# (flock), and set back by a trap whatever happens. Sourced after _common.sh.

lock_file=${TMPDIR:-/tmp}/brimful-global-settings.lock

# with_setting FILE VALUE COMMAND…: runs the command while the file under /proc/sys holds the value. Skips the test
# when that is not permitted.
with_setting() {
  local file=$1 value=$2
  shift 2
  [ "$(id -u)" = 0 ] || skip "setting $file needs root"
  [ -w "$file" ] || skip "$file can't be written here"
  (
    flock -w 60 9 || fail "the lock of the global settings is never free"
    before=$(cat "$file")
    trap 'echo "$before" > "$file"' EXIT
    trap 'exit 130' INT TERM
    echo "$value" 2> /dev/null > "$file" || exit 77
    [ "$(cat "$file")" = "$value" ] || exit 77
    "$@"
  ) 9> "$lock_file" || {
    local status=$?
    [ "$status" != 77 ] || skip "$file can't be set to $value here"
    fail "with $file = $value: exit $status"
  }
}

# Builds $work/churn: allocates small and large objects from four threads up to about 300 MiB, checks their contents,
# frees them, twice; survives NULL, which must come with ENOMEM; prints "all right" and the MiB it got.
build_churn() {
  need gcc
  cat > "$work/churn.c" << 'PROGRAM'
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { kCount = 60000 };
static long bytes_got;
static void* churn(void* argument) {
  static __thread unsigned char* object[kCount];
  unsigned seed = (unsigned)(size_t)argument;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kCount; ++i) {
      size_t size = i % 500 == 0 ? 200000 : (size_t)(i * 37 + seed) % 1000 + 1;
      errno = 0;
      object[i] = malloc(size);
      if (object[i] == NULL) {
        if (errno != ENOMEM) exit(4);
        continue;
      }
      memset(object[i], i, size);
      __atomic_add_fetch(&bytes_got, (long)size, __ATOMIC_RELAXED);
    }
    for (int i = 0; i < kCount; ++i) {
      if (object[i] != NULL && object[i][0] != (unsigned char)i) exit(5);
      free(object[i]);
    }
  }
  return NULL;
}
int main(void) {
  pthread_t thread[4];
  int started = 0;
  for (; started < 4; ++started)
    if (pthread_create(&thread[started], NULL, churn, (void*)(size_t)(started + 1)) != 0) break;
  for (int i = 0; i < started; ++i) pthread_join(thread[i], NULL);
  for (size_t size = 1 << 20; size <= (size_t)256 << 20; size *= 2) {
    char* large = malloc(size);
    if (large == NULL) continue;
    large[0] = large[size - 1] = 1;
    large = realloc(large, size / 2);
    if (large == NULL || large[0] != 1) exit(6);
    free(large);
  }
  printf("all right %d %ld\n", started, bytes_got >> 20);
}
PROGRAM
  gcc -O1 -fno-builtin -pthread -o "$work/churn" "$work/churn.c"
}
