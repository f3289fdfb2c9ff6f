# SPDX-License-Identifier: MIT
"""The studies of this checkout: the folders of bench/studies/ that have a study.py."""

from __future__ import annotations

import importlib
import sys

from .model import STUDIES, Study, StudyError


def names() -> list[str]:
    return sorted(path.parent.name for path in STUDIES.glob("*/study.py"))


def load(name: str) -> Study:
    """The study `name`. Raises StudyError."""
    if name not in names():
        known = ", ".join(names()) or f"none, because there is no {STUDIES}"
        raise StudyError(f"no study {name!r}; there are: {known}")
    folder = str(STUDIES.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    study = importlib.import_module(f"studies.{name}.study").STUDY
    assert isinstance(study, Study) and study.name == name, f"{name}/study.py has no STUDY {name}"
    return study
