"""Finds the open questions that decide anything: what each answer would lead to, and what is right for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec import Struct

from advisor.diagnosis.diagnosis import UNKNOWN, Choice, QuestionStep
from advisor.diagnosis.fact import Facts
from advisor.diagnosis.tree import NO_SHORTAGE, UNSETTLED, path_of
from advisor.knowledge.schema import Cause, Question, Remedy, Tree
from advisor.words import PHASES, Phase

FIRST = 2
"""Remedies of a cause that everybody looks at."""
PHASE, GUESSED = "phase", "phase.guessed"
"""A question and its fact; the fact that nothing shows the phase."""
ELSEWHERE: dict[bool, tuple[Phase, ...]] = {
    False: ("rollout_init", "model_load", "rollout_generate", "validation", "checkpoint"),
    True: ("weight_sync", "rollout_generate", "validation", "checkpoint", "model_load"),
}
"""Whether steps were done → where a run of an unknown phase most often died beside the training step (judgement)."""
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
    began, rolls, ran = (facts[name].value if name in facts else None for name in ("first_step", "rolls_out", "ran"))
    stepped = ran is True or began is False
    usual = ("actor_update", *(one for one in ELSEWHERE[stepped] if rolls is True or one not in OF_ENGINES))
    order = [one for choice in step.choices for one in PHASES if one == choice.id] if step.guess else usual
    here = next((one for one in (step.answer, "actor_update", *named) if one in named and named[one].id == taken), "")
    due = {phase for name, phase in DUE.items() if name in facts and facts[name].value is True}
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
