-- SPDX-License-Identifier: MIT
--
-- A small shop in SQLite, in memory: tables are filled by recursive queries with a fixed generator of numbers, indexed,
-- joined, grouped, searched by text and changed. Every statement's nodes, every cell of a page cache and every string
-- function's result is a malloc of its own.
--
--   sqlite3 :memory: ".read queries.sql"
--
-- The last table takes only true statements about the results, so a wrong one ends the program with 1.
.bail on
PRAGMA cache_size = -20000;
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city INTEGER);
CREATE TABLE item (id INTEGER PRIMARY KEY, customer INTEGER, cents INTEGER, note TEXT);
CREATE TABLE truth (statement TEXT, holds INTEGER CHECK (holds = 1));

BEGIN;
WITH RECURSIVE n(i, x) AS (
  SELECT 1, 12345 UNION ALL SELECT i + 1, (x * 1103515245 + 12345) % 2147483648 FROM n WHERE i < 8000)
INSERT INTO customer SELECT i, 'customer ' || hex(x) || ' of ' || (x % 97), x % 97 FROM n;
WITH RECURSIVE n(i, x) AS (
  SELECT 1, 54321 UNION ALL SELECT i + 1, (x * 1103515245 + 12345) % 2147483648 FROM n WHERE i < 150000)
INSERT INTO item
SELECT i, x / 7 % 8000 + 1, x % 100000, 'note ' || i || ' ' || substr(hex(x) || hex(x + i), 1, x % 24) FROM n;
COMMIT;
CREATE INDEX item_by_customer ON item (customer, cents);
CREATE INDEX item_by_note ON item (note);

CREATE TABLE total AS
SELECT customer.city AS city, count(*) AS items, sum(cents) AS cents, group_concat(substr(note, 6, 4)) AS notes
FROM item JOIN customer ON customer.id = item.customer GROUP BY customer.city;
CREATE TABLE best AS
SELECT customer, id, row_number() OVER (PARTITION BY customer ORDER BY cents DESC, id) AS place FROM item;
CREATE TABLE found AS
SELECT id, replace(upper(note), 'NOTE', 'n') AS text FROM item WHERE note LIKE '%393%' ORDER BY text DESC;

BEGIN;
UPDATE item SET note = note || ' of ' || (SELECT name FROM customer WHERE customer.id = item.customer);
DELETE FROM item WHERE id % 3 = 0;
COMMIT;

INSERT INTO truth SELECT 'all items were counted', sum(items) = 150000 FROM total;
INSERT INTO truth SELECT 'each customer has one first place', count(*) = count(DISTINCT customer) FROM best WHERE place = 1;
INSERT INTO truth SELECT 'the text was found', count(*) > 0 FROM found;
INSERT INTO truth SELECT 'a third is gone', count(*) = 100000 FROM item;
INSERT INTO truth SELECT 'nothing is damaged', integrity_check = 'ok' FROM pragma_integrity_check;
SELECT count(*) FROM truth;
