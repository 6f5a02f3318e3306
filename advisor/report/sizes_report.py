"""How far a run can go, in sentences: the largest values alone, and the smallest machine for it as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.machine.inventory import Machine
from advisor.units import show_bytes
from advisor.words import when

if TYPE_CHECKING:
    from advisor.plan.sizes import Reach, Sizes

_PLACES = {"gpu": "on the card", "host": "in host RAM"}


def sizes_told(sizes: Sizes | None, machine: Machine) -> list[str]:
    """One line a setting, then the machine; [] where nothing can be computed."""
    if sizes is None:
        return []
    lines = [_reach(reach) for reach in sizes.reaches]
    if lines and all(reach.most is None for reach in sizes.reaches):
        lines = [
            "No single one of " + ", ".join(reach.key for reach in sizes.reaches) + " makes it fit, however small."
        ]
    elif lines:
        lines.insert(0, "One setting at a time, all others as they are:")
    return [*lines, _machine(sizes, machine)]


def _reach(reach: Reach) -> str:
    if reach.most is None:
        return f"  {reach.key} (now {reach.now}): no value of it makes the run fit"
    told = f"  {reach.key} up to {reach.most} (now {reach.now})"
    if reach.stopped_by is not None:
        place, phase = reach.stopped_by
        return f"{told}; more is too much {_PLACES[place]} {when(phase)}"
    if not reach.is_open:
        return f"{told}; the framework takes no more with the other settings as they are"
    return f"{told}, or more: it is not what fills the machine"


def _machine(sizes: Sizes, machine: Machine) -> str:
    """Bytes needed, and the smallest card: an engine's share of the card is smaller on a smaller one."""
    need = f"As it is, the run needs {show_bytes(sizes.gpu_bytes)} on each card"
    if sizes.host_bytes:
        need += f" and {show_bytes(sizes.host_bytes)} of host RAM on each node"
    if sizes.card is None:
        return f"{need}, the margin included: more than any known card has."
    count = f"{len(machine.gpus)} x " if len(machine.gpus) > 1 else ""
    shares = ", since shares of a card shrink with it" if sizes.gpu_bytes > sizes.card.total_bytes else ""
    return f"{need}, the margin included. The smallest known cards that hold it: {count}{sizes.card.name}{shares}."
