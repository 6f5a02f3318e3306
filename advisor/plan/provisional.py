"""Makes the steps for what is only likely: where nothing proves a cause, and where nothing tells what filled the host
RAM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from advisor.diagnosis.deciding import PHASE, PHASE_GUESSED, acts_in
from advisor.diagnosis.fact import Fact, all_hold, contradicted, holds
from advisor.knowledge.schema import Cause, Provision, Remedy
from advisor.language import say
from advisor.plan.applicable import may_apply, needs_engine, spent, told
from advisor.plan.by_hand import advice_step
from advisor.plan.options import unseen_number
from advisor.plan.plan import PlanStep
from advisor.plan.propose import Proposal, propose
from advisor.plan.select import GUESSED
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
    passes, otherwise = situation.value("frame.pass"), situation.open_phase
    shown = passes is True
    if otherwise is None or shown or not (otherwise.guessed or told.id in TAKEN):
        return
    phase, cause = otherwise.other, otherwise.cause
    facts = {**situation.facts, PHASE: Fact(phase, "log", ""), PHASE_GUESSED: Fact(True, "log", "")}
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


_SHOWN_BY = ("host.held_by", "host.top_user", "host.driver_large")
"""Facts of which each shows something of who held the RAM."""
_OF_EACH = 2
"""Remedies of one possible cause that are listed: its best, and one more."""
_MOST_OF_HOLDERS = 5
"""Remedies added: a list, not a catalogue."""
_LARGE, _SMALL = 13e9, 3e9
"""Parameters: 8 ranks that each load a copy in 16 bits take 200 GB of a node, in 32 bits 400 GB; a small one 100."""
_ASKED = 2
"""Remedies of a guessed cause that only look."""
_OF_STATES = ("offload-fills-host",)
_SMALLER_STATES = ("lora-host", "nvme-offload", "more-host-ram")
"""What makes room where a node could not hold the states of full training."""
_COPIES = ("loading-per-rank", "checkpoint-in-ram")
_HOLDER_QUESTION = "host_holder"


class HostSteps(Struct, frozen=True):
    """The steps with the best remedies of every holder that is not ruled out, and what decides their order."""

    steps: Sequence[PlanStep]
    leading: Sequence[str] = ()
    """Remedies of states that no node holds, and of the whole copies of a large model."""
    unseen: Collection[str] = ()
    """Steps told on the condition that the launch has what they undo."""
    helped: Counter[str] = Counter()
    """Remedy → documented reports that it helped."""


def holders_of(steps: Sequence[PlanStep], situation: Situation, cause: Cause) -> HostSteps:
    """The steps alone, unless the RAM ran out and nothing tells what filled it."""
    guessed = situation.place == "host" and cause.id in GUESSED and not any(map(situation.facts.get, _SHOWN_BY))
    if not guessed:
        return _of_workers(steps, situation, cause)
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    beyond = _states_beyond(situation)
    if beyond:  # neither data nor a validation comes near them
        causes = [one for one in situation.knowledge.tree.causes if one.id in _OF_STATES]
        named = {*cause.remedies[:_ASKED], *(name for one in causes for name in one.remedies)}
        steps = [step for step in steps if step.id in named]
    listed = {step.id for step in steps}
    helped = Counter(
        name
        for case in situation.knowledge.cases
        if case.situation.get("memory") == "host" and case.grade != "failed"
        for name in case.remedies
    )
    found = [remedy for remedy in _possible(situation, _OF_STATES if beyond else ()) if remedy.id not in listed]
    found.sort(key=lambda remedy: -helped[remedy.id])
    every = [*steps, *(advice_step(remedy, situation) for remedy in found[:_MOST_OF_HOLDERS])]
    told = [_conditional(step, by_id.get(step.id), situation) for step in every]
    unseen = {one.id for one, step in zip(told, every, strict=True) if one is not step}
    unseen |= {one.id for one in by_id.values() if situation.needs_more(one)}
    leading = _whole_copies(situation) if beyond or _is_large(situation) else ()
    leading = (*_SMALLER_STATES, *leading) if beyond else leading
    return HostSteps(told, leading, unseen, helped)


def _states_beyond(situation: Situation) -> bool:
    """Whether all states of the model, trained in full, are more than a node's RAM, and no step had room."""
    share, stepped = situation.value("host.states_share"), situation.facts.get("ran")
    trains = situation.value("lora") is not True
    return isinstance(share, float) and share >= 1 and stepped is None and trains


