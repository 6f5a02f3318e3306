"""Walks decision_tree.yaml: each question answered by the user, else by a fact, else left open; ending in a cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from advisor.diagnosis.diagnosis import UNKNOWN, AnsweredBy, Choice, QuestionStep, RuledOut
from advisor.diagnosis.fact import Fact, Facts, every, holds, value_of
from advisor.diagnosis.parts import spoken_here
from advisor.knowledge.schema import Answer, Cause, Question, Tree
from advisor.language import clauses, listed, say

RETOLD = ("memory", "phase", "framework")
"""Questions whose answer is a fact for all that follows."""
MOST_QUESTIONS = 12
"""A tree that loops is a mistake in the file; the linter finds it, this stops it."""
UNSETTLED = "unclear"
"""The cause where nothing is proved: it excludes nothing."""
EITHER = "batch-or-states"
"""The cause where a card ran full and nothing shows what filled it."""
NO_SHORTAGE = "nothing-failed", "not-memory"
"""Causes without a shortage: who has one need not be told so once more."""


class AnswerError(ValueError):
    """An answer to a question, or a choice, that the tree does not have: one sentence with what it has."""


class Walk(Struct, frozen=True):
    """The steps of one walk and the cause it ended in."""

    steps: tuple[QuestionStep, ...]
    cause: Cause
    rejected: tuple[RuledOut, ...]
    """Leaves that an answer led away from, in the order of the questions."""


def walk(
    tree: Tree, facts: dict[str, Fact], answers: Mapping[str, str], proved: Mapping[str, Fact] | None = None
) -> Walk:
    """`path_of`, with what its answers led away from."""
    steps, cause = path_of(tree, facts, answers, proved)
    asked = {question.id: question for question in tree.questions}
    return Walk(steps, cause, tuple(one for step in steps for one in _others(tree, asked[step.question], step)))


def path_of(
    tree: Tree, facts: dict[str, Fact], answers: Mapping[str, str], proved: Mapping[str, Fact] | None = None
) -> tuple[tuple[QuestionStep, ...], Cause]:
    """Walk from `start`. A user's answer about `memory`, `phase` or `framework` becomes a fact for what follows.

    `proved`: the same facts before any answer; what they say stands beside an answer that says otherwise.
    """
    before = dict(facts) if proved is None else proved
    questions = {question.id: question for question in tree.questions}
    causes = {cause.id: cause for cause in tree.causes}
    check_answers(tree, answers)
    steps: list[QuestionStep] = []
    at: str | None = tree.start
    leaf: str | None = None
    while at is not None and leaf is None and len(steps) < MOST_QUESTIONS:
        question = questions[at]
        step = _ask(question, before if question.id in answers else facts, answers)
        if step.source != "unknown" or _is_asked(question, facts):
            steps.append(step)
        if step.source == "user" and question.id in RETOLD:
            retell(facts, question.id, step.answer)
        taken = question.answers.get(step.answer)
        at, leaf = (taken.next, taken.leads_to) if taken else (question.unknown_next, question.unknown_leads_to)
    return tuple(steps), causes[leaf or UNSETTLED]


def check_answers(tree: Tree, answers: Mapping[str, str]) -> None:
    """Raises AnswerError for a question or an answer that the tree does not have."""
    questions = {question.id: question for question in tree.questions}
    for name, answer in answers.items():
        question = questions.get(name)
        if question is None:
            known = listed(questions)
            raise AnswerError(
                say("there is no question {name!r}; questions are {questions}", name=name, questions=known)
            )
        if answer != UNKNOWN and answer not in question.answers:
            raise AnswerError(not_an_answer(name, question.answers, answer))


def not_an_answer(question: str, answers: Iterable[str], given: str) -> str:
    """One sentence with what the question takes."""
    told = {"question": question, "answers": listed(answers), "unknown": UNKNOWN, "given": given}
    return say("{question} takes {answers} or {unknown}, not {given!r}", **told)


def _ask(question: Question, facts: Facts, answers: Mapping[str, str]) -> QuestionStep:
    suggested, fact = _shown(question, facts)
    given = answers.get(question.id)
    against = given is not None and fact is not None and _contradicts(question, given, suggested, fact)
    source: AnsweredBy = "user" if given is not None else fact.source if fact is not None else "unknown"
    answer = given if given is not None else suggested or UNKNOWN
    offered = {key: option for key, option in question.answers.items() if key == answer or _is_offered(option, facts)}
    return QuestionStep(
        question=question.id,
        asks=question.asks,
        why=question.why,
        choices=tuple(Choice(key, option.title) for key, option in offered.items()),
        answer=answer,
        source=source,
        because=_because(given, fact),
        evidence=fact.evidence if fact is not None and given is None else (),
        if_unknown=_how(question, facts),
        suggested=suggested if against else "",
        guess=given is None and fact is not None and not fact.because,  # only that nothing speaks against it
    )


def _how(question: Question, facts: Facts) -> str:
    """How to find the answer, in the words for a run of this kind."""
    alone = any(value_of(facts, name) is False for name in ("rolls_out", "has_engine"))
    given = question.if_unknown_of_given if alone else ""
    return spoken_here(given or question.if_unknown, facts)


def _contradicts(question: Question, given: str, suggested: str, fact: Fact) -> bool:
    """Whether a line of the log or a mark of the launch shows another answer than the one given, or a part of it; what
    was only computed contradicts nobody."""
    options = question.answers
    same = suggested in ("", given) or any(
        one in options and options[one].part_of == other for one, other in ((suggested, given), (given, suggested))
    )
    return not same and (fact.source == "log" or question.id.startswith("framework"))


def _is_offered(option: Answer, facts: Facts) -> bool:
    return option.unless is None or holds(option.unless, facts) is None


def _is_asked(question: Question, facts: Facts) -> bool:
    """Whether it is put to the user; else it is passed over where nothing answers it."""
    return question.asked_when is None or any(holds(rule, facts) is not None for rule in question.asked_when)


def _because(given: str | None, fact: Fact | None) -> str:
    if given is not None:
        return say("you said so")
    return fact.because if fact is not None else ""


def _shown(question: Question, facts: Facts) -> tuple[str, Fact | None]:
    """The first answer that a fact gives by itself, and that fact."""
    for key, option in question.answers.items():
        for rule in option.shown_by:
            if found := every(rule, facts):
                return key, found[0] if len(found) == 1 else _joined(found)
    return "", None


def _joined(found: list[Fact]) -> Fact:
    """One fact of several; what the user said goes without saying, and so does what nobody knows."""
    found = [fact for fact in found if fact.because] or found
    found = [fact for fact in found if fact.source != "user"] or found
    evidence = tuple(dict.fromkeys(index for fact in found for index in fact.evidence))
    return Fact(True, found[0].source, clauses(dict.fromkeys(fact.because for fact in found)), evidence)


def retell(facts: dict[str, Fact], name: str, answer: str) -> None:
    """Make a user's answer the fact `name`. The framework stays where a launch's own marks prove it: its settings are
    read in that dialect, whatever the answer."""
    known = facts.get(name)
    if name == "framework" and known is not None and known.source == "script":
        return
    if answer == UNKNOWN:
        facts.pop(name, None)
    else:
        facts[name] = Fact(answer, "user", say("you said so"))


def _others(tree: Tree, question: Question, step: QuestionStep) -> list[RuledOut]:
    """Leaves of the other answers that no path after this answer can reach any more, with the reason."""
    taken = question.answers.get(step.answer)
    if taken is None or step.source == "unknown":
        return []
    possible = {taken.leads_to} if taken.leads_to is not None else leaves_after(tree, taken.next)
    if UNSETTLED in possible:
        return []
    titles = {cause.id: cause.title for cause in tree.causes}
    offered = {choice.id for choice in step.choices}
    told = (option for name, option in question.answers.items() if name in offered or not option.of_a_platform)
    leaves = (_leaf(tree, option) for option in told)
    left = dict.fromkeys(leaf for leaf in leaves if leaf not in (None, *NO_SHORTAGE))
    why = _clause(step, taken)
    return [RuledOut(leaf, titles[leaf], why, question.id) for leaf in left if leaf and leaf not in possible]


def _leaf(tree: Tree, option: Answer) -> str | None:
    """The cause that an answer leads to, also by way of a question that facts alone answer."""
    quiet = next((one for one in tree.questions if one.id == option.next and one.asked_when == ()), None)
    return option.leads_to if quiet is None else quiet.unknown_leads_to


def leaves_after(tree: Tree, question_id: str | None) -> set[str]:
    """Every cause that some answers from this question on lead to. O(questions)."""
    questions = {question.id: question for question in tree.questions}
    found: set[str] = set()
    seen: set[str] = set()
    ahead = [question_id]
    while ahead:
        at = ahead.pop()
        if at is None or at in seen:
            continue
        seen.add(at)
        asked = questions[at]
        ways = [(option.next, option.leads_to) for option in asked.answers.values()]
        for following, leaf in [*ways, (asked.unknown_next, asked.unknown_leads_to)]:
            ahead.append(following)
            found |= {leaf} if leaf is not None else set()
    return found


def _clause(step: QuestionStep, taken: Answer) -> str:
    """Like "Which memory ran out? Host RAM: line 10 of train.log"."""
    told = {"asks": step.asks, "answer": taken.title, "because": step.because}
    plain = step.answer in ("yes", "no") and taken.title.isalpha()
    if step.source == "user" and not plain:
        return say("you answered {answer}", **told)
    return say("{asks} {answer}: {because}", **told)


def ruled_out(tree: Tree, cause: str, facts: Facts) -> tuple[RuledOut, ...]:
    """Causes beside `cause` that a proof excludes: a fact of log, script or machine, never an answer."""
    found = []
    for other in tree.causes:
        against = next((fact for rule in other.ruled_out_by if (fact := holds(rule, facts)) is not None), None)
        if against is not None and against.source != "user" and other.id != cause:
            found.append(RuledOut(other.id, other.title, against.because))
    return tuple(found)


def less_likely(tree: Tree, walked: Walk, facts: Facts) -> tuple[RuledOut, ...]:
    """Causes that an answer led away from and nothing excludes or proves."""
    settled = {walked.cause.id, *(one.cause for one in ruled_out(tree, walked.cause.id, facts))}
    settled |= {cause.id for cause in tree.causes if any(holds(rule, facts) for rule in cause.proved_by)}
    return tuple({one.cause: one for one in walked.rejected if one.cause not in settled}.values())
