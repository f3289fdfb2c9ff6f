#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""clang-tidy over src/, every finding an error, with the checks of .clang-tidy.

It reads the compile commands of the build in BRIMFUL_BUILD. One file per process, as many at a
time as there are processors; a file whose text, headers and settings have not changed since it was
last found clean is not read again (build/tidy-cache), because most runs change a file or two.

    lint_tidy.py [--all]    --all ignores the cache
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(os.environ.get("BRIMFUL_ROOT", Path(__file__).resolve().parent.parent))
BUILD = Path(os.environ.get("BRIMFUL_BUILD", ROOT / "build/release"))
CACHE = ROOT / "build/tidy-cache"
# Known to gcc and not to clang; the code they would warn about is compiled by clang in any case.
EXTRA = [
    "--extra-arg=-Wno-unknown-warning-option",
    "--extra-arg=-Wno-ignored-optimization-argument",
]


def sources() -> list[Path]:
    commands = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    files = {Path(command["file"]) for command in commands}
    return sorted(file for file in files if file.suffix == ".cpp" and ROOT / "src" in file.parents)


def settings_digest() -> bytes:
    """Any header may matter to any file; they are few and small, so all count for each."""
    digest = hashlib.sha256()
    headers = [*sorted((ROOT / "src").rglob("*.h")), *sorted((ROOT / "include").rglob("*.h"))]
    for file in [ROOT / ".clang-tidy", BUILD / "compile_commands.json", *headers]:
        digest.update(file.read_bytes())
    return digest.digest()


def check(file: Path, settings: bytes, use_cache: bool) -> tuple[bool, str]:
    key = hashlib.sha256(settings + str(file).encode() + file.read_bytes()).hexdigest()
    mark = CACHE / key
    if use_cache and mark.exists():
        return True, ""
    done = subprocess.run(
        ["clang-tidy", "-p", str(BUILD), "--quiet", *EXTRA, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        mark.touch()
        return True, ""
    return False, done.stdout + (done.stderr if not done.stdout else "")


def main() -> int:
    parser = argparse.ArgumentParser(description="clang-tidy over src/.")
    parser.add_argument("--all", action="store_true", help="ignore what is cached")
    use_cache = not parser.parse_args().all
    CACHE.mkdir(parents=True, exist_ok=True)
    settings = settings_digest()
    files = sources()
    if not files:
        print(f"{BUILD}/compile_commands.json names no source under src/")
        return 1
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        results = list(pool.map(lambda file: check(file, settings, use_cache), files))
    for clean, output in results:
        if not clean:
            print(output)
    failed = sum(not clean for clean, _ in results)
    print(f"clang-tidy: {len(files)} files, {failed} with faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
