"""Tells how memory went over the steps that a log counts: how many were done, and whether host or GPU memory grew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from advisor.crash.evidence import Crash, Reading, ReadingKind
from advisor.diagnosis.fact import Fact
from advisor.language import say
from advisor.units import show_bytes

COURSE_ENOUGH = 4
"""Readings of one moment in one process before they tell a course."""
RISEN, LEVEL, RISING = 0.10, 0.03, 0.9
"""A course grows that rises by RISEN in all and at RISING of its readings; one within LEVEL does not (judgement)."""


def course_facts(crash: Crash) -> dict[str, Fact]:
    """steps_done, first_step, host.grows, gpu.grows; each only where the log tells."""
    facts: dict[str, Fact] = {}
    if crash.steps_done is not None:
        because = say("the log counts {count} done steps", count=crash.steps_done)
        facts["steps_done"] = Fact(crash.steps_done, "log", because)
        facts["first_step"] = Fact(crash.steps_done == 0, "log", because)
    kinds: tuple[tuple[str, ReadingKind], ...] = (("host.grows", "host_used"), ("gpu.grows", "allocated"))
    for name, kind in kinds:
        fact = _grows(crash.readings, kind)
        if fact is not None:
            facts[name] = fact
    return facts


def rising_course(readings: Sequence[Reading], kind: ReadingKind) -> list[Reading] | None:
    """The readings of one moment in one process that rise all along; None where none do."""
    return next((course for course in _courses(readings, kind) if _course(course) is True), None)


def _grows(readings: Sequence[Reading], kind: ReadingKind) -> Fact | None:
    """True where some moment's course rises, False where all that can be told are level, else None."""
    rising = rising_course(readings, kind)
    shown = rising or next((course for course in _courses(readings, kind) if _course(course) is False), None)
    if shown is None:
        return None
    first, last = shown[0], shown[-1]
    sizes = {"first": show_bytes(first.bytes), "last": show_bytes(last.bytes)}
    lines = {"first_line": first.line, "last_line": last.line}
    if last.at:
        because = say(
            "{first} in line {first_line}, {last} in line {last_line} {moment}", **sizes, **lines, moment=last.at
        )
    else:
        because = say("{first} in line {first_line}, {last} in line {last_line}", **sizes, **lines)
    return Fact(rising is not None, "log", because)


def _courses(readings: Sequence[Reading], kind: ReadingKind) -> Iterator[list[Reading]]:
    """The readings of one moment in one process, in order."""
    courses: dict[tuple[str, str, str], list[Reading]] = {}
    for reading in readings:
        if reading.kind == kind:
            courses.setdefault((reading.file, reading.process, reading.at), []).append(reading)
    yield from (course for course in courses.values() if len(course) >= COURSE_ENOUGH)


def _course(course: Sequence[Reading]) -> bool | None:
    first, last = course[0].bytes, course[-1].bytes
    if first <= 0:
        return None
    pairs = [*pairwise(course)]
    rises = sum(later.bytes >= earlier.bytes for earlier, later in pairs)
    if last >= first * (1 + RISEN) and rises >= len(pairs) * RISING:
        return True
    return False if abs(last - first) <= first * LEVEL else None
