"""Tells which remedies concern a run, in the order in which they are tried, and which of them no file carries."""

from __future__ import annotations

from advisor.knowledge.schema import Cause, Remedy
from advisor.plan.applicable import applies, barred, beside_engine, in_a_later_version, may_apply, of_years_later
from advisor.plan.held import weights_beyond
from advisor.plan.options import by_default, unseen_number
from advisor.plan.propose import Proposal, propose
from advisor.plan.select import GUESSED, TIERS
from advisor.plan.situation import Situation


def remedies_of(situation: Situation, cause: Cause) -> list[Remedy]:
    """The cause's own remedies in its order; results-preserving ones of the same memory and phase after them."""
    if cause.memory == "unknown":
        return []
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    names = dict.fromkeys((*cause.remedies, *_ordinary(situation, cause)))
    first = [by_id[name] for name in names if name in by_id and name not in cause.folklore]
    skip = {*names, *cause.folklore}
    rest = [r for r in situation.remedies if r.id not in skip and r.value is not None and r.memory == situation.place]
    computed = situation.now.unfit(situation.place) is not None and not situation.uncounted
    counted = situation.place == "gpu" and cause.memory != "shm" and cause.counted and computed
    rest = [r for r in rest if r.kind == "setting"] if counted else []
    rest.sort(key=lambda r: TIERS.index(r.tier))
    return [r for r in [*first, *rest] if r.value is not None and r.kind != "version" and _concerns(r, situation)]


def _ordinary(situation: Situation, cause: Cause) -> list[str]:
    """Remedies that make room in this phase for whatever fills the card, beside what ends the cause, unless room does
    not help it; last those of the cause that stands for all.
    """
    if situation.place != "gpu" or cause.memory != "gpu" or not cause.room_helps:
        return []
    causes = situation.knowledge.tree.causes
    here = [one for one in causes if situation.phase in one.ordinary_in]
    return [name for one in (*here, *(one for one in causes if one.id == GUESSED[0])) for name in one.remedies]


def _concerns(remedy: Remedy, situation: Situation) -> bool:
    elsewhere = remedy.memory not in (situation.place, "shm") and not remedy.platforms
    if elsewhere or barred(remedy, situation) is not None:
        return False
    if "gpu.beyond_card" in situation.facts and (
        remedy.relieves in ("states", "engine") or remedy.lever == "recompute"
    ):
        return False  # room for it cannot be made, only a smaller tensor
    if not situation.reaches(remedy) or (remedy.relieves in ("pass", "rows") and weights_beyond(situation)):
        return False
    if not beside_engine(remedy, situation):
        return False
    anywhere = not remedy.phases or situation.phase == "unknown" or remedy.id in situation.led
    anywhere = anywhere or situation.may_have_saved(remedy)
    return anywhere or situation.phase in remedy.phases


def told_by_hand(situation: Situation, cause: Cause) -> list[Remedy]:
    """Remedies that no file carries, in the cause's order: machines, manual steps, data without a switch.

    Without a dialect every remedy of the cause is one.
    """
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    natives = situation.now.built.natives
    ordinary = _ordinary(situation, cause)
    if (
        natives.framework is not None
    ):  # of supervised training also a method that the framework has no key of its own for
        ordinary = [n for n in ordinary if n in by_id and by_id[n].by_hand and not natives.rolls_out]
        titles = {by_id[n].title for n in ordinary}
        alike = [one for one in by_id.values() if one.title in titles]
        keyed = {one.title for one in alike if isinstance(propose(one, situation, {}), Proposal)}
        ordinary = [n for n in ordinary if by_id[n].title not in keyed]
    names = dict.fromkeys((*cause.remedies, *ordinary))
    named = [by_id[name] for name in names if name in by_id and by_id[name].kind != "version"]
    wanted = [r for r in named if may_apply(r, situation) and _concerns(r, situation) and applies(r, situation)]
    wanted = [r for r in wanted if r.id in cause.remedies[:1] or not of_years_later(r, situation)]
    if natives.framework is None:
        return [r for r in wanted if not (r.environment and r.value is not None)]
    first = cause.remedies[:1]
    return [
        r
        for r in wanted
        if (r.value is None and r.kind != "data")
        or _has_no_key(r, situation)
        or (r.id in first and in_a_later_version(r, situation))
    ]


def _has_no_key(remedy: Remedy, situation: Situation) -> bool:
    """Whether a remedy that can be told without a key has none here."""
    if remedy.kind == "data":
        return not situation.now.built.natives.carriers(remedy.knob or "")
    if unseen_number(remedy, situation):
        return _concerns(remedy, situation)
    return (
        remedy.by_hand
        and not by_default(remedy, situation)
        and not isinstance(propose(remedy, situation, {}), Proposal)
    )
