#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What a sandbox takes away from all that a process does, from its start: system calls that a filter refuses, by EPERM and by
# ENOSYS; /proc and /sys; memory of the control group, while the program runs. The program works on, in whichever way is left. And SIGKILL at
# any moment leaves nothing behind: no file, no shared memory, no page of the HugeTLB pool. What this machine does not let us
# do is skipped with its reason; the test counts if the filters were tried.
#
# (Calls that fail for the library alone, each in turn: refusals.py.)
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need gcc unshare
cat > "$work/filter.c" << 'PROGRAM'
/* filter NUMBER CALL… -- COMMAND: the calls fail by the error of this number. As a shared object, preloaded, it does the same
   before main(), for calls without which no program can be loaded; REFUSED_CALL and REFUSED_ERROR name them. */
#define _GNU_SOURCE 1
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static const struct { const char* name; unsigned number; } kCalls[] = {
    {"membarrier", SYS_membarrier}, {"rseq", SYS_rseq}, {"madvise", SYS_madvise}, {"mincore", SYS_mincore},
    {"get_mempolicy", SYS_get_mempolicy}, {"mbind", SYS_mbind}, {"getcpu", SYS_getcpu}, {"prctl", SYS_prctl},
    {"sched_getaffinity", SYS_sched_getaffinity}, {"prlimit64", SYS_prlimit64}, {"mremap", SYS_mremap},
    {"sched_yield", SYS_sched_yield}, {"openat", SYS_openat}, {"munmap", SYS_munmap}, {"mprotect", SYS_mprotect}};
static void refuse(const char* name, unsigned error) {
  for (size_t i = 0; i < sizeof kCalls / sizeof *kCalls; ++i) {
    if (strcmp(kCalls[i].name, name) != 0) continue;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCalls[i].number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) _exit(77);
    return;
  }
  _exit(78);
}
#ifdef PRELOADED
__attribute__((constructor)) static void start(void) { refuse(getenv("REFUSED_CALL"), (unsigned)atoi(getenv("REFUSED_ERROR"))); }
#else
int main(int count, char** word) {
  int i = 2;
  for (; i < count && strcmp(word[i], "--") != 0; ++i) refuse(word[i], (unsigned)atoi(word[1]));
  if (i + 1 < count) execvp(word[i + 1], word + i + 1);
  return i + 1 < count ? 79 : 0;
}
#endif
PROGRAM
cat > "$work/program.c" << 'PROGRAM'
/* Threads, forks, blocks of all sizes; each byte at their ends checked. program [SECONDS]. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static time_t end;
static void* churn(void* number) {
  enum { kHeld = 128 };
  unsigned char* held[kHeld] = {0};
  size_t bytes[kHeld] = {0};
  unsigned char mark = (unsigned char)(size_t)number;
  do {
    for (unsigned i = 0; i < 3000; ++i) {
      unsigned k = i * 7 % kHeld;
      if (held[k] != NULL && (held[k][0] != mark || held[k][bytes[k] - 1] != mark)) abort();
      size_t wanted = i % 16 == 0 ? 40000 + i * 97 % 900000 : 16 + i * 37 % 3000;
      unsigned char* block = i % 3 == 0 ? realloc(held[k], wanted) : (free(held[k]), malloc(wanted));
      if (block == NULL) abort();
      held[k] = block;
      bytes[k] = wanted;
      block[0] = block[wanted - 1] = mark;
    }
  } while (time(NULL) < end);
  for (unsigned i = 0; i < kHeld; ++i) free(held[i]);
  return NULL;
}
int main(int count, char** words) {
  end = time(NULL) + (count > 1 ? atoi(words[1]) : 0);
  pthread_t threads[4];
  for (size_t i = 0; i < 4; ++i) if (pthread_create(&threads[i], NULL, churn, (void*)(i + 1)) != 0) return 2;
  pid_t child = fork();
  if (child == 0) { churn((void*)9); _exit(0); }
  for (size_t i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 3;
  malloc_trim(0);
  churn((void*)7);
  return 0;
}
PROGRAM
cat > "$work/holder.c" << 'PROGRAM'
/* Holds 40 MiB, has freed 120, and goes on with a few small calls. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  static char* block[160];
  for (int i = 0; i < 160; ++i) memset(block[i] = malloc(1 << 20), 1, 1 << 20);
  for (int i = 0; i < 160; ++i) if (i % 4 != 0) free(block[i]);
  if (write(1, "ready\n", 6) != 6) return 1;
  for (;;) { free(malloc(100)); free(malloc(70000)); usleep(5000); }
}
PROGRAM
gcc -O1 -o "$work/filter" "$work/filter.c"
gcc -O1 -DPRELOADED -fPIC -shared -o "$work/filter.so" "$work/filter.c"
gcc -O1 -fno-builtin -pthread -o "$work/program" "$work/program.c"
gcc -O1 -fno-builtin -o "$work/holder" "$work/holder.c"
not_here() { echo "skip $*"; }

"$work/filter" 1 membarrier || skip "no filters for this user"
optional="membarrier rseq madvise mincore get_mempolicy mbind getcpu prctl sched_getaffinity prlimit64 mremap sched_yield"
for error in 1 38; do # EPERM, ENOSYS
  for calls in $optional "$optional"; do
    # shellcheck disable=SC2086  # the calls are words
    "$work/filter" "$error" $calls -- env LD_PRELOAD="$library" BRIMFUL_CONF="$conf" timeout -k 5 60 "$work/program" 2> "$work/said" ||
      fail "error $error of $calls: exit code $?: $(cat "$work/said")"
    [ ! -s "$work/said" ] || fail "error $error of $calls: $(cat "$work/said")"
  done
  # No library can be loaded without openat(2), and no thread started without mprotect(2).
  for call in openat munmap; do
    REFUSED_CALL=$call REFUSED_ERROR=$error timeout -k 5 60 env LD_PRELOAD="$work/filter.so $library" "$work/program" 2> "$work/said" ||
      fail "error $error of $call: exit code $?: $(cat "$work/said")"
  done
  echo "ok   error $error of each of $optional openat munmap, and of all but the last two at once"
done

if unshare -m true 2> /dev/null; then
  for front_end in percpu thread; do
    # shellcheck disable=SC2016  # the inner shell expands its own arguments
    unshare -m bash -c 'mount -t tmpfs none /proc && mount -t tmpfs none /sys || exit
      LD_PRELOAD=$1 BRIMFUL_CONF=background_thread:1,thp:always,limit:auto,soft_limit:auto,front_end:$3 exec "$2"' - \
      "$library" "$work/program" "$front_end" 2> "$work/said" ||
      fail "no /proc and no /sys: exit code $?: $(cat "$work/said")"
  done
  echo "ok   no /proc and no /sys"
  # shellcheck disable=SC2016  # as above
  unshare -m bash -c 'mount -t tmpfs none /dev/shm && mount -t tmpfs none /var/tmp || exit
    mkdir /var/tmp/inner && export TMPDIR=/var/tmp/inner && cd /var/tmp/inner || exit
    free_pages() { cat /sys/kernel/mm/hugepages/*/free_hugepages; }
    before=$(free_pages)
    for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
      LD_PRELOAD=$1 BRIMFUL_CONF=prof:4096,guards:100,hugetlb:2M,background_thread:1,print_stats:exit,leaks:exit "$2" 5 &
      sleep "0.0$n"
      kill -9 $!
      wait $! 2> /dev/null
    done
    sleep 0.2  # for the children that it had forked
    left=$(find /dev/shm /var/tmp/inner -mindepth 1)
    [ -z "$left" ] || { echo "left behind: $left"; exit 1; }
    after=$(free_pages)
    [ "$before" = "$after" ] || { echo "pages of the pool: $before before, $after after"; exit 1; }' - \
    "$library" "$work/program" > "$work/said" 2>&1 || fail "SIGKILL: $(tail -n 3 "$work/said")"
  echo "ok   SIGKILL at 15 moments leaves nothing behind"
