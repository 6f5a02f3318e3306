"""Asks what the decision tree does not: the framework's version and, where a config file is missing, the sharding."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from difflib import get_close_matches

from msgspec.structs import replace

from advisor.diagnosis.diagnosis import UNKNOWN, AnsweredBy, Choice, Diagnosis, QuestionStep
from advisor.diagnosis.tree import AnswerError, not_an_answer
from advisor.hostile import clean_line
from advisor.knowledge.schema import Era, Framework, Project, Question, Sharding, Tree
from advisor.language import say
from advisor.run.dialect import Recognised, told_era
from advisor.run.model_read import letters
from advisor.run.run import Unread

VERSION, SHARDING, WAS = "version", "sharding", "was"
REGRESSION = "regression"
"""Question of the tree, of which one answer asks for the version that the framework had."""
FRAMEWORKS = ("framework", "framework_host")
"""Questions whose answer is a framework: asked on the way of GPU memory, and of host RAM."""
OTHER = "other"
_NEAR = 0.85
"""How alike two words are of which one is a slip of the other."""
AFTER = ("framework", "framework_host", "memory")
"""It stands behind the first of these on the path."""


def as_spelled(tree: Tree, answers: Mapping[str, str]) -> dict[str, str]:
    """Answers as the tree spells them: capitals, blanks and signs do not matter, a title counts as its answer, and a
    trainer that is near none of them is another one."""
    questions = {question.id: question for question in tree.questions}
    return {
        name: _as_spelled(questions[name], given) if name in questions else given for name, given in answers.items()
    }


def framework_named(given: Mapping[str, str], spelled: Mapping[str, str]) -> str:
    """What the user calls a framework of which no dialect is known; "" where they name none."""
    words = (given[name] for name in FRAMEWORKS if spelled.get(name) == OTHER and given[name].lower() != OTHER)
    return next(words, "")


def _as_spelled(question: Question, given: str) -> str:
    if given in question.answers or given == UNKNOWN:
        return given
    known = {letters(word): key for key, answer in question.answers.items() for word in (answer.title, key)}
    found = known.get(letters(given))
    if found is None and question.id in FRAMEWORKS and not get_close_matches(letters(given), known, cutoff=_NEAR):
        return OTHER
    return found or given


def with_answered_framework(
    recognised: Recognised,
    answers: Mapping[str, str],
    frameworks: Sequence[Framework],
    keys: Set[str],
    libraries: Mapping[str, str],
    paths: Sequence[str],
    dated: str,
    named: str = "",
    projects: Sequence[Project] = (),
) -> Recognised:
    """The dialect that the user named, where the launch bears no marks of one; a name of which no dialect is known is
    that of a project, whose settings are its own.

    A launch's own marks are proof and stay, unless they are those of a library that serves others, which a framework
    built on it has, too; lines of a log are not: packages share them, and forks print them. Those of a fork alone are.
    `keys`: native settings of launch and log; `paths`: files of the traceback; `dated`: the log's last day; `named`:
    what the user calls a framework that no dialect describes.
    """
    word = next((answers[name] for name in FRAMEWORKS if answers.get(name) not in (None, UNKNOWN)), None)
    framework = next((each for each in frameworks if each.framework == word), None)
    if named and framework is None and recognised.framework is None:
        return replace(recognised, project=recognised.project or _project(named, projects))
    if framework is None or (recognised.told_by == "script" and not _may_be_built_on(recognised, framework)):
        return recognised
    if recognised.told_by == "log" and _is_fork_of(recognised.framework, framework):
        return recognised
    version = libraries.get(framework.package)
    era, era_told_by = told_era(framework, version, set(keys), libraries, paths, dated=dated)
    return Recognised(framework, era, say("your answer"), version, "user", era_told_by, dated=dated)


def _project(word: str, projects: Sequence[Project]) -> Project:
    """The project of that name, or of one that begins so ("megatron"); else one that is not known."""
    known = (one for one in projects if one.name.lower().startswith(word.lower()))
    return next(known, Project(clean_line(word, 60), own_loop=True))


def _may_be_built_on(recognised: Recognised, said: Framework) -> bool:
    """Whether the framework that the user said may be one that is built on what the launch shows, a more general
    library, or another of its package, none of whose own programs is started."""
    shown = recognised.framework
    if shown is None or (shown.package == said.package and not recognised.own_program):
        return True
    return shown.serves_others and not recognised.own_program and _special(said) < _special(shown)


def _is_fork_of(shown: Framework | None, said: Framework) -> bool:
    """Whether lines that only a fork prints stand in the log of a run of which the user named the shared package."""
    same = shown is not None and shown.package == said.package and shown.framework != said.framework
    return shown is not None and same and said.framework == said.package and _special(shown) < _special(said)


def _special(framework: Framework) -> int:
    """How special its most special mark is; less is more."""
    return min((mark.priority for mark in framework.recognised_by), default=LAST_PRIORITY)


LAST_PRIORITY = 100


def with_answered_version(recognised: Recognised, answers: Mapping[str, str]) -> Recognised:
    """The dialect with the era that the user named. Raises AnswerError for one that it does not have."""
    given, framework = answers.get(VERSION), recognised.framework
    if given in (None, UNKNOWN) or framework is None:
        return recognised
    eras = [era.id for era in framework.eras]
    if given not in eras:
        raise AnswerError(not_an_answer(VERSION, eras, str(given)))
    return replace(recognised, era=given, era_told_by="user")


def without_foreign_versions(
    answers: Mapping[str, str], framework: str | None, frameworks: Sequence[Framework]
) -> dict[str, str]:
    """The answers without those that name a version of another framework than the one now told."""
    eras = {era.id for each in frameworks if each.framework == framework for era in each.eras}
    return {name: given for name, given in answers.items() if name not in (VERSION, WAS) or given in {*eras, UNKNOWN}}


def tree_answers(answers: Mapping[str, str]) -> dict[str, str]:
    """What the decision tree is told: everything but versions and the sharding, and no growth from step to step where
    no step was done: what filled then, filled while the run began."""
    told = {name: given for name, given in answers.items() if name not in (VERSION, SHARDING, WAS)}
    if told.get("first_step") == "yes" and told.get("host_growth") == "yes":
        del told["host_growth"]
    return told


def with_version(diagnosis: Diagnosis, recognised: Recognised, *, wanted: bool = True) -> Diagnosis:
    """The diagnosis with the question on its path, where the version is open or the user has told it.

    `wanted` False: there is nothing to plan, so nobody is asked.
    """
    framework = recognised.framework
    told = recognised.era_told_by == "user"
    if framework is None or len(framework.eras) < 2 or not (told or (wanted and recognised.era_told_by == "nothing")):
        return diagnosis
    step = _version_question(framework, recognised.era if told else UNKNOWN)
    names = [one.question for one in diagnosis.path]
    at = max((names.index(name) + 1 for name in AFTER if name in names), default=0)
    opened = diagnosis.open_questions if told else (*diagnosis.open_questions, VERSION)
    return replace(diagnosis, path=(*diagnosis.path[:at], step, *diagnosis.path[at:]), open_questions=opened)


def _version_question(framework: Framework, answer: str) -> QuestionStep:
    return QuestionStep(
        question=VERSION,
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


def answered_was(recognised: Recognised, answers: Mapping[str, str]) -> dict[str, str]:
    """The framework's package → a version of the era with which the run fitted, by the user; {} where none was named.

    Raises AnswerError for an era that the framework does not have.
    """
    given, framework = answers.get(WAS), recognised.framework
    if given in (None, UNKNOWN) or framework is None:
        return {}
    eras = {era.id: era for era in framework.eras}
    if given not in eras:
        raise AnswerError(not_an_answer(WAS, list(eras), str(given)))
    first = re.search(r"\d[\w.]*", eras[given].versions)
    return {framework.package: first.group().removesuffix(".") if first is not None else given}


def with_was(diagnosis: Diagnosis, recognised: Recognised, answers: Mapping[str, str]) -> Diagnosis:
    """The diagnosis with the question behind the one whether it fitted with other versions, where the user says yes."""
    framework = recognised.framework
    names = [one.question for one in diagnosis.path]
    if answers.get(REGRESSION) != "named" or framework is None or len(framework.eras) < 2 or REGRESSION not in names:
        return diagnosis
    given = answers.get(WAS, UNKNOWN)
    others = [era for era in sorted(framework.eras, key=_number, reverse=True) if era.id != recognised.era]
    step = QuestionStep(
        question=WAS,
        asks=say("With which version of {framework} did it fit?", framework=framework.title),
        why=say("The defaults that changed between the two versions are looked at first."),
        choices=tuple(Choice(era.id, _title(era)) for era in others),
        answer=given,
        source="unknown" if given == UNKNOWN else "user",
        because="" if given == UNKNOWN else say("you said so"),
        if_unknown=say("The log of the last good run, its lock file or image; another library: --was NAME=VERSION."),
    )
    at = names.index(REGRESSION) + 1
    opened = diagnosis.open_questions if given != UNKNOWN else (*diagnosis.open_questions, WAS)
    return replace(diagnosis, path=(*diagnosis.path[:at], step, *diagnosis.path[at:]), open_questions=opened)


def answered_sharding(known: Sequence[Sharding], answers: Mapping[str, str]) -> str | None:
    """The user's answer; None where there is none. Raises AnswerError for one that the question does not have."""
    given = answers.get(SHARDING)
    ids = [one.id for one in known]
    if given is not None and given != UNKNOWN and given not in ids:
        raise AnswerError(not_an_answer(SHARDING, ids, given))
    return given


