# SPDX-License-Identifier: MIT
"""The programs of the refusal tests: each does as much as makes the library ask the system often, and little besides.

What they print depends on nothing but their work: an output that differs after a refusal is a damaged heap.
"""

from __future__ import annotations

import pwd
import shlex
import shutil
import subprocess
from pathlib import Path

from _refusals import Program, Refuser

# Memory goes back at once, so it is asked for again all the time.
EAGER = "verbose:0,purge_delay_ms:0"

BASH = r"""
set -e
list=()
for ((i = 0; i < ROUNDS; ++i)); do
  if ((i != 50)); then printf -v text '%*d' $((i % 50 * 4000 + 1)) "$i"; else text=$(printf '%*d' 9000 "$i"); fi
  list+=("$text")
  if ((i % 7 == 6)); then list=("${list[@]:3}"); fi
done
sum=0
for text in "${list[@]}"; do sum=$(((sum * 31 + ${#text} + text) % 1000003)); done
echo "$sum ${#list[@]}"
"""

PYTHON = r"""
import hashlib, threading
digest = hashlib.sha256()
def work(rounds, held):
    for i in range(rounds):
        held.append(bytes([i % 256]) * (i * 7919 % 300000 + 10))
        if len(held) > 20:
            digest.update(held.pop(i % 20)[:100])
        if i % 40 == 0:
            held.append({n: str(n) for n in range(3000)})
            held.pop()
held = []
work(ROUNDS, held)
threads = [threading.Thread(target=work, args=(20, [])) for _ in range(2)]
for thread in threads:
    thread.start()
    thread.join()
print(digest.hexdigest(), sum(len(block) for block in held))
"""

PERL = r"""
my (@held, $sum);
for my $i (0 .. ROUNDS) {
  push @held, chr(65 + $i % 26) x ($i * 7919 % 300000 + 10);
  $sum = ($sum * 31 + ord(splice @held, $i % 20, 1)) % 1000003 if @held > 20;
  my %table = map { $_ => "value $_" } 1 .. 2000 if $i % 50 == 0;
}
my $whole = join '', @held;
print "$sum ", length $whole, "\n";
"""

SQL = r"""
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, body BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ROUNDS)
  INSERT INTO t SELECT i, printf('name %d', i * 7919 % 10007), zeroblob(i * 7919 % 60000) FROM n;
CREATE INDEX by_name ON t(name);
SELECT count(*), sum(length(body)) FROM t;
SELECT sum(id) FROM (SELECT id FROM t ORDER BY name || id LIMIT 100);
DELETE FROM t WHERE id % 3 = 0;
SELECT length(group_concat(hex(body))) FROM t WHERE id % 20 = 0;
VACUUM;
SELECT count(DISTINCT name) FROM t;
"""

POSTGRES = r"""
SET work_mem = '16MB';
SELECT count(*), sum(length(t)) FROM (SELECT repeat(md5(i::text), i % 900) AS t FROM generate_series(1, 3000) i ORDER BY 1) s;
SELECT count(*) FROM (SELECT i % 1000, array_agg(i) FROM generate_series(1, 20000) i GROUP BY 1) s;
SELECT length(string_agg(repeat('x', i * 10), ',')) FROM generate_series(1, 400) i;
"""

CPP = r"""
#include <algorithm>
#include <map>
#include <string>
#include <vector>
template <int n> struct Number { static constexpr int value = Number<n - 1>::value + n; };
template <> struct Number<0> { static constexpr int value = 0; };
int sum(std::map<std::string, std::vector<int>>& by) {
  int all = Number<200>::value;
  for (auto& [name, list] : by) { std::sort(list.begin(), list.end()); all += list.empty() ? 0 : list.front(); }
  return all;
}
"""


def command_of_compiler(source: Path) -> list[str]:
    """What g++ starts to compile the source to assembly on its standard output."""
    answer = subprocess.run(
        ["g++", "-std=c++17", "-O1", "-S", "-o", "-", "-###", str(source)],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
    ).stderr
    return next(shlex.split(line) for line in answer.splitlines() if "cc1plus" in line.split()[0])


def redis_command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def redis_requests(rounds: int) -> list[bytes]:
    """Each is sent when the answer to the one before has come."""
    requests = []
    for i in range(rounds):
        key = b"key:%d" % (i % 12)
        requests.append(redis_command(b"SET", key, b"v" * (i * 7919 % 200000 + 1)))
        requests.append(redis_command(b"APPEND", key, b"w" * 5000))
        requests.append(redis_command(b"STRLEN", key))
        if i % 10 == 9:
            requests.append(redis_command(b"DEL", *(b"key:%d" % k for k in range(i % 12))))
    return [*requests, redis_command(b"SHUTDOWN", b"NOSAVE")]


def make_database(folder: Path) -> tuple[list[str], str] | None:
    """The command of a PostgreSQL of one process, and as whom it runs. None: it is not installed."""
    binaries = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    users = {entry.pw_name for entry in pwd.getpwall()}
    if not binaries or "postgres" not in users:
        return None
    data = folder / "data"
    data.mkdir()
    shutil.chown(data, "postgres", "postgres")
    subprocess.run(
        [binaries[0] / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync"],
        check=True,
        capture_output=True,
        user="postgres",
        group="postgres",
        cwd="/",
    )
    server = str(binaries[0] / "postgres")
    settings = ["-F", "-c", "shared_buffers=1MB", "-c", "dynamic_shared_memory_type=mmap"]
    return [server, "--single", "-j", *settings, "-D", str(data), "postgres"], "postgres"


def programs(refuser: Refuser, rounds: int) -> list[Program]:
    """Those that are installed here. `rounds`: how much work they do, 100 is little."""

    def filled(text: str, factor: int = 1) -> str:
        return text.replace("ROUNDS", str(rounds * factor))

    made = [
        Program("bash", ["bash", "--norc", "-c", filled(BASH)], EAGER),
        Program("perl", ["perl", "-e", filled(PERL, 4)], EAGER),
        Program(
            "python3",
            ["/usr/bin/python3", "-I", "-S", "-c", filled(PYTHON, 2)],
            EAGER,
            environment={"PYTHONMALLOC": "malloc"},
        ),
        Program("sqlite3", ["sqlite3", "-batch", ":memory:"], EAGER, filled(SQL, 4).encode()),
        Program(
            "redis",
            ["redis-server", "--port", "0", "--unixsocket", str(refuser.folder / "socket"), "--save", "", "--crash-log-enabled", "no"],
            EAGER,
            requests=redis_requests(rounds),
            socket=str(refuser.folder / "socket"),
        ),
    ]
    if shutil.which("g++"):
        source = refuser.folder / "some.cpp"
        source.write_text(CPP)
        made.append(Program("g++", command_of_compiler(source)))
    database = make_database(refuser.folder) if shutil.which("setpriv") else None
    if database is not None:
        made.append(Program("postgres", database[0], EAGER, POSTGRES.encode(), user=database[1], gives_up=b"out of memory"))
    return [program for program in made if shutil.which(program.command[0])]
