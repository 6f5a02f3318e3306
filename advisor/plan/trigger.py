"""Finds the step that turns back the setting with which a run began to fail, by what its user says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.plan.plan import PlanStep
from advisor.plan.select import lever_of
from advisor.plan.situation import Situation


def turned_back(steps: Sequence[PlanStep], situation: Situation) -> str:
    """The step for the user's very setting, else the first of its lever; "" where they name none, or none is here."""
    began, words = situation.facts.get("trigger"), situation.knowledge.signatures.statements
    if began is None or words is None or began.value in situation.in_vain:
        return ""
    named = began.because
    key = named.split(" ")[0].lstrip("-").rpartition(".")[2]
    remedies = {one.id: one for one in situation.remedies}
    alike = [step for step in steps if step.id in remedies and lever_of(remedies[step.id]) == began.value]

    def rank(step: PlanStep) -> tuple[bool, bool]:
        moves = any(change.key.lstrip("-").rpartition(".")[2] == key for change in step.changes)
        return not moves, re.search(words.turned.get(step.id, r"(?!)"), named) is None

    return min(alike, key=rank).id if alike else ""