def with_sharding(
    diagnosis: Diagnosis, unread: Unread | None, known: Sequence[Sharding], *, wanted: bool = True
) -> Diagnosis:
    """The diagnosis with the question on its path, where the file of a launch that would answer it is missing.

    `wanted` False: there is nothing to plan, so nobody is asked.
    """
    if unread is None or not wanted or len(unread.choices) < 2:
        return diagnosis
    step = _sharding_question(unread, known)
    names = [one.question for one in diagnosis.path]
    at = max((names.index(name) + 1 for name in (VERSION, *AFTER) if name in names), default=0)
    opened = diagnosis.open_questions if unread.choice else (*diagnosis.open_questions, SHARDING)
    return replace(diagnosis, path=(*diagnosis.path[:at], step, *diagnosis.path[at:]), open_questions=opened)


def _sharding_question(unread: Unread, known: Sequence[Sharding]) -> QuestionStep:
    source: dict[str, AnsweredBy] = {
        "user": "user",
        "name": "script",
        "option": "script",
        "sums": "log",
        "nothing": "unknown",
    }
    because = {
        "user": say("you said so"),
        "name": say("{file} {absent}; its name says so", file=unread.file, absent=unread.absent)
        if not unread.against
        else say(
            "{file} {absent}; its name says so, but the traceback has {frame}, which is not there with it",
            file=unread.file,
            absent=unread.absent,
            frame=unread.against,
        ),
        "option": unread.key,
        "sums": say("the sizes of the log fit it"),
        "nothing": "",
    }
    return QuestionStep(
        question=SHARDING,
        asks=say("How does {file} shard the training states?", file=unread.file),
        why=say(
            "The file ({key}) {absent}. Unless they are sharded, every GPU holds all weights, and the gradients and "
            "moments of all that is trained; all sums rest on it.",
            key=unread.key,
            absent=unread.absent,
        ),
        choices=tuple(Choice(one.id, one.title) for one in known if one.id in unread.choices),
        answer=unread.choice or UNKNOWN,
        source=source[unread.told_by],
        because=because[unread.told_by],
        if_unknown=say(
            "In the file: zero_stage (accelerate), zero_optimization.stage (DeepSpeed), distributed_type: FSDP. Beside "
            "the script, where the launch names it, the file is read."
        ),
        guess=unread.told_by in ("name", "sums"),
    )