else
  not_here "no /proc, no /sys; SIGKILL: no mount namespace for this user"
fi

# group_of_memory: sets $group and the name of its limit; fails where that is not allowed.
group_of_memory() {
  local base
  limit=memory.max
  for base in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    [ -e "$base/cgroup.procs" ] || continue
    if [ "$base" = /sys/fs/cgroup ]; then
      grep -qw memory "$base/cgroup.subtree_control" || continue
    else
      limit=memory.limit_in_bytes
    fi
    mkdir "$base/brimful-shrink-$$" 2> /dev/null || continue
    group=$base/brimful-shrink-$$
    echo $((256 << 20)) 2> /dev/null > "$group/$limit" && return
    rmdir "$group"
  done
  return 1
}
if group_of_memory; then
  bash -c 'echo $$ > "$1/cgroup.procs" && LD_PRELOAD=$2 exec "$3"' - "$group" "$library" "$work/holder" > "$work/said" &
  holder=$!
  leave_group() {
    local status=$?
    kill -9 "$holder" 2> /dev/null || true
    { wait "$holder" || true; } 2> /dev/null
    wait_for 10 rmdir "$group"
    (exit "$status")
    clean_up
  }
  trap leave_group EXIT
  used() { cat "$group"/memory.{usage_in_bytes,current} 2> /dev/null; }
  wait_for 20 grep -q ready "$work/said"
  # Version 1 refuses a limit below what is in use; so it is tried until what was freed is given back.
  for mib in 128 96 72; do
    # shellcheck disable=SC2016  # as above
    wait_for 20 bash -c 'echo "$1" > "$2"' - "$((mib << 20))" "$group/$limit"
    kill -0 "$holder" || fail "killed at $mib MiB"
  done
  sleep 0.3
  kill -0 "$holder" || fail "killed in a group that shrank to 72 MiB"
  echo "ok   a control group that shrinks from 256 to 72 MiB: $(($(used) >> 20)) MiB in use"
else
  not_here "a group that shrinks: no control group with a memory limit can be made here"
fi
