"""Puts in front what this run's own material names: a documented case, numbers that the launch states, light before
heavy.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from advisor.diagnosis.conditions import all_hold
from advisor.knowledge.schema import Cause, Remedy
from advisor.plan.as_in_case import AS_IN, HELPED
from advisor.plan.plan import PlanStep
from advisor.plan.select import GUESSED
from advisor.plan.situation import Situation
from advisor.plan.turns import decisive, low_already, stated
from advisor.run.values import parse_value

FIRST_FEW = 3
"""Steps that everybody reads."""
STATED = 2
"""Stated numbers among them: what else helps keeps its place."""


def led_by_the_run(steps: Sequence[PlanStep], situation: Situation, cause: Cause) -> list[PlanStep]:
    """The steps: what is switched on first, then what the run's own material names, then the rest.

    Ahead of what is switched on stands only what is no setting, or what a case alike changed. The first of the others
    stays first unless it moves an engine that sleeps, or a lighter step of the same effect is there.
    """
    end = max((i + 1 for i, step in enumerate(steps) if step.selected), default=0)
    ahead = [one for one in steps[:end] if not one.selected and (one.kind != "setting" or one.id.startswith(AS_IN))]
    front = [one for one in steps[:end] if one.selected or one in ahead]
    known = {remedy.id: remedy for remedy in situation.remedies}
    rest = _asleep_last([one for one in steps if one not in front], known, situation)
    rest = _light_first(rest, known, situation, cause)
    rest = _stated_early(rest, known, situation, cause, room=FIRST_FEW - len(front))
    return _as_documented([*front, *rest], situation, len(front))


def largest_early(steps: Sequence[PlanStep], situation: Situation) -> list[PlanStep]:
    """The steps; on the host what relieves most of all stands right behind whatever is switched on, even where the
    cards lack the room for it (said with its price), and machines among the first few.
    """
    if situation.place != "host":
        return list(steps)
    end = max((i + 1 for i, step in enumerate(steps) if step.selected), default=0)
    front, rest = list(steps[:end]), list(steps[end:])
    largest = max(rest, key=most_saved, default=None)
    if largest is not None and most_saved(largest) > max(map(most_saved, front), default=0):
        rest.remove(largest)
        first = next((i for i, step in enumerate(rest) if step.kind == "setting"), 1)  # what is looked at stays first
        rest.insert(max(first, 1) if largest.spills else first, largest)
    machines = [step for step in rest[FIRST_FEW - 1 :] if step.kind == "machine"][:1]
    for step in machines:
        rest.remove(step)
        rest.insert(FIRST_FEW - 1, step)
    return [*front, *rest]


def most_saved(step: PlanStep) -> int:
    """Bytes that it saves in the phase that gains most."""
    return max(step.saves.values(), default=0)


def heavy(remedy: Remedy | None) -> bool:
    """Whether it costs much more than others that relieve the same: time, RAM, or another kind of run."""
    return remedy is not None and (remedy.heavy or remedy.last_resort)


def fills_the_card(step: PlanStep, situation: Situation) -> bool:
    """Whether it puts more on a card of which nobody knows how much it has."""
    on_card = step.host_saves if step.place == "host" else step.saves
    return situation.now.ledger.gpu_capacity is None and min(on_card.values(), default=0) < 0


def _light_first(steps: list[PlanStep], known: dict[str, Remedy], situation: Situation, cause: Cause) -> list[PlanStep]:
    """Heavy steps stand behind the light ones of the same effect, what fills an unknown card behind every light one.

    Where the cause is a guess, every step has the effect that it may need.
    """
    for step in list(steps):
        remedy, filling = known.get(step.id), fills_the_card(step, situation)
        if not filling and (not heavy(remedy) or step.id in cause.remedies[:1]):
            continue
        light = [one for one in steps if one is not step and _is_light(one, known, situation)]
        if not filling and remedy is not None and cause.id not in GUESSED:
            light = [one for one in light if (r := known.get(one.id)) is not None and r.relieves == remedy.relieves]
        last = light[:FIRST_FEW][-1:]
        if last and steps.index(step) < steps.index(last[0]):
            steps.remove(step)
            steps.insert(steps.index(last[0]) + 1, step)
    return steps


def _is_light(step: PlanStep, known: dict[str, Remedy], situation: Situation) -> bool:
    light = step.results == "unchanged" and step.kind not in ("version", "machine") and not step.spills
    return light and not heavy(known.get(step.id)) and not fills_the_card(step, situation)


def _asleep_last(steps: list[PlanStep], known: dict[str, Remedy], situation: Situation) -> list[PlanStep]:
    """An engine that gave its memory back while the model trains holds nothing there: its share comes last."""
    if not situation.engine_asleep:
        return steps
    held = [s for s in steps if (r := known.get(s.id)) is not None and r.relieves == "engine" and decisive(s) <= 0]
    return [*(step for step in steps if step not in held), *held]


def is_lever(step: PlanStep, remedy: Remedy | None, situation: Situation) -> bool:
    """Whether it lowers a number that the user's own launch states, and that acts where the run died."""
    if remedy is None or remedy.relieves not in ("pass", "rows", "engine") or not stated(step):
        return False
    if low_already(step, remedy) or (remedy.relieves == "engine" and situation.engine_asleep):
        return False
    change = next(one for one in step.changes if one.old is not None)
    old, new = (parse_value(text or "", "float") for text in (change.old, change.new))
    if not isinstance(old, float) or not isinstance(new, float) or new >= old:
        return False
    counted = any(step.saves.values())
    here = step.saves.get(situation.fullest, 0) > 0 or (situation.phase == "unknown" and decisive(step) > 0)
    return here if counted else not remedy.phases or situation.phase in ("unknown", *remedy.phases)


