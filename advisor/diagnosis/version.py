"""The question about the framework's version, asked where neither libraries, keys nor paths tell it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from advisor.diagnosis.diagnosis import UNKNOWN, Choice, Diagnosis, QuestionStep
from advisor.diagnosis.tree import AnswerError, not_an_answer
from advisor.knowledge.schema import Era, Framework
from advisor.language import say
from advisor.run.dialect import Recognised

QUESTION, SHARDING = "version", "sharding"
AFTER = ("framework", "framework_host", "memory")
"""It stands behind the first of these on the path."""


def with_answered_version(recognised: Recognised, answers: Mapping[str, str]) -> Recognised:
    """The dialect with the era that the user named. Raises AnswerError for one that it does not have."""
    given, framework = answers.get(QUESTION), recognised.framework
    if given in (None, UNKNOWN) or framework is None:
        return recognised
    eras = [era.id for era in framework.eras]
    if given not in eras:
        raise AnswerError(not_an_answer(QUESTION, eras, str(given)))
    return replace(recognised, era=given, era_told_by="user")


def tree_answers(answers: Mapping[str, str]) -> dict[str, str]:
    """What the decision tree is told: everything but the version and the sharding."""
    return {name: given for name, given in answers.items() if name not in (QUESTION, SHARDING)}


def with_version(diagnosis: Diagnosis, recognised: Recognised, *, wanted: bool = True) -> Diagnosis:
    """The diagnosis with the question on its path, where the version is open or the user has told it.

    `wanted` False: there is nothing to plan, so nobody is asked.
    """
    framework = recognised.framework
    told = recognised.era_told_by == "user"
    if framework is None or len(framework.eras) < 2 or not (told or (wanted and recognised.era_told_by == "nothing")):
        return diagnosis
    step = _step(framework, recognised.era if told else UNKNOWN)
    names = [one.question for one in diagnosis.path]
    at = max((names.index(name) + 1 for name in AFTER if name in names), default=0)
    opened = diagnosis.open_questions if told else (*diagnosis.open_questions, QUESTION)
    return replace(diagnosis, path=(*diagnosis.path[:at], step, *diagnosis.path[at:]), open_questions=opened)


def _step(framework: Framework, answer: str) -> QuestionStep:
    return QuestionStep(
        question=QUESTION,
        asks=say("Which version of {framework} is installed?", framework=framework.title),
        why=say(
            "Names, units and defaults of its settings changed with the versions; the plan uses those of the one told."
        ),
        choices=tuple(Choice(era.id, _title(era)) for era in sorted(framework.eras, key=_number, reverse=True)),
        answer=answer,
        source="unknown" if answer == UNKNOWN else "user",
        because="" if answer == UNKNOWN else say("you said so"),
        if_unknown=say(
            "`pip show {package}` where it trains; `git log -1` in a copy of the source.", package=framework.package
        ),
    )


def _number(era: Era) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", era.id))


def _title(era: Era) -> str:
    """Like "v0.4 (>=0.4.0,<0.4.1)"."""
    return f"{era.id} ({era.versions})" if era.versions else era.id