def _of_workers(steps: Sequence[PlanStep], situation: Situation, cause: Cause) -> HostSteps:
    """The steps with those that end an offload nobody saw, where the training workers hold most: their own lever."""
    held, now = situation.value("host.held_by"), situation.now
    if situation.place == "host":
        by_id = {one.id: one for one in situation.remedies}
        steps = [_conditional(step, by_id.get(step.id), situation) for step in steps]
    if held != "workers" or cause.id not in GUESSED or now.run.seen_whole:
        return HostSteps(steps)
    listed = {step.id for step in steps}
    open_ones = [one for one in situation.remedies if one.id in cause.remedies and one.lever == "offload-off"]
    open_ones = [one for one in open_ones if one.id not in listed and now.built.natives.carrier(one.knob or "")]
    open_ones = [one for one in open_ones if not any(contradicted(rule, situation.facts) for rule in one.applies_when)]
    made = [_conditional(advice_step(one, situation), one, situation) for one in open_ones if not spent(one, situation)]
    return HostSteps([*made, *steps], leading=[step.id for step in made])


def _is_large(situation: Situation) -> bool:
    """Whether the model's weights in 16 bits, once for each card of a node or gathered once, fill what nodes have;
    before a step is seen, those of any but a small model may."""
    model, ran = situation.now.run.model, situation.facts.get("ran")
    least = _SMALL if ran is None else _LARGE
    return (model.parameters or 0) >= least if model is not None else ran is None


def _whole_copies(situation: Situation) -> tuple[str, ...]:
    """Remedies of the two moments in which a node holds whole copies: each rank loads one, or one is gathered; of a run
    of which nobody saw a step the first, else the second before the other."""
    stepped = situation.facts.get("ran")
    causes = [one for one in situation.knowledge.tree.causes if one.id in _COPIES]
    causes.sort(key=lambda one: (one.phase == "model_load") is (stepped is not None))
    return tuple(name for one in causes for name in one.remedies[:_OF_EACH])


def _possible(situation: Situation, among: Collection[str] = ()) -> list[Remedy]:
    """The best remedies of each cause that an answer still open leads to, none against which a fact speaks. `among`:
    of these causes alone."""
    tree, facts = situation.knowledge.tree, situation.facts
    causes = {one.id: one for one in tree.causes}
    by_id = {one.id: one for one in situation.remedies}
    question = next(one for one in tree.questions if one.id == _HOLDER_QUESTION)
    left = [one for one in question.answers.values() if one.unless is None or holds(one.unless, facts) is None]
    left = [one for one in left if not among or one.leads_to in among]
    launch = situation.predictor.inputs.launch
    seen = launch is not None and situation.now.run.seen_whole  # its own settings say what is on
    possible: dict[str, Remedy] = {}
    for answer in left:
        names = causes[answer.leads_to].remedies if answer.leads_to else ()
        fitting = [by_id[name] for name in names if name in by_id and by_id[name].memory == "host"]
        fitting = [
            one
            for one in fitting
            if may_apply(one, situation) and needs_engine(one, situation) != "missing" and one.kind != "version"
        ]
        fitting = [one for one in fitting if told(one, situation)]
        fitting = [one for one in fitting if not one.phases or situation.phase in ("unknown", *one.phases)]
        fitting = [one for one in fitting if situation.reaches(one) and not spent(one, situation)]
        fitting = [one for one in fitting if not (seen and one.value is not None and one.value.to is False)]
        possible.update({one.id: one for one in fitting[:_OF_EACH]})
    return list(possible.values())


def _conditional(step: PlanStep, remedy: Remedy | None, situation: Situation) -> PlanStep:
    """The step; of one that switches something off which nobody saw switched on, with that condition."""
    if step.changes or remedy is None or remedy.value is None or remedy.value.to is not False:
        return step
    carrier = situation.now.built.natives.carrier(remedy.knob or "")
    if carrier is None:
        return replace(step, title=say("Where the launch switches it on: {title}", title=step.title))
    return replace(step, title=say("Where the launch sets {key}: {title}", key=carrier.key, title=remedy.title))
