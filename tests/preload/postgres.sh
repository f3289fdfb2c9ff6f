#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# PostgreSQL: initdb, a server on a unix socket only, pgbench with several clients, an index build and a sort that fills
# work_mem, as an unprivileged user when the test runs as root.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need pgbench psql
binaries=
for folder in "$(dirname "$(realpath "$(command -v initdb || echo /nowhere/initdb)")")" /usr/lib/postgresql/*/bin; do
  if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then binaries=$folder; fi
done
[ -n "$binaries" ] || skip "initdb and postgres are not installed"
as_user=()
if [ "$(id -u)" = 0 ]; then
  user=nobody
  if id postgres > /dev/null 2>&1; then user=postgres; fi
  need setpriv
  chown "$user" "$work"
  as_user=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups env HOME="$work" USER="$user")
else
  user=$(id -un)
fi
[ "${#work}" -lt 80 ] || skip "the path of the temporary folder is too long for a socket"
cd "$work"
# setpriv changes the user first and then runs the preloaded program: the environment crosses no secure execution.
"${as_user[@]}" timeout 60 env LD_PRELOAD="$library" BRIMFUL_CONF="$conf" \
  "$binaries/initdb" -D "$work/data" -U tester --auth=trust --no-sync > "$work/initdb.log" 2>&1 \
  || fail "initdb: $(tail -n 5 "$work/initdb.log")"
"${as_user[@]}" timeout -k 5 60 env LD_PRELOAD="$library" BRIMFUL_CONF="$conf" \
  "$binaries/postgres" -D "$work/data" -k "$work" -c listen_addresses= -c fsync=off -c shared_buffers=32MB \
  > "$work/server.log" 2>&1 &
started_processes+=("$!")
wait_for 20 psql -h "$work" -U tester -d postgres -c 'SELECT 1'
is_mapped_in "$(head -n 1 "$work/data/postmaster.pid")"
backend=$(psql -h "$work" -U tester -d postgres -Atc "SELECT pg_backend_pid(), string_agg(line, '')
  FROM regexp_split_to_table(pg_read_file('/proc/self/maps', 0, 1000000, true), '\n') AS line WHERE line LIKE '%$(basename "$library")%'")
case $backend in *"$(basename "$library")"*) ;; *) fail "a backend runs without the library: $backend" ;; esac
timeout 60 pgbench -h "$work" -U tester -i -s 2 -q postgres > "$work/init.log" 2>&1 || fail "pgbench -i: $(tail -n 3 "$work/init.log")"
timeout 60 pgbench -h "$work" -U tester -c 4 -j 2 -T 5 postgres > "$work/bench.log" 2>&1 || fail "pgbench: $(tail -n 3 "$work/bench.log")"
grep -Eq 'number of failed transactions: 0|number of transactions actually processed: [1-9]' "$work/bench.log" \
  || fail "pgbench: $(cat "$work/bench.log")"
equal "the accounts still balance" "0" "$(psql -h "$work" -U tester -d postgres -Atc \
  'SELECT (SELECT sum(abalance) FROM pgbench_accounts) - (SELECT sum(tbalance) FROM pgbench_tellers)')"
equal "sorting and hashing" "200000 2" "$(psql -h "$work" -U tester -d postgres -At -F ' ' -c "
  SET work_mem = '64MB';
  SELECT count(*), count(DISTINCT bid) FROM (SELECT * FROM pgbench_accounts ORDER BY md5(aid::text)) AS sorted" | tail -n 1)"
kill -INT "$(head -n 1 "$work/data/postmaster.pid")"
wait "${started_processes[0]}" || fail "postgres ended with $?: $(tail -n 5 "$work/server.log")"
started_processes=()
grep -Eq 'terminated by signal|PANIC' "$work/server.log" && fail "$(grep -E 'terminated by signal|PANIC' "$work/server.log")"
echo "ok   $(grep -E '^tps' "$work/bench.log")"
