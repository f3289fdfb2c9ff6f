# SPDX-License-Identifier: MIT
"""What each setting of glibc, jemalloc, tcmalloc and mimalloc is in brimful, or why nothing is.

One table: the command and docs/guide/translate.md both come from it. Sources: mallopt(3), the manual's
"Memory Allocation Tunables", jemalloc(3) TUNING, gperftools' tcmalloc.html, mimalloc's README.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# The longest delay that the options take, in ms (src/config/options.h).
_LONGEST_MS = 3_600_000


class ValueNotUnderstoodError(Exception):
    """The setting has a value that its allocator would not take either."""


# From the value of a setting to options of brimful, "" where the value asks for what is done anyway.
Translate = Callable[[str], str]


@dataclass(frozen=True)
class Rule:
    """One setting. `options`: what stands for it on the page; None: nothing is, for the reason `why`."""

    family: str
    name: str
    options: str | None
    why: str
    translate: Translate | None = None

    def of(self, value: str) -> str:
        """The options for this value. Raises ValueNotUnderstoodError."""
        return self.translate(value) if self.translate is not None else ""


def _number(value: str, least: int = 0) -> int:
    try:
        number = int(value, 0)
    except ValueError:
        raise ValueNotUnderstoodError(f"{value!r} is no number") from None
    if number < least:
        raise ValueNotUnderstoodError(f"{number} is less than {least}")
    return number


def _is_on(value: str) -> bool:
    word = value.strip().lower()
    if word in ("1", "true", "t", "yes", "y", "on"):
        return True
    if word in ("0", "false", "f", "no", "n", "off", ""):
        return False
    raise ValueNotUnderstoodError(f"{value!r} is neither true nor false")


def _if_on(on: str, off: str = "") -> Translate:
    return lambda value: on if _is_on(value) else off


def _delay(option: str, before: str = "") -> Translate:
    def translate(value: str) -> str:
        number = _number(value, -1)
        return f"{before}{option}:{min(number, _LONGEST_MS)}"

    return translate


def _bytes(option: str, unit: int = 1) -> Translate:
    return lambda value: f"{option}:{_number(value) * unit}"


def _choice(**options: str) -> Translate:
    def translate(value: str) -> str:
        if value not in options:
            raise ValueNotUnderstoodError(f"{value!r} is none of {', '.join(options)}")
        return options[value]

    return translate


def _trim(value: str) -> str:
    number = _number(value, -1)
    return f"purge_delay_ms:{number}" if number <= 0 else ""


def _check(value: str) -> str:
    return "tier:hardened" if _number(value) else ""


def _muzzy(value: str) -> str:
    return "" if _number(value, -1) == 0 else _delay("muzzy_delay_ms", "purge:free,")(value)


def _release_rate(value: str) -> str:
    try:
        rate = float(value)
    except ValueError:
        raise ValueNotUnderstoodError(f"{value!r} is no number") from None
    return "purge_delay_ms:-1" if rate == 0 else "purge_delay_ms:0" if rate >= 10 else ""


def _samples(value: str) -> str:
    return f"prof:{_number(value)}" if _number(value) else ""


_ARENAS = "contexts are as many as processors, or threads that run at once, and give back what rests in them"
_THRESHOLD = "every block is in one window; large ones go back by pages, whatever their size"
_TOP = "there is no top of a heap that could grow or be trimmed"
_NO_TCACHE = "objects wait in bits beside the memory, not in caches of threads"

RULES = [
    Rule("glibc", "MALLOC_ARENA_MAX", None, _ARENAS),
    Rule("glibc", "MALLOC_ARENA_TEST", None, _ARENAS),
    Rule("glibc", "MALLOC_MMAP_THRESHOLD_", None, _THRESHOLD),
    Rule("glibc", "MALLOC_MMAP_MAX_", None, _THRESHOLD),
    Rule(
        "glibc",
        "MALLOC_TRIM_THRESHOLD_",
        "`purge_delay_ms:0` for 0, `purge_delay_ms:-1` for −1",
        "free memory goes back by age, not by how much it is",
        _trim,
    ),
    Rule("glibc", "MALLOC_TOP_PAD_", None, _TOP),
    Rule(
        "glibc",
        "MALLOC_CHECK_",
        "`tier:hardened`",
        "double frees and bad pointers are found in any case; this tier finds those of racing threads",
        _check,
    ),
    Rule(
        "glibc",
        "MALLOC_PERTURB_",
        None,
        "memory is not filled; `zero:1` clears what is freed, and finds writes to it",
    ),
    Rule(
        "glibc",
        "glibc.malloc.hugetlb",
        "1: `thp:always`; 2: `hugetlb:2M`",
        "the same",
        _choice(**{"0": "", "1": "thp:always", "2": "hugetlb:2M"}),
    ),
    Rule("glibc", "glibc.malloc.tcache_count", None, _NO_TCACHE),
    Rule("glibc", "glibc.malloc.tcache_max", None, _NO_TCACHE),
    Rule("glibc", "glibc.malloc.tcache_unsorted_limit", None, _NO_TCACHE),
    Rule("glibc", "glibc.malloc.mxfast", None, _NO_TCACHE),
    Rule("jemalloc", "narenas", None, _ARENAS),
    Rule(
        "jemalloc",
        "percpu_arena",
        "`disabled`: `front_end:thread`",
        "per CPU is what is done anyway",
        _choice(disabled="front_end:thread", percpu="", phycpu=""),
    ),
    Rule(
        "jemalloc",
        "dirty_decay_ms",
        "`purge_delay_ms`",
        "the same, also −1 and 0; the default is 1 s, not 10",
        _delay("purge_delay_ms"),
    ),
    Rule(
        "jemalloc",
        "muzzy_decay_ms",
        "`purge:free,muzzy_delay_ms`",
        "the same; 0 is the default",
        _muzzy,
    ),
    Rule(
        "jemalloc",
        "background_thread",
        "`background_thread`",
        "the same",
        _if_on("background_thread:1", "background_thread:0"),
    ),
    Rule("jemalloc", "max_background_threads", None, "there is one"),
    Rule("jemalloc", "metadata_thp", None, "metadata is a hundredth of the heap, and lies apart"),
    Rule(
        "jemalloc",
        "thp",
        "`default`: `thp:auto`; `always`, `never`",
        "the same",
        _choice(default="thp:auto", always="thp:always", never="thp:never"),
    ),
    Rule(
        "jemalloc",
        "tcache",
        "`false`: `cache:none`",
        "there are no caches of threads; what waits for its own kind of request goes straight back",
        _if_on("", "cache:none"),
    ),
    Rule("jemalloc", "lg_tcache_max", None, _NO_TCACHE),
    Rule("jemalloc", "tcache_max", None, _NO_TCACHE),
    Rule("jemalloc", "oversize_threshold", None, _THRESHOLD),
    Rule("jemalloc", "retain", None, "address space is reserved once and kept; memory goes back"),
    Rule("jemalloc", "dss", None, "sbrk is never used"),
    Rule(
        "jemalloc",
        "prof",
        "`prof:on`",
        "512 KiB from one sample to the next, as there; `brimful prof PID` needs no setting",
        _if_on("prof:on"),
    ),
    Rule(
        "jemalloc",
        "prof_active",
        None,
        "`brimful prof PID` switches it on and off in a running process",
    ),
    Rule(
        "jemalloc",
        "lg_prof_sample",
        "`prof`, in bytes",
        "the same: 19 is `prof:524288`",
        lambda value: f"prof:{1 << min(_number(value), 50)}",
    ),
    Rule(
        "jemalloc",
        "prof_prefix",
        "`prof_file`",
        "`%p` in it is the number of the process",
        lambda value: f"prof_file:{value}.%p",
    ),
    Rule("jemalloc", "prof_leak", "`leaks:exit`", "exact, not by samples", _if_on("leaks:exit")),
    Rule("jemalloc", "stats_print", "`print_stats:exit`", "the same", _if_on("print_stats:exit")),
    Rule(
        "jemalloc",
        "xmalloc",
        "`on_exhaustion:abort`",
        "the same, when the reserve is used up",
        _if_on("on_exhaustion:abort"),
    ),
    Rule(
        "jemalloc",
        "junk",
        None,
        "memory is not filled; `zero:1` clears what is freed, and finds writes to it",
    ),
    Rule("jemalloc", "abort_conf", None, "a wrong option costs a warning"),
    Rule("tcmalloc", "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", None, _NO_TCACHE),
    Rule("tcmalloc", "SetMaxPerCpuCacheSize", None, _NO_TCACHE),
    Rule(
        "tcmalloc",
        "TCMALLOC_RELEASE_RATE",
        "0: `purge_delay_ms:-1`; 10 and more: `purge_delay_ms:0`",
        "between them: the default, by which all that is free goes back within 1 s",
        _release_rate,
    ),
    Rule(
        "tcmalloc",
        "TCMALLOC_AGGRESSIVE_DECOMMIT",
        "`purge_delay_ms:0`",
        "the same",
        _if_on("purge_delay_ms:0"),
    ),
    Rule(
        "tcmalloc",
        "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD",
        None,
        "no report by size: `brimful prof PID` says who asks for large blocks, `limit` refuses them",
    ),
    Rule("tcmalloc", "TCMALLOC_SAMPLE_PARAMETER", "`prof`, in bytes", "the same", _samples),
    Rule("tcmalloc", "TCMALLOC_HEAP_LIMIT_MB", "`limit`", "the same", _bytes("limit", 1 << 20)),
    Rule(
        "tcmalloc",
        "TCMALLOC_MEMFS_MALLOC_PATH",
        "`hugetlb:2M`",
        "from the system's pool, without a mount",
        lambda value: "hugetlb:2M",
    ),
    Rule("tcmalloc", "TCMALLOC_SKIP_SBRK", None, "sbrk is never used"),
    Rule(
        "tcmalloc",
        "HEAPPROFILE",
        "`prof_file`",
        "`%p` in it is the number of the process",
        lambda value: f"prof_file:{value}.%p",
    ),
    Rule(
        "tcmalloc",
        "HEAPCHECK",
        "`leaks:exit`",
        "the same",
        lambda value: "leaks:exit" if value else "",
    ),
    Rule(
        "mimalloc",
        "MIMALLOC_PURGE_DELAY",
        "`purge_delay_ms`",
        "the same, also −1 and 0",
        _delay("purge_delay_ms"),
    ),
    Rule(
        "mimalloc",
        "MIMALLOC_PURGE_DECOMMITS",
        "0: `purge:free`",
        "the same",
        _if_on("", "purge:free"),
    ),
    Rule(
        "mimalloc",
        "MIMALLOC_ALLOW_LARGE_OS_PAGES",
        "`thp:always`",
        "the same",
        _if_on("thp:always"),
    ),
    Rule(
        "mimalloc",
        "MIMALLOC_RESERVE_HUGE_OS_PAGES",
        "`hugetlb:1G`",
        "taken as they are needed",
        lambda value: "hugetlb:1G" if _number(value) else "",
    ),
    Rule(
        "mimalloc",
        "MIMALLOC_RESERVE_OS_MEMORY",
        "`reserve`",
        "in bytes, there in KiB",
        _bytes("reserve", 1 << 10),
    ),
    Rule(
        "mimalloc",
        "MIMALLOC_EAGER_COMMIT",
        None,
        "memory is resident from its first touch on; `populate` changes that",
    ),
    Rule("mimalloc", "MIMALLOC_ARENA_EAGER_COMMIT", None, "see `populate`"),
    Rule(
        "mimalloc",
        "MIMALLOC_USE_NUMA_NODES",
        None,
        "memory comes from the running processor's node",
    ),
    Rule(
        "mimalloc",
        "MIMALLOC_SHOW_STATS",
        "`print_stats:exit`",
        "the same",
        _if_on("print_stats:exit"),
    ),
    Rule("mimalloc", "MIMALLOC_VERBOSE", "`verbose:1`", "one line", _if_on("verbose:1")),
    Rule(
        "mimalloc",
        "MIMALLOC_GUARDED_SAMPLE_RATE",
        "`guards`",
        "one in N objects; objects up to 4 KiB",
        lambda value: f"guards:{_number(value)}",
    ),
]

# Where the settings of a family stand together in one variable: the variable, and what parts its entries.
LISTS = {"MALLOC_CONF": ",", "_RJEM_MALLOC_CONF": ",", "GLIBC_TUNABLES": ":"}
# glibc's tunables that are the variables under another name.
TUNABLES = {
    "glibc.malloc.arena_max": "MALLOC_ARENA_MAX",
    "glibc.malloc.arena_test": "MALLOC_ARENA_TEST",
    "glibc.malloc.check": "MALLOC_CHECK_",
    "glibc.malloc.mmap_max": "MALLOC_MMAP_MAX_",
    "glibc.malloc.mmap_threshold": "MALLOC_MMAP_THRESHOLD_",
    "glibc.malloc.perturb": "MALLOC_PERTURB_",
    "glibc.malloc.top_pad": "MALLOC_TOP_PAD_",
    "glibc.malloc.trim_threshold": "MALLOC_TRIM_THRESHOLD_",
}
# mallopt's parameters, likewise.
PARAMETERS = {
    "M_ARENA_MAX": "MALLOC_ARENA_MAX",
    "M_ARENA_TEST": "MALLOC_ARENA_TEST",
    "M_CHECK_ACTION": "MALLOC_CHECK_",
    "M_MMAP_MAX": "MALLOC_MMAP_MAX_",
    "M_MMAP_THRESHOLD": "MALLOC_MMAP_THRESHOLD_",
    "M_PERTURB": "MALLOC_PERTURB_",
    "M_TOP_PAD": "MALLOC_TOP_PAD_",
    "M_TRIM_THRESHOLD": "MALLOC_TRIM_THRESHOLD_",
}
_BY_NAME = {rule.name: rule for rule in RULES}


@dataclass(frozen=True)
class Answer:
    """What became of one setting: options, or the reason why there are none, or what is wrong with it."""

    setting: str
    value: str
    options: str
    says: str
    is_known: bool = True


def translate(name: str, value: str) -> list[Answer]:
    """The answers to NAME=VALUE; a list of settings, such as MALLOC_CONF, gives one for each entry."""
    if name in LISTS:
        mark = "=" if name == "GLIBC_TUNABLES" else ":"
        entries = [entry.partition(mark) for entry in value.split(LISTS[name]) if entry.strip()]
        ours = ("glibc.malloc.", "glibc.mem.") if name == "GLIBC_TUNABLES" else ("",)
        return [_answer(k.strip(), v.strip()) for k, _, v in entries if k.strip().startswith(ours)]
    return [_answer(name, value)]


def _answer(name: str, value: str) -> Answer:
    rule = _BY_NAME.get(TUNABLES.get(name, PARAMETERS.get(name, name)))
    if rule is None:
        return Answer(name, value, "", "not known here", is_known=False)
    try:
        options = rule.of(value)
    except ValueNotUnderstoodError as error:
        return Answer(name, value, "", f"{error}", is_known=False)
    if options or rule.options is None:
        return Answer(name, value, options, rule.why)
    return Answer(name, value, "", "that is what brimful does anyway")


def settings_in(environment: dict[str, str]) -> list[tuple[str, str]]:
    """The settings of other allocators in an environment, in the order of the table."""
    names = [*LISTS, *(rule.name for rule in RULES if rule.name.isupper())]
    return [(name, environment[name]) for name in dict.fromkeys(names) if name in environment]


def combine(answers: list[Answer]) -> str:
    """One BRIMFUL_CONF for all; of options that are named twice, the later one."""
    options: dict[str, str] = {}
    for answer in answers:
        for entry in filter(None, answer.options.split(",")):
            key, _, value = entry.partition(":")
            options[key] = value
    return ",".join(f"{key}:{value}" for key, value in options.items())
