"""Does it fit? Phases that the run has already passed are proven as long as nothing was added to them."""

from __future__ import annotations

from advisor.memory.cells import Ledger, PhaseSum, Place
from advisor.words import PHASE_TABLE, PHASES, Phase

ASIDE: dict[Place, tuple[Phase, ...]] = {"gpu": (), "host": ("model_load", "checkpoint")}
"""Short peaks outside the step: what the log measured in it is not known to be there too, so they are only told."""


def unfit(
    before: Ledger,
    after: Ledger,
    place: Place,
    died_in: Phase | None,
    margin: float,
    first_step: bool = False,
    shared: bool = True,
) -> list[Phase] | None:
    """Phases of `place` that do not fit after a change; None where it cannot be computed.

    `died_in`: the phase that ran out on this place; None: another place did, so every phase here was lived with.
    A phase counts as fitting when it leaves `margin` of the capacity, or when the run passed it and it did not grow.
    `shared`: engine and trainer use the same cards; an engine on cards of its own takes its share without a margin.
    `first_step`: the optimizer had not made its state yet, so a phase that will hold it was not passed with it.
    """
    capacity = after.gpu_capacity if place == "gpu" else after.host_limit
    sums = after.gpu if place == "gpu" else after.host
    if capacity is None or not sums:
        return None
    limit = capacity * (1 - margin)
    counted = [s for s in sums if s.phase == died_in or s.phase not in ASIDE[place]]
    unproven = {s.phase for s in counted if first_step and _holds_optimizer(s)}
    return [
        s.phase
        for s in counted
        if s.expected > (limit if shared or s.has_trainer or s.phase == died_in else capacity)
        and (s.phase in unproven or not _proven(s, before, place, died_in))
    ]


def _holds_optimizer(now: PhaseSum) -> bool:
    return any(cell.owner in ("optimizer", "offloaded_optimizer") and cell.expected for cell in now.cells)


def _proven(now: PhaseSum, before: Ledger, place: Place, died_in: Phase | None) -> bool:
    then = before.phase(place, now.phase)
    if then is None or now.expected > then.expected:
        return False
    return died_in is None or _first_step(now.phase) < _first_step(died_in)


def _first_step(phase: Phase) -> int:
    place = PHASE_TABLE[phase].first_step
    return len(PHASES) if place is None else place


def died_in(before: Ledger, place: Place, phase: Phase, shared: bool = True) -> Phase:
    """The phase that ran out: the one the log shows, else the fullest by prediction, of the trainer's own cards where
    the engine does not share them."""
    if before.phase(place, phase) is not None:
        return phase
    peak = before.peak(place) if shared else before.crowded(place)
    return peak.phase if peak is not None else "unknown"
