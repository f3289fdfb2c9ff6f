#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# git: a repository with a few hundred commits made on the spot, then log, blame, clone, gc with delta compression in threads,
# and fsck.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need git
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=Tester GIT_AUTHOR_EMAIL=t@example.org GIT_COMMITTER_NAME=Tester GIT_COMMITTER_EMAIL=t@example.org
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
run() {
  rm -rf "$work/repository" "$work/copy"
  with_library git init -q -b main "$work/repository"
  # A fast-import stream is the quickest way to a long history.
  for ((i = 1; i <= 300; ++i)); do
    body=$(for ((j = 0; j < 60; ++j)); do echo "line $j at commit $((j < i ? i - i % (j + 1) : 0))"; done)
    printf 'commit refs/heads/main\ncommitter T <t@example.org> %d +0000\ndata <<E\ncommit %d\nE\n' \
      $((1577836800 + i)) "$i"
    printf 'M 100644 inline folder%d/file\ndata %d\n%s\n\n' $((i % 7)) $((${#body} + 1)) "$body"
  done > "$work/stream"
  with_library git -C "$work/repository" fast-import --quiet < "$work/stream"
  with_library git -C "$work/repository" reset -q --hard main
  equal "commits" 300 "$(with_library git -C "$work/repository" log --oneline | wc -l)"
  equal "lines with blame" 60 "$(with_library git -C "$work/repository" blame folder3/file | wc -l)"
  traced git clone -q --no-local "$work/repository" "$work/copy"
  was_loaded_by git
  with_library git -C "$work/copy" -c pack.threads=2 gc -q --aggressive --prune=now
  with_library git -C "$work/copy" fsck --full --strict
  equal "the copy's head" "$(git -C "$work/repository" rev-parse main)" "$(with_library git -C "$work/copy" rev-parse HEAD)"
  equal "the copy's diff" "" "$(with_library git -C "$work/copy" status --porcelain)"
}
with_both_front_ends run
