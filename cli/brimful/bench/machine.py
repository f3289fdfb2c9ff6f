# SPDX-License-Identifier: MIT
"""The facts about this machine that a figure depends on, recorded with every result.

Whoever compares two results must be able to see why they may differ: another processor, another
policy for huge pages, a memory limit, a governor that saves power, a virtual machine, a build with
uncommitted changes. A fact that cannot be had is "" or None, never a guess. Nothing that identifies
the machine or its user is recorded: no host name, no user name, no path, no cgroup's name.
"""

from __future__ import annotations

import ctypes
import datetime
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .. import locate

TIMEOUT_S = 20
THP = Path("/sys/kernel/mm/transparent_hugepage")
# Kinds of auxiliary vector entries (getauxval(3), <linux/auxvec.h>), since Linux 6.3.
AT_RSEQ_FEATURE_SIZE = 27
# A limit of cgroup v1 from here on is none: the kernel shows LONG_MAX rounded down to a page.
V1_UNLIMITED = 1 << 62


def environment() -> dict[str, Any]:
    """Everything, as JSON data."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **_processor(),
        **_memory(),
        **_system(),
        "cgroup": _cgroup(),
        "rseq": _rseq(),
        **_checkout(),
        "load_average_before": round(os.getloadavg()[0], 2),
    }


def said(command: Sequence[str], folder: str | None = None) -> str:
    """What `command` prints, or "" if it cannot run or fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=folder, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def contents(path: str | Path) -> str:
    """First line of a small file, or ""."""
    try:
        return Path(path).read_text().split("\n", 1)[0].strip()
    except OSError:
        return ""


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _chosen(text: str) -> str:
    """The word in brackets, as in "always [madvise] never"."""
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else text


# --- processor, memory, kernel --------------------------------------------------------------------


def _processor() -> dict[str, Any]:
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    governor = contents("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "cpu": fields.get("model name") or fields.get("CPU part", ""),
        "cpus_online": os.cpu_count() or 0,
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "hypervisor": "hypervisor" in fields.get("flags", "").split(),
        "governor": governor or "unknown",
        "turbo_off": contents("/sys/devices/system/cpu/intel_pstate/no_turbo"),
        "smt": contents("/sys/devices/system/cpu/smt/control"),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))),
    }


def _memory() -> dict[str, Any]:
    sizes: dict[str, int] = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        found = re.match(r"(\w+): +(\d+) kB", line)
        if found:
            sizes[found[1]] = int(found[2])
    folders = sorted(THP.glob("hugepages-*kB"), key=lambda path: int(path.name[10:-2]))
    return {
        "memory_mib": sizes.get("MemTotal", 0) // 1024,
        "memory_available_mib": sizes.get("MemAvailable", 0) // 1024,
        "swap_mib": sizes.get("SwapTotal", 0) // 1024,
        "page_bytes": os.sysconf("SC_PAGESIZE"),
        "thp": _chosen(contents(THP / "enabled")),
        "thp_defrag": _chosen(contents(THP / "defrag")),
        "mthp": {path.name[10:]: _chosen(contents(path / "enabled")) for path in folders},
        "overcommit": _number(contents("/proc/sys/vm/overcommit_memory")),
        "max_map_count": _number(contents("/proc/sys/vm/max_map_count")),
    }


def _system() -> dict[str, Any]:
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "distribution": _distribution(),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "compiler": said(["g++", "--version"]).split("\n", 1)[0],
        "perf_event_paranoid": _number(contents("/proc/sys/kernel/perf_event_paranoid")),
        "aslr": _number(contents("/proc/sys/kernel/randomize_va_space")),
    }


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def _checkout() -> dict[str, Any]:
    root = locate.project_root()
    commit = said(["git", "rev-parse", "HEAD"], root)
    changes = said(["git", "status", "--porcelain", "-uno"], root)
    return {
        "commit": commit or "unknown",
        "uncommitted_changes": bool(changes) if commit else None,
    }


# --- restartable sequences ------------------------------------------------------------------------


def _rseq() -> dict[str, Any]:
    """Whether the kernel has rseq, and whether the C library has registered it for each thread."""
    library = ctypes.CDLL(None)
    try:
        size = int(ctypes.c_uint.in_dll(library, "__rseq_size").value)
    except ValueError:
        size = 0  # glibc before 2.35, or another C library
    library.getauxval.restype = ctypes.c_ulong
    features = int(library.getauxval(ctypes.c_ulong(AT_RSEQ_FEATURE_SIZE)))
    return {
        "registered_by_libc": size > 0,
        "size": size,
        "feature_size": features,
        "glibc_tunables": os.environ.get("GLIBC_TUNABLES", ""),
    }


# --- cgroups --------------------------------------------------------------------------------------


def _cgroup() -> dict[str, Any]:
    """The tightest limits of this process's cgroups and those above them; None is no limit."""
    limits: dict[str, list[float]] = {}
    versions = set()
    for version, folder in _cgroup_folders():
        versions.add(version)
        for key, value in (_limits_v2 if version == 2 else _limits_v1)(folder):
            limits.setdefault(key, []).append(value)
    keys = ("cpus", "memory_max_mib", "memory_high_mib")
    tightest = {key: min(limits[key]) if key in limits else None for key in keys}
    return {"versions": sorted(versions), **tightest}


def _cgroup_folders() -> Iterator[tuple[int, Path]]:
    """(version, folder) of each cgroup this process is in, upwards to the mounted root."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        memberships = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    paths = {}  # of this process, by list of controllers; "" is version 2
    for line in memberships:
        controllers, _, path = line.partition(":")[2].partition(":")
        paths[controllers] = path
    for line in mounts:
        left, _, right = line.partition(" - ")
        places, what = left.split()[3:5], right.split(" ", 2)
        if len(places) < 2 or len(what) < 3:
            continue  # no line of this kernel's
        (root, point), (kind, _, options) = places, what
        if kind not in ("cgroup", "cgroup2"):
            continue
        have = set(options.split(","))
        for controllers, path in paths.items():
            mine = controllers == "" if kind == "cgroup2" else set(controllers.split(",")) <= have
            if not mine or (kind == "cgroup" and not controllers):
                continue
            inside = os.path.relpath(path, root) if path.startswith(root) else "."
            folder = Path(os.path.normpath(os.path.join(point, inside)))
            while folder.is_relative_to(point):
                yield (2 if kind == "cgroup2" else 1), folder
                folder = folder.parent


def _limits_v2(folder: Path) -> Iterator[tuple[str, float]]:
    quota = contents(folder / "cpu.max").split()
    if len(quota) == 2 and quota[0] != "max":
        yield "cpus", int(quota[0]) / int(quota[1])
    for name in ("max", "high"):
        value = _number(contents(folder / f"memory.{name}"))
        if value is not None:
            yield f"memory_{name}_mib", value / (1 << 20)


def _limits_v1(folder: Path) -> Iterator[tuple[str, float]]:
    quota = _number(contents(folder / "cpu.cfs_quota_us"))
    period = _number(contents(folder / "cpu.cfs_period_us"))
    if quota is not None and quota > 0 and period:
        yield "cpus", quota / period
    for name, file in (("max", "memory.limit_in_bytes"), ("high", "memory.soft_limit_in_bytes")):
        value = _number(contents(folder / file))
        if value is not None and value < V1_UNLIMITED:
            yield f"memory_{name}_mib", value / (1 << 20)
