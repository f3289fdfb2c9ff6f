# SPDX-License-Identifier: MIT
"""Where the library is, and a path to it that the dynamic loader can read.

LD_PRELOAD separates its entries with spaces and colons and knows no quoting, so a checkout under
"My Projects" cannot be named there at all. For such a path `preloadable` makes a symbolic link in
the user's own cache folder and names that. The link stays: grandchildren started much later need it
too. Where there is no such folder (a read-only home, a home with a space in it, a service without
one), a folder of the user's own below the system's temporary folder serves.
"""

from __future__ import annotations

import errno
import os

LIBRARY = "libbrimful.so"
OBSERVER = "brimful-observer"


class LibraryError(Exception):
    """The library cannot be used; the message says why and what to do."""


def project_root() -> str:
    """Folder that holds the `brimful` launcher, bench/ and build/."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def default_library() -> str:
    """Path of the release library of this checkout, built or not."""
    return os.path.join(project_root(), "build", "release", LIBRARY)


def observer() -> str:
    """Absolute path of the program that looks at other processes. Raises LibraryError.

    BRIMFUL_OBSERVER, as for the library's leaks:exit, else this checkout's own, else the installed one.
    """
    chosen = os.environ.get("BRIMFUL_OBSERVER")
    own = os.path.join(project_root(), "build", "release", OBSERVER)
    installed = [f"{prefix}/libexec/brimful/{OBSERVER}" for prefix in ("/usr/local", "/usr")]
    for path in [chosen] if chosen else [own, *installed]:
        if os.access(path, os.X_OK):
            return os.path.abspath(path)
    packages = "libdw-dev, libiberty-dev and nlohmann-json3-dev"
    hint = (
        "BRIMFUL_OBSERVER names it"
        if chosen
        else f"build it with `make lib`, which needs {packages}"
    )
    raise LibraryError(f"no observer at {chosen or own}: {hint}")


def library(chosen: str | None) -> str:
    """Absolute path of the library to preload: `chosen`, else this checkout's own.

    The loader only warns when it cannot preload and runs the program without; somebody who asked
    for brimful must hear it instead. So everything that can be seen from outside is checked here.
    Raises LibraryError.
    """
    path = os.path.abspath(chosen if chosen is not None else default_library())
    hint = "" if chosen is not None else ": build it with `make lib`"
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except FileNotFoundError:
        raise LibraryError(f"no library at {path}{hint}") from None
    except OSError as error:
        raise LibraryError(f"cannot read {path}: {error.strerror}") from None
    # ELF magic, then e_type (two bytes at 16) = ET_DYN: what the loader is willing to preload.
    if head[:4] != b"\x7fELF" or head[16:18] not in (b"\x03\x00", b"\x00\x03"):
        raise LibraryError(f"{path} is not a shared library")
    return path


def preloadable(path: str) -> str:
    """A name for `path` free of LD_PRELOAD's separators: itself, or a link to it.

    Raises LibraryError.
    """
    if not _has_separator(path):
        return path
    refused = []
    for folder in _link_folders():
        try:
            return _link(path, folder)
        except OSError as error:
            refused.append(f"{folder}: {error.strerror}")
    raise LibraryError(
        f"the loader cannot preload a path with a space or colon ({path}), and no link to it could be "
        f"made ({'; '.join(refused)}): give a plain path with --lib"
    )


def _link_folders() -> list[str]:
    """Where links may be, the best place first; without those that have a separator themselves."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    shared = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"brimful-{os.getuid()}")
    folders = [os.path.join(cache, "brimful"), shared]
    return [folder for folder in folders if folder.startswith("/") and not _has_separator(folder)]


def _link(path: str, folder: str) -> str:
    """A link to `path` in `folder`, which must be the user's own: a program will run what it names."""
    import hashlib

    os.makedirs(folder, mode=0o700, exist_ok=True)
    status = os.lstat(folder)
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "others may write there")
    place = os.path.join(folder, hashlib.sha256(os.fsencode(path)).hexdigest()[:16])
    os.makedirs(place, mode=0o700, exist_ok=True)
    link = os.path.join(place, LIBRARY)
    if not os.path.islink(link) or os.readlink(link) != path:
        # A fresh name moved over the old one: whoever starts right now sees one of the two.
        fresh = f"{link}.{os.getpid()}"
        os.symlink(path, fresh)
        os.replace(fresh, link)
    return link


def preload_list(path: str, existing: str) -> str:
    """LD_PRELOAD with our library first, so that its malloc wins, and everything else kept."""
    rest = [entry for entry in existing.replace(":", " ").split() if entry != path]
    return ":".join([path, *rest])


def _has_separator(path: str) -> bool:
    return any(character in path for character in " :\t\n")
