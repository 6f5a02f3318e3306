"""The question about sharding, asked where a config file that would say it is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from advisor.diagnosis.diagnosis import UNKNOWN, AnsweredBy, Choice, Diagnosis, QuestionStep
from advisor.diagnosis.tree import AnswerError, not_an_answer
from advisor.diagnosis.version import AFTER
from advisor.diagnosis.version import QUESTION as VERSION
from advisor.diagnosis.version import SHARDING as QUESTION
from advisor.knowledge.schema import Sharding
from advisor.language import say
from advisor.run.run import Unread


def answered_sharding(known: Sequence[Sharding], answers: Mapping[str, str]) -> str | None:
    """The user's answer; None where there is none. Raises AnswerError for one that the question does not have."""
    given = answers.get(QUESTION)
    ids = [one.id for one in known]
    if given is not None and given != UNKNOWN and given not in ids:
        raise AnswerError(not_an_answer(QUESTION, ids, given))
    return given


def with_sharding(
    diagnosis: Diagnosis, unread: Unread | None, known: Sequence[Sharding], *, wanted: bool = True
) -> Diagnosis:
    """The diagnosis with the question on its path, where the file of a launch that would answer it is missing.

    `wanted` False: there is nothing to plan, so nobody is asked.
    """
    if unread is None or not wanted or len(unread.choices) < 2:
        return diagnosis
    step = _step(unread, known)
    names = [one.question for one in diagnosis.path]
    at = max((names.index(name) + 1 for name in (VERSION, *AFTER) if name in names), default=0)
    opened = diagnosis.open_questions if unread.choice else (*diagnosis.open_questions, QUESTION)
    return replace(diagnosis, path=(*diagnosis.path[:at], step, *diagnosis.path[at:]), open_questions=opened)


def _step(unread: Unread, known: Sequence[Sharding]) -> QuestionStep:
    source: dict[str, AnsweredBy] = {"user": "user", "name": "script", "option": "script", "nothing": "unknown"}
    because = {
        "user": say("you said so"),
        "name": say("{file} was not found; its name says so", file=unread.file)
        if not unread.against
        else say(
            "{file} was not found; its name says so, but the traceback has {frame}, which is not there with it",
            file=unread.file,
            frame=unread.against,
        ),
        "option": unread.key,
        "nothing": "",
    }
    return QuestionStep(
        question=QUESTION,
        asks=say("How does {file} shard the training states?", file=unread.file),
        why=say(
            "The file ({key}) was not found. Weights, gradients and moments take 16 bytes per parameter on every GPU "
            "unless they are sharded; all sums rest on it.",
            key=unread.key,
        ),
        choices=tuple(Choice(one.id, one.title) for one in known if one.id in unread.choices),
        answer=unread.choice or UNKNOWN,
        source=source[unread.told_by],
        because=because[unread.told_by],
        if_unknown=say(
            "In the file: zero_stage (accelerate), zero_optimization.stage (DeepSpeed), distributed_type: FSDP. Beside "
            "the script, where the launch names it, the file is read."
        ),
        guess=unread.told_by == "name",
    )
