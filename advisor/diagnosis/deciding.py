"""Finds the open questions that decide anything: what each answer would lead to, and what is right for all of them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from advisor.diagnosis.diagnosis import UNKNOWN, Choice, QuestionStep
from advisor.diagnosis.fact import Facts
from advisor.diagnosis.tree import NO_SHORTAGE, UNSETTLED, walk
from advisor.knowledge.schema import Cause, Question, Tree

FIRST = 2
"""Remedies of a cause that everybody looks at."""


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

    @property
    def right_either_way(self) -> frozenset[str]:
        """Ids of the remedies that every outcome has."""
        return frozenset.intersection(*(frozenset(outcome.cause.remedies) for outcome in self.outcomes))


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
        cause = walk(tree, dict(facts), {**answers, step.question: choice.id}).cause
        if cause.id not in untold:
            causes[cause.id] = cause
            choices.setdefault(cause.id, []).append(choice)
    return tuple(Outcome(tuple(choices[cause]), causes[cause]) for cause in causes)
