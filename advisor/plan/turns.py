"""Orders the steps of a plan where nothing tells what held the card: one for each possible holder, then the rest."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.knowledge.schema import Cause, Remedy
from advisor.plan.by_hand import needs_engine
from advisor.plan.options import unseen_number
from advisor.plan.plan import PlanStep
from advisor.plan.select import GUESSED, LITTLE, holder_of
from advisor.plan.situation import Situation
from advisor.run.values import parse_value
from advisor.words import Phase

NAMED = ("frame.gather", "frame.gathers_all", "frame.bucket", "frame.collects")
"""Frames that name what was being allocated: then nothing has to be guessed, whatever the phase."""


def holder_unknown(situation: Situation, cause: Cause) -> bool:
    """Whether nothing tells what held the card: the cause is a guess, and no sum over a whole launch speaks for it."""
    if situation.place != "gpu" or cause.memory != "gpu":
        return False
    if any(name in situation.facts and situation.facts[name].value is True for name in NAMED):
        return False
    now = situation.now
    if situation.led:
        return False  # the failing line names it
    if situation.phase == "unknown" and now.built.natives.framework is None:
        return cause.counted
    if situation.phase == "unknown" and now.enough is False and not now.run.seen_whole:
        return cause.counted
    return cause.id in (*GUESSED, "not-in-the-settings") and now.enough is not False


def in_turns(steps: Sequence[PlanStep], situation: Situation, cause: Cause) -> list[PlanStep]:
    """One step for each thing that may hold the card, then the rest: a short list that helps whatever it was.

    What is switched on stays in front, and what relieves nothing by itself (a version, a look at the other process)
    where it stood before all that does. What leaves the results alone leads its kind, of that a setting which the
    user's own launch states; in a known framework such kinds come before those whose lead changes results. What the
    cause names leads its equals; more machines come last.
    """
    remedies = {remedy.id: remedy for remedy in situation.remedies}
    relieves = [_kind(remedies.get(step.id), step, situation) for step in steps]
    start = max((i + 1 for i, step in enumerate(steps) if step.selected), default=0)
    while start < len(steps) and relieves[start] == "other":
        start += 1
    rest = range(start, len(steps))
    bought = {i: steps[i].kind == "machine" for i in rest}
    known = situation.now.built.natives.framework is not None  # else only what the launch states is sure to exist
    leads: dict[str, int] = {}
    elsewhere = {i: not _of_phase(remedies.get(steps[i].id), situation.phase) for i in rest}
    for i in sorted(rest, key=lambda i: (bought[i], elsewhere[i], steps[i].results == "changed", not stated(steps[i]))):
        engine = (
            steps[i].changes
            and not (known and _unseen(steps[i], situation))
            and not low_already(steps[i], remedies.get(steps[i].id))
        )  # there may be none at all
        remedy = remedies.get(steps[i].id)
        by_key = not known or steps[i].changes or steps[i].results == "unchanged"
        by_key = by_key or (remedy is not None and unseen_number(remedy, situation))  # its title names the key
        if relieves[i] != "other" and (relieves[i] != "engine" or engine) and by_key:
            leads.setdefault(relieves[i], i)
    own = holder_of(cause, situation)
    most = max((decisive(steps[i]) for i in rest if steps[i].results == "unchanged"), default=0)
    order = {
        i: (
            bought[i],
            elsewhere[i],
            0 < decisive(steps[i]) < LITTLE * most,
            known and steps[i].results == "changed",
            relieves[i] != own,
            steps[i].results == "changed" and relieves[i] == "states",  # another kind of training
            not stated(steps[i]),
            -max(steps[i].saves.values(), default=0),
            i,
        )
        for i in leads.values()
    }
    first = sorted(leads.values(), key=order.__getitem__)
    later = [steps[i] for i in rest if i not in first]
    return [*steps[:start], *unchanged_ahead([steps[i] for i in first], later)]


def _kind(remedy: Remedy | None, step: PlanStep, situation: Situation) -> str:
    """What a step relieves. A batch whose size nobody saw is a kind of its own: it may be any, and everybody can halve
    it.
    """
    if remedy is None:
        return "other"
    open_batch = remedy.relieves == "pass" and step.results == "unchanged" and unseen_number(remedy, situation)
    return "batch" if open_batch and remedy.knob == "actor.micro_batch" else remedy.relieves


def unchanged_ahead(leads: Sequence[PlanStep], later: Sequence[PlanStep]) -> list[PlanStep]:
    """`leads`, then `later`; but what leaves the results alone and saves more stands before leads that give them up."""
    given = max((decisive(step) for step in leads if step.results == "changed"), default=0)
    more = [step for step in later if step.results == "unchanged" and decisive(step) > given > 0]
    at = next((i for i, step in enumerate(leads) if step.results == "changed"), len(leads))
    return [*leads[:at], *more, *leads[at:], *(step for step in later if step not in more)]


def decisive(step: PlanStep) -> int:
    """Bytes that a step saves where it counts."""
    return step.saves.get(step.headline, 0) if step.headline is not None else 0


def _unseen(step: PlanStep, situation: Situation) -> bool:
    remedy = next((one for one in situation.remedies if one.id == step.id), None)
    return remedy is not None and (needs_engine(remedy, situation) == "unseen" or situation.needs_more(remedy))


def _of_phase(remedy: Remedy | None, phase: Phase) -> bool:
    """Whether the remedy is for the phase that died and no other."""
    return remedy is not None and remedy.phases == (phase,)


def low_already(step: PlanStep, remedy: Remedy | None) -> bool:
    """A share that the launch shows to be as low as it goes in most runs that work."""
    low = remedy.value.low if remedy is not None and remedy.value is not None else None
    old = parse_value(step.changes[0].old or "", "float")
    return low is not None and isinstance(old, float) and old <= low and stated(step)


def stated(step: PlanStep) -> bool:
    """The user's own files or the log say what the setting is now."""
    return any(one.old is not None and one.old_source not in (None, "default", "assumed") for one in step.changes)
