"""Whether memory rises from step to step, as the log's own readings tell it."""

from __future__ import annotations

import pytest

from advisor.crash.evidence import NOTHING, Reading
from advisor.diagnosis.course_facts import course_facts
from advisor.units import GIB
from tests.loops import each
from tests.replacing import replace


def readings(*gib: float, at: str = "After update", process: str = "WorkerDict pid=7") -> tuple[Reading, ...]:
    """One reading of the host's memory a step."""
    return tuple(
        Reading(10 * number, "actor_update", "host_used", int(size * GIB), process, at)
        for number, size in enumerate(gib, 1)
    )


@each(
    ("gib", "grows"),
    [
        ((100, 104, 109, 113, 118), True),
        ((100, 100.5, 100.2, 100.4, 100.3), False),
        ((100, 140, 90, 130, 104), None),
        ((100, 120, 140), None),
    ],
)
def test_a_course_grows_stays_level_or_tells_nothing(gib: tuple[float, ...], grows: bool | None) -> None:
    facts = course_facts(replace(NOTHING, readings=readings(*gib)))
    assert (facts["host.grows"].value if "host.grows" in facts else None) is grows


def test_moments_and_processes_are_not_mixed() -> None:
    """High before the update and low after it is no course."""
    mixed = [
        r for pair in zip(readings(80, 80, 80, 80, at="a"), readings(90, 90, 90, 90, at="b"), strict=True) for r in pair
    ]
    assert course_facts(replace(NOTHING, readings=tuple(mixed)))["host.grows"].value is False


def test_the_reason_names_the_first_and_the_last_line() -> None:
    fact = course_facts(replace(NOTHING, readings=readings(100, 110, 120, 130)))["host.grows"]
    assert "line 10" in fact.because
    assert "line 40" in fact.because


@pytest.mark.parametrize(("done", "first"), [(0, True), (7, False)])
def test_the_step_count_tells_whether_it_was_the_first(done: int, first: bool) -> None:
    facts = course_facts(replace(NOTHING, steps_done=done))
    assert (facts["first_step"].value, facts["steps_done"].value) == (first, done)


def test_without_readings_nothing_is_claimed() -> None:
    assert course_facts(NOTHING) == {}
