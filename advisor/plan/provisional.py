"""Makes the steps that are right if what is likely turns out true, where nothing proves a cause."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from advisor.diagnosis.conditions import all_hold
from advisor.diagnosis.deciding import GUESSED, PHASE, acts_in
from advisor.diagnosis.fact import Fact
from advisor.knowledge.schema import Cause, Provision, Remedy
from advisor.language import say
from advisor.plan.applicable import may_apply
from advisor.plan.by_hand import advice_step
from advisor.plan.options import unseen_number
from advisor.plan.plan import PlanStep
from advisor.plan.propose import Proposal, propose
from advisor.plan.situation import Situation
from advisor.plan.steps import step_of
from advisor.words import Memory, when

TAKEN = ("batch-or-states", "long-sequence", "batch-too-big")
"""Causes in a training step that are taken where nothing tells another."""
OF_DATA = "data."
"""Knobs that a launch of any kind may have: it reads its data in processes of its own."""
MOST_PROVISIONAL, MOST_OF_OTHER_PHASE = 4, 3
"""A short list: the first thing to do is to find the witness."""


def provisional_steps(situation: Situation, cause: Cause, *, decided: bool) -> list[PlanStep]:
    """For each memory that it may have been, the first provision of the cause whose facts hold, and what is right if it
    was the other phase; [] where there is none. None of the steps is switched on.

    `decided`: what the sums chose fits in every phase.
    """
    chosen: dict[Memory, Provision] = {}
    for provision in cause.provisional:
        if provision.memory not in chosen and all_hold(provision.when, situation.facts) is not None:
            chosen[provision.memory] = provision
    ways = [(provision, situation) for provision in chosen.values()]
    ways += [] if decided else _in_other_phase(situation, cause)
    found: list[PlanStep] = []
    for provision, seen in ways:
        only_if = say("only if {condition}", condition=" ".join(provision.condition.split()))
        known = {step.id for step in found}
        steps = (step for step in _provided(seen, provision) if step.id not in known)
        named = (replace(step, caveats=(only_if, *step.caveats), only_if=only_if) for step in steps)
        found += islice(named, MOST_PROVISIONAL if seen is situation else MOST_OF_OTHER_PHASE)
    return found


def _in_other_phase(situation: Situation, told: Cause) -> Iterator[tuple[Provision, Situation]]:
    """What acts in the next likeliest phase against the cause that it would have there, where `told` is a guess."""
    passes, otherwise = situation.facts.get("frame.pass"), situation.open_phase
    shown = passes is not None and passes.value is True
    if otherwise is None or shown or not (otherwise.guessed or told.id in TAKEN):
        return
    phase, cause = otherwise.other, otherwise.cause
    facts = {**situation.facts, PHASE: Fact(phase, "log", ""), GUESSED: Fact(True, "log", "")}
    acting = [one for one in situation.remedies if one.id in cause.remedies and acts_in(one, {phase})]
    own = [one for one in acting if one.phases and all_hold(one.applies_when, facts) is not None]
    ids = {one.id for one in (own if len(own) > 1 else acting)}
    named = tuple(name for name in cause.remedies if name in ids)
    there = Provision((), say("it died {when}", when=when(phase)), cause.memory, named)
    yield there, replace(situation, facts=facts, phase=phase)


def _provided(situation: Situation, provision: Provision) -> Iterator[PlanStep]:
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    seen = replace(situation, place="host" if provision.memory == "host" else "gpu", cause="")
    dialect = situation.now.built.natives.framework is not None
    for remedy in (by_id[name] for name in provision.remedies if name in by_id):
        if (seen.phase != "unknown" and not acts_in(remedy, {seen.phase})) or not may_apply(remedy, seen):
            continue
        if remedy.value is None:
            yield advice_step(remedy, seen)
        elif dialect and (step := _harmless(remedy, seen)) is not None:
            yield step
        elif remedy.results == "unchanged" and (unseen_number(remedy, seen) if dialect else _of_any(remedy, provision)):
            yield advice_step(remedy, seen)


def _of_any(remedy: Remedy, provision: Provision) -> bool:
    """Whether a launch without a dialect may have it: every one reads data, and what trains on a card makes passes."""
    return provision.memory == "gpu" or (remedy.knob or "").startswith(OF_DATA)


def _harmless(remedy: Remedy, seen: Situation) -> PlanStep | None:
    """The remedy as a step, unless it changes results or takes room elsewhere that is not there, or may not be: the end
    of an offload is a step where the cards are counted to hold it."""
    found = propose(remedy, seen, {})
    if not isinstance(found, Proposal) or found.results == "changed":
        return None
    held = remedy.lever == "offload-off" and found.spills == 0 and seen.now.ledger.gpu_capacity is not None
    if not held and any(size < 0 for size in (*found.saves.values(), *found.other_saves.values())):
        return None
    return step_of(found, seen, selected=False)
