"""Names every reason not to start a run again, each with its sentence."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from advisor.language import mark, say


class NotRetried(Enum):
    """Why no attempt follows. The values stand in records and in events."""

    ENDED_WELL = "ended_well"
    NOT_STARTED = "not_started"
    STOPPED = "stopped"
    NO_LAUNCH = "no_launch"
    NOT_PROVEN = "not_proven"
    USED_UP = "used_up"
    NOTHING_RESUMES = "nothing_resumes"
    NO_CHANGE = "no_change"
    DOES_NOT_FIT = "does_not_fit"
    STUCK = "stuck"
    NOT_PATCHABLE = "not_patchable"
    LEFTOVERS = "leftovers"


SENTENCES = {
    NotRetried.ENDED_WELL: mark("it ended well; there is nothing to start again"),
    NotRetried.NOT_STARTED: mark("not started again: it could not be started ({why})"),
    NotRetried.STOPPED: mark("not started again: somebody stopped it ({signal})"),
    NotRetried.NO_LAUNCH: mark("cannot be started again: {why}"),
    NotRetried.NOT_PROVEN: mark("not started again: record and output do not prove that memory ran out"),
    NotRetried.USED_UP: mark("not started again: --retry {most} allows no further attempt"),
    NotRetried.NOTHING_RESUMES: mark("not started again: {outlook} (--from-scratch starts it from the beginning)"),
    NotRetried.NO_CHANGE: mark("not started again: no change that may be made here relieves what ran out"),
    NotRetried.DOES_NOT_FIT: mark("not started again: with the changes that may be made it is not expected to fit"),
    NotRetried.STUCK: mark(
        "not started again: it died twice in the same phase ({phase}) at step {step}, and there is no new change"
    ),
    NotRetried.NOT_PATCHABLE: mark("not started again: the changes cannot be written into the script ({why})"),
    NotRetried.LEFTOVERS: mark(
        "not started again: processes of the dead run still hold memory after {seconds} s ({names})"
    ),
}


class Declined(Struct, frozen=True):
    """The reason, and its sentence."""

    why: NotRetried
    sentence: str


def decline(reason: NotRetried, **facts: object) -> Declined:
    """A reason in words."""
    return Declined(reason, say(SENTENCES[reason], **facts))
