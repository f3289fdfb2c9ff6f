#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# sqlite3: 100 000 rows in one transaction, an index, grouping, deletes, VACUUM and the database's own integrity check.
source "$(dirname "${BASH_SOURCE[0]}")/_common.sh"

need sqlite3
cat > "$work/script.sql" << 'SQL'
PRAGMA journal_mode = WAL;
CREATE TABLE item (id INTEGER PRIMARY KEY, kind INTEGER, name TEXT, body BLOB);
BEGIN;
WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < 100000)
INSERT INTO item SELECT n, n % 37, 'item number ' || n, zeroblob(n % 300) FROM counter;
COMMIT;
CREATE INDEX by_kind ON item (kind, name);
SELECT count(*), sum(total) FROM (SELECT kind, count(*) AS total FROM item GROUP BY kind);
SELECT max(length(joined)) > 1000 FROM (SELECT group_concat(name) AS joined FROM item GROUP BY kind);
DELETE FROM item WHERE id % 3 = 0;
SELECT count(DISTINCT name), sum(length(body)) FROM item;
VACUUM;
PRAGMA integrity_check;
SQL
run() {
  rm -f "$work"/data.db*
  equal "sqlite3's answer" "wal
37|100000
1
66667|9993367
ok" "$(traced sqlite3 "$work/data.db" < "$work/script.sql")"
  was_loaded_by sqlite3
}
with_both_front_ends run
