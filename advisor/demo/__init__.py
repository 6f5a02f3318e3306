"""A crash to look at without files or a GPU: EasyR1 training Qwen2.5-VL-7B, killed for want of host RAM.

Run, machine and log were written for this program after a publicly reported case, in the form that EasyR1 and Ray
print.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class DemoFiles(Struct, frozen=True):
    """Paths of the bundled crash."""

    script: Path
    log: Path
    machine: Path


FOLDER = Path(__file__).parent / "easyr1"


def is_bundled(path: Path | None) -> bool:
    """Whether a file is part of the bundled crash."""
    return path is not None and path.parent == FOLDER


def demo_files() -> DemoFiles:
    """Where the bundled crash lies. The package is always installed as plain files (its scripts name each other)."""
    return DemoFiles(FOLDER / "run.sh", FOLDER / "train.log", FOLDER / "machine.json")
