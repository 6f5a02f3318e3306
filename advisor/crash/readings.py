"""Memory readings that logs print on the way, as a timeline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.crash.evidence import Reading, ReadingKind
from advisor.crash.phase import phase_of_texts
from advisor.crash.verdict import Placed
from advisor.knowledge.schema import FrameRule
from advisor.words import Phase

_KINDS: dict[str, ReadingKind] = {
    "allocated_bytes": "allocated",
    "reserved_bytes": "reserved",
    "used_bytes": "used",
    "available_bytes": "free",
    "kv_available_bytes": "kv_cache",
    "weights_bytes": "weights",
    "freed_bytes": "freed",
    "left_bytes": "still_used",
    "graphs_bytes": "graphs",
    "node_used_bytes": "host_used",
}
_PHASES: dict[ReadingKind, Phase] = {
    "kv_cache": "rollout_init",
    "weights": "rollout_init",
    "graphs": "rollout_init",
    "freed": "weight_sync",
    "still_used": "weight_sync",
}
_PART_OF_A_MESSAGE = "torch-process-list"
_MOST = 2_000
"""Readings given of all logs together; beyond that they are evenly thinned, and the last is kept."""


def readings_in(finds: Iterable[Placed], names: Sequence[str], rules: Sequence[FrameRule]) -> tuple[Reading, ...]:
    """The readings of `finds`, by log and line; `names` are those of the logs."""
    told = [one for one in finds if one.find.signature.role == "telemetry" and one.id != _PART_OF_A_MESSAGE]
    told.sort(key=lambda one: (one.log, one.find.first.number))
    every = [reading for one in told for reading in _readings(one, names[one.log], rules)]
    stride = -(-len(every) // _MOST) or 1
    return tuple(every[::-stride][::-1])


def _readings(one: Placed, file: str, rules: Sequence[FrameRule]) -> Iterable[Reading]:
    find = one.find
    at = str(find.fields.get("at", ""))
    phase, _ = phase_of_texts([at] if at else [], rules, "task", ())
    for name, kind in _KINDS.items():
        size = find.fields.get(name)
        if not isinstance(size, int):
            continue
        if kind == "still_used" and find.signature.id == "sglang-reading":
            kind = "free"
        known = phase if phase != "unknown" else _PHASES.get(kind, find.signature.phase)
        yield Reading(find.first.number, known, kind, size, find.first.process, at, file)
