#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# redis-server under redis-benchmark on a unix socket: strings, lists, sorted sets and pipelines; then a check of the data, a
# background save (fork), and the memory back after FLUSHALL.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need redis-server redis-cli redis-benchmark

# memory_of FIELD: a number of INFO memory.
memory_of() { redis-cli -s "$socket" info memory | tr -d '\r' | sed -n "s/^$1://p"; }

check_memory_report() {
  grep -q 'mem_allocator:jemalloc' <(redis-cli -s "$socket" info memory) || return 0 # built for another allocator
  redis-cli -s "$socket" config set activedefrag no > /dev/null
  redis-cli -s "$socket" eval 'for i = 1, 20000 do redis.call("set", "fill:" .. i, string.rep("x", 500)) end' 0 > /dev/null
  local used allocated active resident
  # Redis looks ten times a second.
  for ((i = 0; i < 50; ++i)); do
    used=$(memory_of used_memory) allocated=$(memory_of allocator_allocated)
    [ "$allocated" -ge "$((used * 9 / 10))" ] && break
    sleep 0.1
  done
  active=$(memory_of allocator_active) resident=$(memory_of allocator_resident)
  [ "$used" -ge 10000000 ] || fail "redis uses $used bytes only"
  if [ "$allocated" -lt "$((used * 9 / 10))" ] || [ "$allocated" -gt "$((used * 13 / 10))" ]; then
    fail "redis uses $used bytes, and hears of $allocated"
  fi
  if [ "$active" -lt "$allocated" ] || [ "$resident" -lt "$active" ]; then
    fail "allocated $allocated, active $active, resident $resident"
  fi
  equal "MEMORY PURGE" OK "$(redis-cli -s "$socket" memory purge)"
  grep -q '^brimful: statistics of process' <(redis-cli -s "$socket" memory malloc-stats) || fail "MEMORY MALLOC-STATS"
}

run() {
  socket=$work/socket
  with_library redis-server --port 0 --unixsocket "$socket" --dir "$work" --save '' --daemonize no \
    > "$work/server.log" 2>&1 &
  local launcher=$!
  started_processes+=("$launcher")
  wait_for 10 redis-cli -s "$socket" ping
  local server
  server=$(redis-cli -s "$socket" info server | tr -d '\r' | sed -n 's/^process_id://p')
  is_mapped_in "$server"
  timeout 60 redis-benchmark -s "$socket" -q -n 20000 -c 20 -P 8 -d 200 -r 5000 \
    -t set,get,incr,lpush,lpop,sadd,hset,zadd,lrange_100,mset > "$work/benchmark" 2>&1 || fail "$(cat "$work/benchmark")"
  for ((i = 0; i < 3000; ++i)); do printf 'SET check:%d %0*d\r\n' "$i" $((i % 400 + 10)) "$i"; done \
    | redis-cli -s "$socket" --pipe > "$work/pipe"
  grep -q 'errors: 0, replies: 3000' "$work/pipe" || fail "$(cat "$work/pipe")"
  equal "a value" "$(printf '%0*d' $((2999 % 400 + 10)) 2999)" "$(redis-cli -s "$socket" get check:2999)"
  check_memory_report
  redis-cli -s "$socket" bgsave > /dev/null
  wait_for 10 bash -c "redis-cli -s '$socket' info persistence | grep -q 'rdb_bgsave_in_progress:0'"
  redis-cli -s "$socket" info persistence | grep -q 'rdb_last_bgsave_status:ok' || fail "the background save failed"
  equal "FLUSHALL" OK "$(redis-cli -s "$socket" flushall)"
  redis-cli -s "$socket" shutdown nosave || true
  wait "$launcher" || fail "redis-server ended with $?: $(tail -n 5 "$work/server.log")"
  started_processes=()
}
with_both_front_ends run
