"""Finds what is open and decides something: the questions, what each answer would lead to and what is right for all of
them; and the likeliest of several phases, why, and what another would change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.crash.phase import LEAVES_BEHIND
from advisor.diagnosis.diagnosis import UNKNOWN, Choice, QuestionStep, RuledOut
from advisor.diagnosis.fact import Fact, Facts, value_of
from advisor.diagnosis.tree import NO_SHORTAGE, UNSETTLED, Walk, path_of
from advisor.knowledge.schema import Cause, Question, Remedy, Tree
from advisor.language import listed, say, sentences
from advisor.memory.cells import Ledger
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, PHASES, Phase, sentence, when_either

FIRST = 2
"""Remedies of a cause that everybody looks at."""
PHASE, PHASE_GUESSED = "phase", "phase.guessed"
"""A question and its fact; the fact that nothing shows the phase."""
ELSEWHERE: dict[bool, tuple[Phase, ...]] = {
    False: ("rollout_init", "rollout_generate", "validation", "checkpoint"),
    True: ("weight_sync", "rollout_generate", "validation", "checkpoint"),
}
"""Whether steps were done → where a run of an unknown phase most often died beside the training step (judgement). One
that died as it loaded its model mostly shows it: of 23 posts with nothing of it in their text, 5 had."""
DUE: dict[str, Phase] = {"save.due": "checkpoint", "eval.due": "validation"}
"""Facts → what comes after some steps: before one was done, only where it is due."""
OF_ENGINES: tuple[Phase, ...] = ("rollout_init", "weight_sync", "rollout_generate")
"""Open in a run alone that is known to roll out."""


class Outcome(Struct, frozen=True):
    """A cause, and the answers that lead to it."""

    choices: tuple[Choice, ...]
    cause: Cause


class DecidingQuestion(Struct, frozen=True):
    """An open question and its outcomes, in the order of its answers."""

    step: QuestionStep
    outcomes: tuple[Outcome, ...]
    tells_memory: bool
    """Whether it tells one memory from another, or a shortage from anything else."""
    seldom: bool = False

    @property
    def ways(self) -> int:
        """How many different first steps its outcomes have, or memories that ran out."""
        return len({(outcome.cause.memory, outcome.cause.remedies[:FIRST]) for outcome in self.outcomes})

    def right_either_way(self, remedies: Sequence[Remedy]) -> frozenset[str]:
        """Ids of the remedies that every outcome has, and that act in every phase which is still possible."""
        named = frozenset.intersection(*(frozenset(outcome.cause.remedies) for outcome in self.outcomes))
        phases = {choice.id for one in self.outcomes for choice in one.choices if self.step.question == PHASE}
        return frozenset(one.id for one in remedies if one.id in named and acts_in(one, phases))


def acts_in(remedy: Remedy, phases: Set[str]) -> bool:
    """Whether it gives room in each of these phases."""
    return not remedy.phases or phases <= {*remedy.phases}


class OpenPhase(Struct, frozen=True):
    """A phase that nothing shows: the one that is taken, the next likeliest, and what would be the cause in that."""

    taken: Phase
    other: Phase
    cause: Cause
    guessed: bool
    """The frame or what came due there leaves these, and the first is taken; else any is possible."""


def open_phase(
    path: tuple[QuestionStep, ...], tree: Tree, facts: Facts, answers: Mapping[str, str], taken: str, *, evaluates: bool
) -> OpenPhase | None:
    """The two likeliest phases, where it is open or guessed which it was. `taken`: the cause that is told; `evaluates`:
    whether training may."""
    step = next((one for one in path if one.question == PHASE and (one.answer == UNKNOWN or one.guess)), None)
    if step is None or path[-1].is_a_fact("log"):
        return None
    question = next(one for one in tree.questions if one.id == PHASE)
    named = {choice.id: one.cause for one in _outcomes(step, question, tree, facts, answers) for choice in one.choices}
    began, rolls, ran = (value_of(facts, name) for name in ("first_step", "rolls_out", "ran"))
    stepped = ran is True or began is False
    usual = ("actor_update", *(one for one in ELSEWHERE[stepped] if rolls is True or one not in OF_ENGINES))
    order = [one for choice in step.choices for one in PHASES if one == choice.id] if step.guess else usual
    here = next((one for one in (step.answer, "actor_update", *named) if one in named and named[one].id == taken), "")
    due = {phase for name, phase in DUE.items() if value_of(facts, name) is True}
    due |= {"validation"} if stepped else set()
    order = [one for one in order if one not in DUE.values() or (one in due and (evaluates or one != "validation"))]
    other = next((one for one in order if one in named and named[one].id != taken), None)
    guess = next((one for one in PHASES if one == here), None)
    return OpenPhase(guess, other, named[other], step.guess) if guess is not None and other is not None else None


def telling_questions(
    path: tuple[QuestionStep, ...], tree: Tree, facts: Facts, answers: Mapping[str, str]
) -> tuple[DecidingQuestion, ...]:
    """The open and guessed questions of which an answer changes what is done first, the one that decides most first.

    Which memory it was comes before all others: what helps the one harms the other. What seldom is so comes last.
    """
    if (memory := facts.get("memory")) is not None and not memory.because:  # a guess answers no question
        facts = {name: fact for name, fact in facts.items() if name != "memory"}
    known = {question.id: question for question in tree.questions}
    asked = [(step, known[step.question]) for step in path if step.question in known]
    found = [
        DecidingQuestion(
            step, _outcomes(step, question, tree, facts, answers), question.tells_memory, bool(question.seldom)
        )
        for step, question in asked
        if step.answer == UNKNOWN or step.guess
    ]
    telling = [one for one in found if one.ways > 1]
    return tuple(sorted(telling, key=lambda one: (one.seldom, not one.tells_memory, -len(one.outcomes))))


def _outcomes(
    step: QuestionStep, question: Question, tree: Tree, facts: Facts, answers: Mapping[str, str]
) -> tuple[Outcome, ...]:
    """Answers that lead to one cause together; one that settles nothing is no outcome.

    That memory was not short is an outcome only where the question is whether it was.
    """
    untold = (UNSETTLED, NO_SHORTAGE[0]) if question.tells_memory else (UNSETTLED, *NO_SHORTAGE)
    causes: dict[str, Cause] = {}
    choices: dict[str, list[Choice]] = {}
    for choice in step.choices:
        _, cause = path_of(tree, dict(facts), {**answers, step.question: choice.id})
        if cause.id not in untold:
            causes[cause.id] = cause
            choices.setdefault(cause.id, []).append(choice)
    return tuple(Outcome(tuple(choices[cause]), causes[cause]) for cause in causes)


Walking = Callable[[dict[str, Fact]], Walk]
"""Walks the tree with these facts."""


def walk_likeliest(facts: Facts, crash: Crash, ledger: Ledger, walking: Walking) -> Walk:
    """The walk of the likeliest reading, its step marked as a guess with the reason and what the others would change.

    `facts` have no phase, and the walk adds none to them: what is planned has to fit in every phase.
    """
    order, reason = by_likelihood(crash.phase_among, ledger)
    walks = {phase: walking({**facts, PHASE: Fact(phase, "log", crash.phase_because, (0,))}) for phase in order}
    taken = walks[order[0]]
    told = sentences((sentence(crash.phase_because), reason, _difference(order, walks)))
    among = crash.phase_among
    steps = tuple(
        replace(step, choices=_choices(step, among), because=told, if_unknown=_how(), guess=True)
        if step.question == PHASE
        else step
        for step in taken.steps
    )
    why = say("the log says that it died {when}", when=when_either(order))
    rejected = tuple(RuledOut(one.cause, one.title, why if one.question == PHASE else one.because, one.question)
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
        replace(step, choices=_choices(step, among), if_unknown=_how()) if step.question == PHASE else step
        for step in walk.steps
    )
    return replace(walk, steps=steps)
