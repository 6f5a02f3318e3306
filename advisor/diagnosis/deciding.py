"""Finds the open question that decides most: what each answer would lead to, and the remedies right for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from advisor.diagnosis.conditions import contradicted
from advisor.diagnosis.diagnosis import UNKNOWN, Choice, QuestionStep
from advisor.diagnosis.fact import Facts
from advisor.diagnosis.tree import NO_SHORTAGE, UNSETTLED, walk
from advisor.knowledge.schema import Cause, Question, Remedy, Tree


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

    @property
    def right_either_way(self) -> frozenset[str]:
        """Ids of the remedies that every outcome has."""
        return frozenset.intersection(*(frozenset(outcome.cause.remedies) for outcome in self.outcomes))


def deciding_question(
    path: tuple[QuestionStep, ...], tree: Tree, facts: Facts, answers: Mapping[str, str]
) -> DecidingQuestion | None:
    """The open or guessed question whose answers lead to the most causes, the first of equals; None where none does.

    Which memory it was comes before all others: what helps the one harms the other.
    """
    known = {question.id: question for question in tree.questions}
    asked = [(step, known[step.question]) for step in path if step.question in known]
    found = [
        DecidingQuestion(step, _outcomes(step, question, tree, facts, answers), question.tells_memory)
        for step, question in asked
        if step.answer == UNKNOWN or step.guess
    ]
    telling = [one for one in found if len(one.outcomes) > 1]
    return max(telling, key=lambda one: (one.tells_memory, len(one.outcomes)), default=None)


def first_remedy(cause: Cause, remedies: Iterable[Remedy], facts: Facts) -> Remedy | None:
    """The first remedy of a cause against which nothing known speaks."""
    by_id = {remedy.id: remedy for remedy in remedies}
    named = (by_id[name] for name in cause.remedies if name in by_id)
    return next((r for r in named if not any(contradicted(rule, facts) for rule in r.applies_when)), None)


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
