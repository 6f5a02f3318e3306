"""Asks why a remedy that is in force already had no effect, where neither sums nor log explain that the run died."""

from __future__ import annotations

from advisor.knowledge.schema import Cause, Remedy
from advisor.language import say
from advisor.plan.common_names import stated_by_name
from advisor.plan.plan import PlanStep
from advisor.plan.situation import Situation

REACH = 5
"""Remedies of a cause, from the first on, that would have ended it (judgement)."""


def acting_step(situation: Situation, cause: Cause) -> PlanStep | None:
    """How to see whether the first of the cause's remedies that the run has already acts; None where the run has none
    of them, or where the sums do not say that with it there is room."""
    if situation.now.enough is not True or cause.memory != situation.place:
        return None
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    own = [by_id[name] for name in cause.remedies if name in by_id and by_id[name].value is not None][:REACH]
    found = next(((one, key) for one in own if one.in_force and (key := _set_by(one, situation))), None)
    if found is None:
        return None
    remedy, key = found
    return PlanStep(
        id=f"acts-{remedy.id}",
        rank=0,
        title=say("{key} is set already: see whether it acts", key=key),
        kind="manual",
        tier="free",
        changes=(),
        results="unchanged",
        basis="documented",
        saves={},
        place=situation.place,
        why=" ".join(remedy.in_force.split()),
        costs=say("nothing"),
        sources=(remedy.source,) if remedy.source else (),
        group=f"acts-{remedy.id}",
        decides=situation.fullest,
    )


def _set_by(remedy: Remedy, situation: Situation) -> str:
    """The user's own setting that has the value of the remedy, as it is written; "" where none has."""
    wanted = remedy.value.to if remedy.value is not None else None
    natives = situation.now.built.natives
    if natives.framework is None:
        stated = stated_by_name(remedy, situation)
        return stated.key if stated is not None and wanted is not None and stated.value == wanted else ""
    own = [one for one in natives.carriers(remedy.knob or "") if one.source in ("script", "environment")]
    knob = situation.now.run.knobs.get(remedy.knob or "")
    if wanted is None or knob is None or knob.value != wanted or not own:
        return ""
    return next((one.key.lstrip("-$") for one in own if one.key == knob.key), own[0].key.lstrip("-$"))
