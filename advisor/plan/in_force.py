"""Asks why a remedy that is in force already had no effect, where neither sums nor log explain that the run died."""

from __future__ import annotations

from advisor.knowledge.schema import Cause, Remedy
from advisor.language import say
from advisor.plan.common_names import stated_by_name
from advisor.plan.plan import PlanStep
from advisor.plan.situation import Situation

REACH = 5
"""Remedies of a cause, from the first on, that would have ended it (judgement)."""
OF_CARD = 0.1
"""Of a card that nothing counted explains: from here on a setting may not act (judgement)."""


def acting_step(situation: Situation, cause: Cause) -> PlanStep | None:
    """How to see whether the first of the cause's remedies that the run has already acts; None where the run has none
    of them, or where the sums explain what was held. On the host, where little is counted, the cause's first alone."""
    if situation.now.enough is False or cause.memory != situation.place:
        return None
    card = situation.now.ledger.gpu_capacity
    dark = sum(one.unexplained for one in situation.predictor.measured.corrections if one.place == situation.place)
    if situation.place == "gpu" and (card is None or dark < OF_CARD * card):
        return None
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    own = [by_id[name] for name in cause.remedies if name in by_id and by_id[name].value is not None][
        : REACH if situation.place == "gpu" else 1
    ]
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
