"""Which of the runs in the logs is told of: the newest that crashed, or a newer one that is well."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from advisor.crash.course import Health, health_of, is_quoted
from advisor.crash.parts import Part
from advisor.crash.verdict import Judgement, Placed, judge

_FAILURES = ("cause", "hint", "pointer")


class Run(Struct, frozen=True):
    """One run: its finds, how far it came, and what became of it."""

    placed: tuple[Placed, ...]
    """What is evidence of how it went."""
    outlived: tuple[Placed, ...]
    """Failures it caught, for it did several steps more after each, or only quoted."""
    health: Health
    judgement: Judgement
    part: Part
    """Its lines."""

    @property
    def tells(self) -> bool:
        """Whether it proves anything, or failed after some steps: a task that Ray tries again may only stumble."""
        return self.judgement.verdict != "unclear" or (self.judgement.cause is not None and bool(self.health.counts))

    @property
    def failed(self) -> bool:
        """Whether anything at all went wrong."""
        return self.judgement.cause is not None


def newest_crash(
    placed: Sequence[Placed], marks: Sequence[Placed], parts: Sequence[Part]
) -> tuple[Run, tuple[Run, ...]]:
    """The run to tell of, and the ones before it, newest first. `parts`: the lines of each, oldest first.

    A run that only just began, without a failure and without steps, does not hide the crash before it.
    """
    runs = [_run(placed, marks, part) for part in reversed(parts)]
    order = [*(i for i, run in enumerate(runs) if run.tells), *(i for i, run in enumerate(runs) if run.failed), 0]
    at = order[0]
    return runs[at], tuple(runs[at + 1 :])


def _run(placed: Sequence[Placed], marks: Sequence[Placed], part: Part) -> Run:
    mine = [one for one in placed if part.covers(one.log, one.find.first.number)]
    own_marks = [one for one in marks if part.covers(one.log, one.find.first.number)]
    health = health_of(own_marks)
    outlived = [one for one in mine if _is_failure(one) and (health.outlived(one) or is_quoted(one))]
    caught = {id(one) for one in outlived}
    lasting = [one for one in mine if id(one) not in caught]
    judgement = judge(lasting, health.finished, health.going, [one for one in own_marks if _is_host(one)])
    return Run(tuple(lasting), tuple(outlived), health, judgement, part)


def _is_failure(one: Placed) -> bool:
    return one.find.signature.role in _FAILURES


def _is_host(one: Placed) -> bool:
    return one.find.signature.memory == "host" and one.find.signature.role in ("telemetry", "warning")
