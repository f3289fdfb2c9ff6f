#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Which CPUs a process may run on is not what the machine has, and may change while it runs. A program of eight threads
# that check what they allocate runs where /sys names other CPUs than those that threads run on (in a mount namespace with
# another file in its place), or is missing; on one CPU; under a quota of a cgroup; and in a cpuset that is changed all the
# time; and where a filter refuses rseq to it, from its start or to the threads that it starts. What this machine does not let us do is skipped with its reason; the test counts if anything was done.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need cc unshare taskset
cat > "$work/threads.c" << 'PROGRAM'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static time_t end;
static void refuse_rseq(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rseq, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(77);
}
static void* churn(void* number) {
  enum { kHeld = 64, kRound = 20000 };
  unsigned char* held[kHeld] = {0};
  unsigned char mark = (unsigned char)(size_t)number;
  do {
    for (unsigned i = 0; i < kRound; ++i) {
      unsigned char** object = &held[i * 7 % kHeld];
      if (*object != NULL && (*object)[15] != mark) abort();
      free(*object);
      *object = malloc(16 + i * 37 % 3000);
      memset(*object, mark, 16);
    }
  } while (time(NULL) < end);
  for (unsigned i = 0; i < kHeld; ++i) free(held[i]);
  return NULL;
}
int main(int count, char** arguments) {
  free(malloc(1));  // the library begins before the filter
  if (count > 2) refuse_rseq();
  if (count > 3) execl(arguments[0], arguments[0], arguments[1], (char*)NULL);
  end = time(NULL) + (count > 1 ? atoi(arguments[1]) : 0);
  pthread_t threads[8];
  for (size_t i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, churn, (void*)i);
  for (size_t i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  return 0;
}
PROGRAM
cc -O1 -fno-builtin -pthread -o "$work/threads" "$work/threads.c"
runs=0

# run WHAT PATTERN COMMAND…: the command succeeds, and the library's first line matches.
run() {
  local what=$1 pattern=$2
  shift 2
  conf=verbose:1 with_library "$@" "$work/threads" 2> "$work/said" || fail "$what: exit code $?: $(cat "$work/said")"
  grep -q "$pattern" "$work/said" || fail "$what: not \"$pattern\" but $(cat "$work/said")"
  runs=$((runs + 1))
  echo "ok   $what"
}

not_here() { echo "skip $*"; }

run "the machine as it is" "front end"
run "one CPU" "front end" taskset -c "$(taskset -cp $$ | sed 's/.*[ ,-]//')"

# The first argument is how many seconds to run; a second one refuses rseq to new threads, a third one from the start.
# glibc itself ends the process when it can't register a new thread, so there the area is our own.
if "$work/threads" 0 refuse exec; then
  conf=verbose:1
  GLIBC_TUNABLES=glibc.pthread.rseq=0 with_library "$work/threads" 1 refuse 2> "$work/said" ||
    fail "rseq refused to new threads: exit code $?: $(cat "$work/said")"
  grep -q 'percpu.*our own\|thread' "$work/said" || fail "rseq refused to new threads: $(cat "$work/said")"
  echo "ok   rseq refused to new threads: $(sed 's/.*front end //' "$work/said")"
  with_library "$work/threads" 0 refuse exec 2> "$work/said" ||
    fail "rseq refused: exit code $?: $(cat "$work/said")"
  tail -n 1 "$work/said" | grep -q 'front end thread' || fail "rseq refused: $(cat "$work/said")"
  echo "ok   rseq refused from the start: $(tail -n 1 "$work/said" | sed 's/.*front end //')"
else
  not_here "rseq refused: no filters for this user"
fi

# What the namespace's own shell does is not preloaded: LD_PRELOAD is set behind it.
if unshare -m true 2> /dev/null; then
  for list in 0 0,4-7 0-8191 0-99999999 "" none; do
    echo "$list" > "$work/possible"
    # shellcheck disable=SC2016  # the inner shell expands its own arguments
    unshare -m bash -c 'mount --bind "$1" /sys/devices/system/cpu/possible || exit
      LD_PRELOAD=$2 BRIMFUL_CONF=verbose:1 "$3"' - "$work/possible" "$library" "$work/threads" 2> "$work/said" ||
      fail "possible CPUs \"$list\": exit code $?: $(cat "$work/said")"
    echo "ok   possible CPUs \"$list\": $(sed 's/.*front end //' "$work/said")"
  done
  # shellcheck disable=SC2016  # as above
  unshare -m bash -c 'mount -t tmpfs none /sys || exit
    LD_PRELOAD=$1 BRIMFUL_CONF=verbose:1 "$2"' - "$library" "$work/threads" 2> "$work/said" ||
    fail "no /sys: exit code $?: $(cat "$work/said")"
  echo "ok   no /sys: $(sed 's/.*front end //' "$work/said")"
else
  not_here "other lists of CPUs: no mount namespace for this user"
fi

# make_group CONTROLLER: a cgroup for this test, version 1 or 2. Sets $group; fails where that is not allowed.
make_group() {
  local base
  for base in "/sys/fs/cgroup/$1" /sys/fs/cgroup; do
    [ -e "$base/cgroup.procs" ] || continue
    [ "$base" != /sys/fs/cgroup ] || grep -qw "$1" "$base/cgroup.subtree_control" || continue
    mkdir "$base/brimful-test-$$" 2> /dev/null || continue
    group=$base/brimful-test-$$
    return
  done
  return 1
}

group=
remove_group() {
  wait_for 10 rmdir "$group"
  group=
}
# A failure ends the test with the program still in its group: it goes first.
leave_group() {
  local status=$?
  if [ -n "$group" ]; then
    kill "${started_processes[@]}" 2> /dev/null || true
    wait_for 10 rmdir "$group"
  fi
  (exit "$status")
  clean_up
}
trap leave_group EXIT

# in_group SECONDS: the program in the group, in the background.
in_group() {
  bash -c 'echo $$ > "$1/cgroup.procs" && LD_PRELOAD=$2 exec "$3" "$4"' - "$group" "$library" "$work/threads" "$1" &
  started_processes+=($!)
}

if make_group cpu; then
  if [ -e "$group/cpu.max" ]; then echo "20000 100000" > "$group/cpu.max"; else echo 20000 > "$group/cpu.cfs_quota_us"; fi
  in_group 2
  wait $! || fail "a quota of a fifth of a CPU: exit code $?"
  remove_group
  runs=$((runs + 1))
  echo "ok   a quota of a fifth of a CPU"
else
  not_here "a quota: no cgroup can be made here"
fi

if [ "$(nproc)" -lt 2 ]; then
  not_here "a cpuset that changes: one CPU only"
elif make_group cpuset; then
  cat "${group%/*}/cpuset.mems" > "$group/cpuset.mems" 2> /dev/null || true
  all=$(cat "${group%/*}"/cpuset.{effective_cpus,cpus.effective} 2> /dev/null || true)
  first=${all%%[,-]*}
  last=${all##*[,-]}
  echo "$all" > "$group/cpuset.cpus"
  in_group 3
  changes=0
  while kill -0 $! 2> /dev/null; do
    for cpus in "$first" "$last" "$all"; do
      echo "$cpus" > "$group/cpuset.cpus"
      sleep 0.02
    done
    changes=$((changes + 3))
  done
  wait $! || fail "a cpuset that changes: exit code $?"
  remove_group
  [ "$changes" -gt 10 ] || fail "the cpuset was changed $changes times only"
  runs=$((runs + 1))
  echo "ok   a cpuset that changed $changes times"
else
  not_here "a cpuset that changes: no cgroup can be made here"
fi
[ "$runs" -gt 0 ]
