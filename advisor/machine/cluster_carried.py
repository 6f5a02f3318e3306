"""What a task takes along to a node, so that this program need not be installed there."""

from __future__ import annotations

import importlib.util
import marshal
import zlib
from pathlib import Path

from advisor.language import ENGLISH, read_catalogue, spoken

_GROUND = ("hostile", "language", "redact", "units", "words")
_READING = (
    "cgroup",
    "environment",
    "host",
    "inventory",
    "inventory_json",
    "libraries",
    "measure",
    "nvml",
    "patience",
    "processes",
    "ray_session",
    "trouble",
)
MODULES = (
    "advisor",
    *(f"advisor.{name}" for name in _GROUND),
    "advisor.machine",
    *(f"advisor.machine.{name}" for name in _READING),
)
"""All that `measure` imports of ours."""


def packed_code(modules: tuple[str, ...] = MODULES) -> bytes:
    """Module name → its compiled code, packed; below 100 KiB, which Ray hands over with a task.

    What is larger lies in the object store of the node that asks, and to get it from there every node must be able to
    call back.
    """
    code = {}
    for name in modules:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        code[name] = spec.loader.get_code(name)  # type: ignore[attr-defined]
    return zlib.compress(marshal.dumps(code), 6)


def catalogue() -> dict[str, str]:
    """What the nodes need to speak as we do."""
    if spoken() == ENGLISH:
        return {}
    folder = Path(__file__).parents[1] / "languages" / spoken()
    return read_catalogue(folder, "machine.json") | read_catalogue(folder, "program.json")
