"""Guesses the phase where the failing frame leaves several: the likeliest, why, and what another would change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.crash.phase import LEAVES_BEHIND
from advisor.diagnosis.diagnosis import Choice, QuestionStep, RuledOut
from advisor.diagnosis.fact import Fact, Facts
from advisor.diagnosis.tree import Walk
from advisor.language import listed, say, sentences
from advisor.memory.cells import Ledger
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, Phase, sentence, when_either

QUESTION = "phase"
Walking = Callable[[dict[str, Fact]], Walk]
"""Walks the tree with these facts."""


def walk_likeliest(facts: Facts, crash: Crash, ledger: Ledger, walking: Walking) -> Walk:
    """The walk of the likeliest reading, its step marked as a guess with the reason and what the others would change.

    `facts` have no phase, and the walk adds none to them: what is planned has to fit in every phase.
    """
    order, reason = by_likelihood(crash.phase_among, ledger)
    walks = {phase: walking({**facts, QUESTION: Fact(phase, "log", crash.phase_because, (0,))}) for phase in order}
    taken = walks[order[0]]
    told = sentences((sentence(crash.phase_because), reason, _difference(order, walks)))
    among = crash.phase_among
    steps = tuple(
        replace(step, choices=_choices(step, among), because=told, if_unknown=_how(), guess=True)
        if step.question == QUESTION
        else step
        for step in taken.steps
    )
    why = say("the log says that it died {when}", when=when_either(order))
    rejected = tuple(RuledOut(one.cause, one.title, why if one.question == QUESTION else one.because, one.question)
                     for one in taken.rejected if not _still_possible(one, list(walks.values())[1:]))  # fmt: skip
    return Walk(steps, taken.cause, rejected)


def by_likelihood(among: Sequence[Phase], ledger: Ledger) -> tuple[tuple[Phase, ...], str]:
    """The readings, the likeliest first, and a sentence on why it is.

    Where the ledger lets only one of them run out, it is that one; else the order of the knowledge: an update holds
    all that a pass of its own without gradients would hold, and what its backward pass needs beside it.
    """
    capacity = ledger.gpu_capacity
    sums = {phase: found for phase in among if (found := ledger.phase("gpu", phase)) is not None}
    over = [phase for phase, found in sums.items() if capacity is not None and found.expected > capacity]
    if len(sums) == len(among) and len(over) == 1 and capacity is not None:
        sizes = listed(f"{PHASE_TITLES[phase]} {show_bytes(sums[phase].expected)}" for phase in among)
        told = {"phase": PHASE_TITLES[over[0]], "sizes": sizes, "total": show_bytes(capacity)}
        reason = say("Most likely {phase}: of what the ledger counts ({sizes}), it alone is above {total}.", **told)
        return (over[0], *(phase for phase in among if phase != over[0])), reason
    first = PHASE_TITLES[among[0]]
    if among[0] in LEAVES_BEHIND:
        return tuple(among), say("Most likely {phase}, which takes what no step before it took.", phase=first)
    reason = say("Most likely {phase}, which also keeps what its backward pass needs.", phase=first)
    return tuple(among), reason


def _difference(order: Sequence[Phase], walks: dict[Phase, Walk]) -> str:
    cause = walks[order[0]].cause
    other = next((phase for phase in order if walks[phase].cause.id != cause.id), None)
    if other is None:
        return say("The cause is the same either way, and the plan counts both.")
    told = {"phase": PHASE_TITLES[other], "cause": walks[other].cause.title}
    return say("If it was {phase}, the cause would be another: “{cause}”. Choose it if you know.", **told)


def _choices(step: QuestionStep, among: Sequence[Phase]) -> tuple[Choice, ...]:
    """What the frame leaves, and whatever else the user answered."""
    left = (*among, *(() if step.answer in among else (step.answer,)))
    return tuple(choice for name in left for choice in step.choices if choice.id == name)


def _how() -> str:
    return say(
        "The frames above the one that failed: the nearest line of the trainer that calls it. A log of one rank that "
        "was not cut has them."
    )


def _still_possible(one: RuledOut, others: Sequence[Walk]) -> bool:
    """Whether another reading ends in this cause, or does not exclude it."""
    return any(one.cause not in {other.cause for other in walked.rejected} for walked in others)


def narrowed(walk: Walk, among: Sequence[Phase]) -> Walk:
    """The walk whose question of the phase offers what the frame leaves."""
    steps = tuple(
        replace(step, choices=_choices(step, among), if_unknown=_how()) if step.question == QUESTION else step
        for step in walk.steps
    )
    return replace(walk, steps=steps)
