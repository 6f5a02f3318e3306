"""A command that is to be watched: what was asked for, what was opened before it began, and how it was started.

Plain classes: the command starts before msgspec is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from advisor.watch.keeper import Kept
    from advisor.watch.kernel import Before, KernelLog
    from advisor.watch.pourer import Poured

Tell = Callable[[str], None]


class Watch(NamedTuple):
    """What was asked for."""

    argv: tuple[str, ...]
    folder: Path
    alert: float | None = None
    knowledge: tuple[Path, ...] = ()


class Opened(NamedTuple):
    """What was opened before the command began."""

    samples: int
    """Descriptor of the record's file."""
    kernel: KernelLog
    before: Before
    begun: float
    """Epoch seconds."""


class Started(NamedTuple):
    """The command under way."""

    pid: int
    woken: int
    """Where our signals wait."""
    kept: Kept | None = None
    """Who keeps its pseudo-terminal."""
    poured: Poured | None = None
    """Who holds those of its streams that are none."""
    separate: bool = False
    """Its errors have a file of their own."""
