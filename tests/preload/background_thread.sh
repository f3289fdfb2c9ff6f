#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The C library frees the thread-local storage of a joined thread while it holds the lock of its list of stacks. A thread of
# ours that was started in that free() would wait for the lock for ever. Here that free() is the first call that finds a
# heap of more than 4 MiB, which is worth a thread, and a look at the clock due.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need gcc
cat > "$work/large.c" << 'PROGRAM'
static __thread char large[8 << 20];
char* touch(void) { large[5] = 1; return large; }
PROGRAM
cat > "$work/host.c" << 'PROGRAM'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
static char* (*touch)(void);
static void* run(void* argument) {
  touch();
  usleep(30000);
  return argument;
}
int main(int argc, char** argv) {
  void* plugin = dlopen(argv[argc - 1], RTLD_NOW);
  if (plugin == NULL) return 1;
  touch = (char* (*)(void))dlsym(plugin, "touch");
  enum { STACK = 1 << 20 };
  void* stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, STACK);
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, run, NULL) != 0 || pthread_join(thread, NULL) != 0) return 2;
    usleep(20000);
  }
  puts("joined");
}
PROGRAM
gcc -O1 -fPIC -shared -o "$work/large.so" "$work/large.c"
gcc -O1 -o "$work/host" "$work/host.c" -ldl -pthread
# Where it hangs, it does so with its signals blocked; with_library kills it then.
time_limit=20
for thread in 1 auto; do
  for front_end in percpu thread; do
    conf=background_thread:$thread,front_end:$front_end
    answer=$(with_library "$work/host" "$work/large.so") || fail "with $conf it hangs, or fails with $?"
    [ "$answer" = joined ] || fail "with $conf it says: $answer"
  done
done