def _stated_early(
    steps: list[PlanStep], known: dict[str, Remedy], situation: Situation, cause: Cause, room: int
) -> list[PlanStep]:
    """Stated numbers among the first few, behind the first step; right behind those one that gives up results."""
    if not cause.counted or situation.place != "gpu":
        return steps
    room = max(room, STATED)
    usual = {r.id for r in known.values() if r.leads_when and all_hold(r.leads_when, situation.facts) is not None}
    levers = [one for one in steps if is_lever(one, known.get(one.id), situation)]
    quiet, loud = ([s for s in levers if (s.results == "changed") is changed] for changed in (False, True))
    for lever in sorted(quiet, key=decisive, reverse=True):
        told = [one for one in steps[:room] if one in levers or one.id in usual]
        if len(told) < STATED and lever not in told:
            steps.remove(lever)
            steps.insert(1, lever)
    given = [one for one in steps[: room + 1] if one.results == "changed" and (one in levers or one.id in usual)]
    for lever in sorted(loud, key=decisive, reverse=True)[: 0 if given else 1]:
        steps.remove(lever)
        steps.insert(room, lever)
    return steps


def _as_documented(steps: list[PlanStep], situation: Situation, start: int) -> list[PlanStep]:
    """What helped in a case whose known facts are all those of this run stands among the first few.

    More RAM or cards and last resorts keep their place: what somebody bought is no first try.
    """
    helped = (case for case in situation.cases if case.grade in HELPED and case.situation.get("phase"))
    case = next((one for one in helped if one.situation["phase"] == situation.phase), None)
    if case is None:
        return steps
    known = {remedy.id: remedy for remedy in situation.remedies}
    named = [step for name in case.remedies for step in steps[start:] if step.id == name and not step.spills]
    named = [step for step in named if step.tier != "hardware" and not heavy(known.get(step.id))]
    for place, step in enumerate(named[:STATED]):
        at = steps.index(step)
        steps.pop(at)
        steps.insert(min(at, start + 1 + place), replace(step, documented=step.documented or case.id))
    return steps
