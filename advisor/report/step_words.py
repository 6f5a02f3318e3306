"""Words a step of a plan: the setting it changes, what it saves, and what it takes from the other place."""

from __future__ import annotations

from advisor.language import Sayings, listed, say
from advisor.memory.cells import Ledger, Place
from advisor.memory.fit import capacity_of
from advisor.plan.plan import Change, PlanStep, grouped
from advisor.run.values import parse_value
from advisor.units import GIB, show_bytes
from advisor.words import PHASE_TITLES, Phase, filled


def results_word(step: PlanStep) -> str:
    """ "same" or "CHANGES": whether training results change."""
    return say("same") if step.results == "unchanged" else say("CHANGES")


def change_line(change: Change) -> str:
    """ "worker.rollout.gpu_memory_utilization 0.6 → 0.5"; what only some versions have is followed by which."""
    line = _change(change)
    line = say("{change} in {file}", change=line, file=change.within) if change.within else line
    return say("{change} ({since})", change=line, since=change.since) if change.since else line


_GUESSED: Sayings[float] = Sayings(
    {
        0.5: "{key}: half of what yours is (the default is {old})",
        2.0: "{key}: twice what yours is (the default is {old})",
    }
)
"""Of a number that nobody stated: how far it goes."""


def _of_guess(change: Change) -> str:
    """The change where its old number is only a default in place of one that nobody saw; "" elsewhere."""
    old, new = (parse_value(text or "", "float") for text in (change.old, change.new))
    if change.old_source != "assumed" or type(old) is not float or type(new) is not float or old <= 0:
        return ""
    told = {"key": change.key, "old": change.old or ""}
    return filled(_GUESSED[new / old], told) if new / old in _GUESSED else ""


def _change(change: Change) -> str:
    if guessed := _of_guess(change):
        return guessed
    if change.new is None and change.old_source == "assumed":
        return say("{key} removed, where your launch has it", key=change.key)
    if change.new is None:
        return say("{key} removed (was {old})", key=change.key, old=change.old_words)
    if change.old is None and change.old_source == "assumed":
        return say("{key} → {new} (not seen in your launch)", key=change.key, new=change.new)
    if change.bare and change.old is None:
        return say("{key} added", key=change.key)
    if change.old is None and change.file.endswith((".yaml", ".yml")):
        return say("{key}: {new} (not set before)", key=change.key, new=change.new)
    if change.old is None and change.file:
        return say("{key} = {new} (not set before)", key=change.key, new=change.new)
    return f"{change.key} → {change.new}" if change.old is None else f"{change.key} {change.old_words} → {change.new}"


def place_of(change: Change) -> str:
    """ "run.sh:9, added as an override"; "" where no file is edited."""
    if not change.file:
        return change.how
    where = change.file if change.line is None else f"{change.file}:{change.line}"
    return say("{place}, {how}", place=where, how=change.how) if change.how else where


def largest_saving(step: PlanStep) -> tuple[Phase, int, Place] | None:
    """Phase, bytes and place of the amount that stands for the step; None where none can be said."""
    phase = step.headline
    saved = step.told.get(phase) if phase is not None else None
    return None if phase is None or saved is None else (phase, saved, "host" if step.place == "host" else "gpu")


def saves_word(step: PlanStep) -> str:
    """ "−4.00 GiB gpu" (a minus: less is used); "" where nothing was computed."""
    saving = largest_saving(step)
    if step.most and step.headline is not None and step.saves[step.headline] > step.most:  # no card ever held it
        return say("−{size} gpu and more", size=_rough(step.most, step))
    if saving is None or saving[1] == 0:
        return ""
    _, count, place = saving
    size = f"{'−' if count > 0 else '+'}{_rough(abs(count), step)}"
    return say("{size} host", size=size) if place == "host" else say("{size} gpu", size=size)


def trade_words(step: PlanStep, ledger: Ledger) -> tuple[str, ...]:
    """What it takes from the other place: "+96.00 GiB host of 512.00 GiB", and by how much that is too little."""
    taken = -min(step.host_saves.values(), default=0)
    if taken <= 0:
        return ()
    other: Place = "gpu" if step.place == "host" else "host"
    capacity = capacity_of(ledger, other)
    told = {"size": f"+{_rough(taken, step)}", "of": f"{(capacity or 0) / GIB:.0f}", "short": _rough(step.spills, step)}
    if capacity is None:
        taken_word = say("{size} host", **told) if other == "host" else say("{size} gpu", **told)
    else:
        taken_word = say("{size} host of {of}", **told) if other == "host" else say("{size} gpu of {of}", **told)
    alone = step.spills and not step.selected  # of what is switched on, the promise of all together speaks
    return (taken_word, say("there {short} too much", **told)) if alone else (taken_word,)


def _rough(size: int, step: PlanStep) -> str:
    """Bytes in words, without decimals where they are an estimate."""
    return f"{size / GIB:.0f} GiB" if step.basis == "estimated" and size >= GIB else show_bytes(size)


_SAVED: Sayings[tuple[str, bool]] = Sayings(
    {
        ("gpu", True): "{size} less GPU memory per card in {phases}",
        ("gpu", False): "{size} more GPU memory per card in {phases}",
        ("host", True): "{size} less host RAM per node in {phases}",
        ("host", False): "{size} more host RAM per node in {phases}",
    }
)
"""(place, whether less is used) → what a step does there."""


def savings(step: PlanStep) -> list[str]:
    """One clause an amount, of its own place and of the other one: "4.00 GiB less GPU memory per card in the actor
    update, the optimizer step"."""
    own, other = ("host", "gpu") if step.place == "host" else ("gpu", "host")
    return [
        _SAVED[memory, count > 0].format(
            size=show_bytes(abs(count)), phases=listed(PHASE_TITLES[phase] for phase in phases)
        )
        for memory, saves in ((own, step.told), (other, step.host_saves))
        for count, phases in grouped(saves)
    ]
