"""The documented cases: enough of them, each with what was reported and what the mechanism supports."""

from __future__ import annotations

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Case
from tests.loops import each

CASES = load_knowledge().cases
MISSION = ("logic-rl-8", "easyr1-59", "openrlhf-776", "orz-24", "swift-3359")


def test_there_are_at_least_sixty() -> None:
    assert len(CASES) >= 60
    assert set(MISSION) <= {case.id for case in CASES}


@each("case", CASES, ids=lambda case: case.id)
def test_each_says_what_failed_or_worked_and_why(case: Case) -> None:
    assert case.source.startswith("https://")
    assert case.reported.get("failed") or case.reported.get("worked")
    assert len(case.mechanism.split()) >= 4
    assert len(case.situation) >= 2


@each("case", CASES, ids=lambda case: case.id)
def test_confirmed_ones_say_who_confirmed_them(case: Case) -> None:
    if case.grade == "confirmed":
        assert case.reported.get("confirmed_by"), case.id


@each("name", MISSION)
def test_the_five_of_the_mission_name_their_remedies_and_their_folklore(name: str) -> None:
    case = next(case for case in CASES if case.id == name)
    assert case.remedies
    assert case.folklore
    assert case.reported["failed"]
    assert case.reported["worked"]
