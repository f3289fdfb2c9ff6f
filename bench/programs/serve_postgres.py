#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PostgreSQL under the allocator, loaded by pgbench over a unix socket.

    serve_postgres.py --template FOLDER --script tpcb-like --clients 4 --transactions 1000

The database is made once, by initdb and pgbench -i on the system's malloc, beside FOLDER under its
name and the server's version, and copied for each run. The time is that of the transactions as
pgbench reports it. All processes of the server count; of memory, the peak is that of the largest of
them. As PostgreSQL refuses to be root, it runs as the user postgres, or nobody, if this is root's.
"""

from __future__ import annotations

import argparse
import functools
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import serving

USER = "bench"  # of the database, not of the system
SCALE = 2
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "autovacuum": "off",  # it would come at another moment in every run
    "shared_buffers": "32MB",
    "work_mem": "16MB",
    "log_min_messages": "warning",
}


def binaries() -> Path:
    """The folder of the newest installed server. Raises ServingError."""
    folders = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    found = sorted((path.parent for path in folders), key=lambda path: int(path.parent.name))
    if not found:
        raise serving.ServingError("no server below /usr/lib/postgresql")
    return found[-1]


def as_user(folder: Path) -> list[str]:
    """A prefix that runs a command as somebody who may run PostgreSQL and owns `folder`."""
    if os.geteuid() != 0:
        return []
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        user = pwd.getpwnam("nobody")
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, user.pw_uid, user.pw_gid)
    # The change of user clears the wish to die with the launcher, so it is made again.
    line = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return [*line, "--pdeathsig=KILL"]


def server_command(folder: Path) -> list[str]:
    """Serves `folder`/data on a socket in `folder`."""
    line = [*as_user(folder), str(binaries() / "postgres"), "-D", str(folder / "data")]
    line += ["-k", str(folder)]
    for name, value in SETTINGS.items():
        line += ["-c", f"{name}={value}"]
    return line


def accepts(folder: Path) -> bool:
    line = ["pg_isready", "--quiet", "-h", str(folder)]
    return subprocess.run(line, timeout=serving.START_S).returncode == 0


def end(folder: Path) -> None:
    """A fast shutdown, which waits for nobody."""
    os.kill(int((folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGINT)


def database(template: Path) -> Path:
    """The database of this version of the server, made if it is not there. Raises ServingError."""
    made = template.with_name(f"{template.name}-{binaries().parent.name}")
    if not (made / "PG_VERSION").exists():
        make_database(made)
    return made


def make_database(made: Path) -> None:
    """Fill a database in a temporary folder and put it at `made`. Raises ServingError."""
    with serving.temporary_folder() as folder:
        make = [str(binaries() / "initdb"), "-D", str(folder / "data"), "-U", USER]
        serving.client([*as_user(folder), *make, "--auth=trust", "--no-sync"])
        server = subprocess.Popen(
            server_command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            deadline = time.monotonic() + serving.START_S
            while not accepts(folder):
                if time.monotonic() > deadline:
                    raise serving.ServingError("the server that fills the database does not start")
                time.sleep(0.05)
            fill = ["pgbench", "-h", str(folder), "-U", USER, "-i", "-q", "-s", str(SCALE)]
            serving.client([*fill, "postgres"])
            end(folder)
            server.wait(timeout=serving.START_S)
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()
        made.parent.mkdir(parents=True, exist_ok=True)
        # In one step: a run that was interrupted leaves no half of a database behind.
        fresh = made.with_name(f"{made.name}.{os.getpid()}")
        shutil.copytree(folder / "data", fresh)
        try:
            fresh.rename(made)
        except OSError:
            shutil.rmtree(fresh)  # another run was quicker


def start(arguments: argparse.Namespace, folder: Path) -> serving.Server:
    shutil.copytree(database(arguments.template), folder / "data")
    (folder / "data").chmod(0o700)
    return serving.Server(server_command(folder), folder)


def load(arguments: argparse.Namespace, server: serving.Server, folder: Path) -> dict[str, Any]:
    server.wait_until(lambda: accepts(folder))
    count = arguments.clients * arguments.transactions
    line = ["pgbench", "-h", str(folder), "-U", USER, "-n", "-b", arguments.script]
    line += ["-c", str(arguments.clients), "-j", "1", "-t", str(arguments.transactions), "postgres"]
    said = serving.client(line)
    rate = re.search(r"^tps = ([\d.]+)", said, re.MULTILINE)
    processed = f"number of transactions actually processed: {count}/{count}"
    if rate is None or processed not in said:
        raise serving.ServingError("pgbench did not run all transactions")
    end(folder)
    return {"operations": count, "seconds": count / float(rate[1]), "extra": {}}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--script", required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--transactions", type=int, required=True)
    arguments = parser.parse_args()
    return serving.main(
        "postgres", functools.partial(start, arguments), functools.partial(load, arguments)
    )


if __name__ == "__main__":
    sys.exit(main())
