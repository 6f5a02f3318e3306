"""Recognises a run that neither side holds: offload fills the host, without it the card is too small."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from advisor.language import clauses, listed, say
from advisor.memory.cells import Ledger, Place
from advisor.memory.fit import Walls, capacity_of, limit_of, standing
from advisor.run.run import Knob, Run
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, Phase

OFFLOADS = (
    *("actor.param_offload", "actor.optimizer_offload", "actor.full_cpu_offload"),
    *("reference.offload", "critic.param_offload", "critic.optimizer_offload"),
)
"""Knobs that move states from the card to host RAM."""
_FACTORS = (2, 3, 4, 6, 8, 16)
"""How many times as many GPUs, on as many nodes, are tried."""
_RANK = 32
"""Of the adapters that are tried in place of all weights."""


class Squeeze(Struct, frozen=True):
    """A run that fits neither with offload nor without. Bytes are too much on one card, and on one node."""

    gpu_short: int
    """With nothing offloaded."""
    host_short: int
    """With as much offloaded as the cards need."""
    gpu_phase: Phase
    host_phase: Phase
    """Those that are the fullest there."""
    gpus: int | None = None
    """GPUs in all, on more nodes of the same kind, on which it fits one way or the other; None: none that was tried."""
    adapters: bool = False
    """LoRA in place of all weights would fit."""


def squeeze_of(run: Run, ledger_of: Callable[[Run], Ledger], walls: Walls) -> Squeeze | None:
    """The squeeze of a run; None where one way fits, nothing can be offloaded, or a size is not known."""
    states = [name for name in OFFLOADS if name in run.knobs]
    if not states or run.value("actor.lora_rank"):
        return None
    turned = (
        {name: Knob(name, is_on, "assumed", run.knobs[name].key) for name, is_on in zip(states, chosen, strict=True)}
        for chosen in product((False, True), repeat=len(states))
    )
    forms = [replace(run, knobs={**run.knobs, **knobs}) for knobs in turned]
    gpu = _short(ledger_of(forms[0]), "gpu", walls)
    if gpu is None:
        return None
    beside = []
    for ledger in map(ledger_of, forms[1:]):
        if _short(ledger, "gpu", walls) is None:
            over = _short(ledger, "host", walls)
            if over is None:
                return None
            beside.append(over)
    host = min(beside, default=None)
    if host is None:
        return None
    cards = run.topology.actor_gpus
    larger = (factor for factor in _FACTORS if any(_fits(ledger_of(_larger(f, factor)), walls) for f in forms))
    factor = next(larger, None)
    adapters = Knob("actor.lora_rank", _RANK, "assumed")
    small = (replace(form, knobs={**form.knobs, "actor.lora_rank": adapters}) for form in forms)
    fits = any(_fits(ledger_of(form), walls) for form in small)
    return Squeeze(gpu[0], host[0], gpu[1], host[1], None if factor is None else factor * cards, fits)


def squeeze_clause(found: Squeeze, with_ways: bool = True) -> str:
    """The squeeze in one clause, and what would relieve it."""
    told = {
        "gpu": show_bytes(found.gpu_short),
        "host": show_bytes(found.host_short),
        "on_gpu": PHASE_TITLES[found.gpu_phase],
        "on_host": PHASE_TITLES[found.host_phase],
    }
    neither = say(
        "it fits neither way: without offload {gpu} are missing on each card ({on_gpu}), with it {host} on each node "
        "({on_host})",
        **told,
    )
    if not with_ways:
        return neither
    ways = [say("{size} more RAM on each node", size=show_bytes(found.host_short))]
    if found.gpus is not None:
        ways.append(say("{count} GPUs in all, on more nodes of this kind", count=found.gpus))
    ways.append(say("LoRA in place of all weights") if found.adapters else say("a smaller model"))
    return clauses([neither, say("what would fit: {ways}", ways=listed(ways))])


def _larger(run: Run, factor: int) -> Run:
    topology = run.topology
    counts = ("nodes", "actor_gpus", "rollout_gpus")
    larger = replace(topology, **{name: getattr(topology, name) * factor for name in counts})
    return replace(run, topology=larger)


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


def _fits(ledger: Ledger, walls: Walls) -> bool:
    places: tuple[Place, ...] = ("gpu", "host")
    return all(_short(ledger, place, walls) is None for place in places)
