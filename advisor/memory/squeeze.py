"""Says what does not fit: a finding of the fit in one clause, and a run that neither side holds, whose offload fills
the host while the card is too small without it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from advisor.language import listed, mark, say
from advisor.memory.cells import TITLES, Ledger, Place
from advisor.memory.fit import FitFinding, Walls, capacity_of, limit_of, standing
from advisor.run.run import Knob, Run
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, Phase

OFFLOADS = (
    *("actor.param_offload", "actor.optimizer_offload", "actor.full_cpu_offload"),
    *("reference.offload", "critic.param_offload", "critic.optimizer_offload"),
)
"""Knobs that move states from the card to host RAM."""


class Squeeze(Struct, frozen=True):
    """A run that fits neither with offload nor without. Bytes are too much on one card, and on one node."""

    gpu_short: int
    """With nothing offloaded."""
    host_short: int
    """With as much offloaded as the cards need."""
    gpu_phase: Phase
    host_phase: Phase
    """Those that are the fullest there."""
    gpu_left: int = 0
    """Bytes left of each card with nothing offloaded, where the margin alone is missing."""
    host_needs: int = 0
    """RAM of a node with which it fits offloaded, the margin included."""
    host_with: str = ""
    """What has to be switched for that, in words."""
    forms: tuple[tuple[str, dict[str, Knob]], ...] = ()
    """What can be offloaded otherwise, in words and as knobs; the nearest to what is there first."""


def squeeze_of(run: Run, ledger_of: Callable[[Run], Ledger], walls: Walls) -> Squeeze | None:
    """The squeeze of a run; None where one way fits, nothing can be offloaded, or a size is not known."""
    states = [name for name in OFFLOADS if name in run.knobs]
    if not states or run.value("actor.lora_rank"):
        return None
    turned = (
        {name: Knob(name, is_on, "assumed", run.knobs[name].key) for name, is_on in zip(states, chosen, strict=True)}
        for chosen in product((False, True), repeat=len(states))
    )
    first, *others = ((_switched(run, knobs), knobs) for knobs in turned)
    bare = ledger_of(replace(run, knobs={**run.knobs, **first[1]}))
    gpu = _short(bare, "gpu", walls)
    if gpu is None:
        return None
    others.sort(key=lambda form: len(form[0]))
    beside = []
    for words, knobs in others:
        ledger = ledger_of(replace(run, knobs={**run.knobs, **knobs}))
        if _short(ledger, "gpu", walls) is None:
            over = _short(ledger, "host", walls)
            if over is None:
                return None
            beside.append((over, words))
    if not beside:
        return None
    host, words = min(beside, key=lambda each: each[0])
    full = bare.phase("gpu", gpu[1])
    left = max(0, (bare.gpu_capacity or 0) - full.expected) if full is not None else 0
    needs = (bare.host_limit or 0) + round(host[0] / (1 - walls.margin))
    forms = tuple((listed(words), knobs) for words, knobs in (first, *others))
    return Squeeze(gpu[0], host[0], gpu[1], host[1], left, needs, listed(words), forms)


def _switched(run: Run, knobs: dict[str, Knob]) -> tuple[str, ...]:
    """What a form of the run offloads otherwise: "offload_policy on"."""
    changed = (one for one in knobs.values() if one.value is not run.is_on(one.name))
    on, off = mark("{key} on"), mark("{key} off")
    return tuple(say(on if one.value else off, key=one.key or one.name) for one in changed)


def squeeze_clause(found: Squeeze) -> str:
    """The squeeze in one clause."""
    told = {
        "gpu": show_bytes(found.gpu_short),
        "host": show_bytes(found.host_short),
        "on_gpu": PHASE_TITLES[found.gpu_phase],
        "on_host": PHASE_TITLES[found.host_phase],
        "left": show_bytes(found.gpu_left),
    }
    if found.gpu_left:
        return say(
            "without offload {on_gpu} leaves {left} of each card, less than the margin, and with it {host} are missing "
            "on each node ({on_host})",
            **told,
        )
    return say(
        "it fits neither way: without offload {gpu} are missing on each card ({on_gpu}), with it {host} on each node "
        "({on_host})",
        **told,
    )


def with_switches(way: str, switches: str) -> str:
    """A way, and what has to be switched for it."""
    return say("{way} ({switches})", way=way, switches=switches) if switches else way


def _short(ledger: Ledger, place: Place, walls: Walls) -> tuple[int, Phase] | None:
    """Bytes by which the fullest phase is over, and which; None where all have room, or most of it is unexplained."""
    capacity = capacity_of(ledger, place)
    if capacity is None:
        return None
    over = [
        (now.expected - limit_of(now, capacity, walls), now.phase)
        for now in ledger.sums(place)
        if standing(now, capacity, walls) == "over" and 2 * now.of("unexplained") < now.expected
    ]
    return max(over, default=None)


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
