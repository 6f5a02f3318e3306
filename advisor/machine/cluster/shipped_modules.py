"""Packs the modules and texts that a task takes along to a node, so that this program need not be installed there."""

from __future__ import annotations

import importlib.util
import marshal
import zlib
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from advisor.language import ENGLISH, read_catalogue, spoken

_GROUND = ("hostile", "language", "redact", "regex", "units", "words")
_READING = (
    "amd",
    "ascend",
    "cards",
    "cgroup",
    "drivers",
    "host",
    "inventory",
    "inventory_json",
    "libraries",
    "measure",
    "nvml",
    "timeouts",
    "processes",
    "ray_session",
    "tool",
)
MODULES = (
    "advisor",
    *(f"advisor.{name}" for name in _GROUND),
    "advisor.machine",
    *(f"advisor.machine.{name}" for name in _READING),
)
"""All that `measure` imports of ours."""


def packed_code() -> bytes:
    """Module name → its compiled code, packed; below 100 KiB, which Ray hands over with a task.

    What is larger lies in the object store of the node that asks, and to get it from there every node must be able to
    call back.
    """
    return zlib.compress(marshal.dumps({name: _compiled(name) for name in MODULES}), 6)


def _compiled(module: str) -> CodeType:
    """Without its docstrings, which nobody reads there: an eighth of it."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    code: CodeType = compile(Path(spec.origin).read_bytes(), spec.origin, "exec", optimize=2, dont_inherit=True)
    return code


def travelling_probe() -> Callable[..., bytes]:
    """The probe as a function of no module, so that Ray sends it by value."""
    space: dict[str, Any] = {"__name__": "rl_oom_advisor_probe"}
    exec(_compiled("advisor.machine.cluster.probe"), space)  # noqa: S102 - our own
    found: Callable[..., bytes] = space["probe"]
    return found


def catalogue() -> dict[str, str]:
    """The translated texts of these modules in the language spoken; {} in English."""
    if spoken() == ENGLISH:
        return {}
    folder = Path(__file__).parents[2] / "languages" / spoken()
    return read_catalogue(folder, "machine.json") | read_catalogue(folder, "program.json")
