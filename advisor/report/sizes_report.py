"""How far a run can go, in sentences: the largest values alone, and the smallest machine for it as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.language import listed, say
from advisor.machine.inventory import Machine
from advisor.units import show_bytes
from advisor.words import when

if TYPE_CHECKING:
    from advisor.plan.sizes import Reach, Sizes


def size_sentences(sizes: Sizes | None, machine: Machine) -> list[str]:
    """One line a setting, then the machine; [] where nothing can be computed."""
    if sizes is None:
        return []
    lines = [_reach(reach) for reach in sizes.reaches]
    if lines and all(reach.most is None for reach in sizes.reaches):
        keys = listed(reach.key for reach in sizes.reaches)
        lines = [say("No single one of {keys} makes it fit, however small.", keys=keys)]
    elif lines:
        lines.insert(0, say("One setting at a time, all others as they are:"))
    return [*lines, _machine(sizes, machine)]


def _reach(reach: Reach) -> str:
    told = {"key": reach.key, "most": reach.most, "now": reach.now}
    if reach.most is None:
        said = say("{key} (now {now}): no value of it makes the run fit", **told)
    elif reach.stopped_by is not None and reach.stopped_by[0] == "gpu":
        at = when(reach.stopped_by[1])
        said = say("{key} up to {most} (now {now}); more is too much on the card {when}", **told, when=at)
    elif reach.stopped_by is not None:
        at = when(reach.stopped_by[1])
        said = say("{key} up to {most} (now {now}); more is too much in host RAM {when}", **told, when=at)
    elif not reach.is_open:
        said = say(
            "{key} up to {most} (now {now}); the framework takes no more with the other settings as they are", **told
        )
    else:
        said = say("{key} up to {most} (now {now}), or more: it is not what fills the machine", **told)
    return f"  {said}"


def _machine(sizes: Sizes, machine: Machine) -> str:
    """Bytes needed, and the smallest card: an engine's share of the card is smaller on a smaller one."""
    need = _need(sizes)
    if sizes.card is None:
        return say("{need}, the margin included: more than any known card has.", need=need)
    count = f"{len(machine.gpus)} x " if len(machine.gpus) > 1 else ""
    told = {"need": need, "cards": f"{count}{sizes.card.name}"}
    if sizes.gpu_bytes > sizes.card.total_bytes:
        return say(
            "{need}, the margin included. The smallest known cards that hold it: {cards}, since shares of a card "
            "shrink with it.",
            **told,
        )
    return say("{need}, the margin included. The smallest known cards that hold it: {cards}.", **told)


def _need(sizes: Sizes) -> str:
    card, host = show_bytes(sizes.gpu_bytes), show_bytes(sizes.host_bytes)
    if not sizes.host_bytes:
        return say("As it is, the run needs {card} on each card", card=card)
    return say("As it is, the run needs {card} on each card and {host} of host RAM on each node", card=card, host=host)
