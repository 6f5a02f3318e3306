"""Imports that leave out what they can do without: what a command never uses must not cost its start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(module: str) -> Iterator[None]:
    """What is imported inside finds `module` not installed, and does without. One that was loaded before stays."""
    absent = module not in sys.modules
    if absent:
        sys.modules[module] = None  # type: ignore[assignment]  # the import system's own sign for "not there"
    try:
        yield
    finally:
        if absent:
            del sys.modules[module]


def load_msgspec() -> None:
    """By the standard library's typing: half of its time is `typing_extensions`, and nothing of ours needs that."""
    with without("typing_extensions"):
        import msgspec  # noqa: F401 - for the modules that come after
