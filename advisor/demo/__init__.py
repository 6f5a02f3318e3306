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


def demo_files() -> DemoFiles:
    """Where the bundled crash lies. The package is always installed as plain files (its scripts name each other)."""
    folder = Path(__file__).parent / "easyr1"
    return DemoFiles(folder / "run.sh", folder / "train.log", folder / "machine.json")
