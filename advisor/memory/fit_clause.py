"""Says a finding of the fit in one clause: what is too large, what may be, or which input is not known."""

from __future__ import annotations

from advisor.language import mark, say
from advisor.memory.cells import TITLES
from advisor.memory.fit import FitFinding
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES

_CLAUSES: dict[str, tuple[str, ...]] = {
    "tight": (
        mark("{phase} leaves only {size} of each card free"),
        mark("{phase} leaves only {size} of each node free"),
    ),
    "full": (mark("{phase} leaves nothing of each card free"), mark("{phase} leaves nothing of each node free")),
    "over": (mark("{size} too much on each card in {phase}"), mark("{size} too much on each node in {phase}")),
    "engine": (mark("the rollout engine cannot start: its share of each card is {size} short"),),
    "no cache": (mark("the rollout engine cannot start: its share of each card leaves no room for its KV cache"),),
    "gpus": (mark("the launch asks for {asked} GPUs, the machine has {have}: {missing} short"),),
    "lengths": (
        mark(
            "{phase} fits while the rows of a pass average below {rows} tokens; at the cap it takes {at_cap} of "
            "the {capacity} of each card"
        ),
        mark(
            "{phase} fits while the rows of a pass average below {rows} tokens; at the cap it takes "
            "{at_cap} of the {capacity} of each node"
        ),
    ),
    "near": (
        mark(
            "{phase} is expected to take {expected} of the {capacity} of each card, at the least {low} (most: {owner})"
        ),
        mark(
            "{phase} is expected to take {expected} of the {capacity} of each node, at the least {low} (most: {owner})"
        ),
    ),
    "shape": (
        mark(
            "{phase} would take {expected} of the {capacity} of each card, but the model's shape is guessed from "
            "its name: its config.json (--model FILE) settles it"
        ),
        mark(
            "{phase} would take {expected} of the {capacity} of each node, but the model's shape is guessed "
            "from its name: its config.json (--model FILE) settles it"
        ),
    ),
    "high": (
        mark("{phase} may need up to {high}, and each card has {capacity} (least certain: {owner})"),
        mark("{phase} may need up to {high}, and each node has {capacity} (least certain: {owner})"),
    ),
    "set_aside": (
        mark("the step fits, but {phase} may still need {size} more than each node has: watch the first one"),
    ),
    "phase": (
        mark("the log does not show in which phase it ran out, and by the settings every phase fits: answer in which"),
    ),
    "unread": (mark("the value of {key} could not be read, and how much a card holds rests on it"),),
    "launch": (mark("no setting of the run was seen, so its memory is counted by defaults: give the launch script"),),
    "unexplained": (
        mark(
            "{size} of what {phase} needed are explained by no setting: check the model, the lengths, the files "
            "that were seen, other processes, and whether it grows from step to step"
        ),
    ),
    "contradicted": (
        mark(
            "by the settings {phase} takes at least {expected} of {capacity}, though the run passed it: one of its "
            "inputs is seen wrong"
        ),
    ),
    "no size": (
        mark("how much memory a card has is not known (--gpus)"),
        mark("how much RAM a node has is not known (--host-ram)"),
    ),
    "": (
        mark("it needs cards of at least {size}: which are there? Say --gpus"),
        mark("it needs nodes with at least {size} of RAM: how much do they have? Say --host-ram"),
    ),
}
"""Reason → its clause of a card, and of a node where that is another."""


def finding_clause(finding: FitFinding) -> str:
    """A finding in one clause."""
    one, size, kind = finding, finding.short, str(finding.reason)
    if kind == "over":
        kind, size = ("tight" if one.expected < one.capacity else kind), abs(one.capacity - one.expected)
        kind = kind if size else "full"
    elif kind == "engine":
        kind = kind if one.short else "no cache"
    elif kind not in _CLAUSES:
        kind = "" if one.short else "no size"
    sizes = {"size": size, "high": one.high, "capacity": one.capacity, "at_cap": one.at_cap, "low": one.low}
    texts = _CLAUSES[kind]
    return say(
        texts[0 if one.place == "gpu" else -1],
        **{name: show_bytes(size) for name, size in (sizes | {"expected": one.expected}).items()},
        phase=PHASE_TITLES[one.phase],
        key=one.key,
        owner=TITLES[one.decides] if one.decides is not None else "",
        rows=f"{one.rows:,}",
        asked=one.expected,
        have=one.capacity,
        missing=one.short,
    )
