"""Finds the values of a setting that documented cases ran with."""

from __future__ import annotations

from msgspec import Struct

from advisor.hostile import clean_line
from advisor.knowledge.schema import Case
from advisor.language import Sayings, say
from advisor.plan.situation import Situation
from advisor.run.natives import EnvironmentPrefix, Native

_GRADES: Sayings[str] = Sayings(
    {
        "confirmed": "confirmed",
        "plausible": "plausible",
        "failed": "failed",
        "reported": "reported",
        "folklore": "folklore",
    }
)


WORKED_HERE = "worked_here"
"""The entry of `reported` that says on which day it helped at this site."""


def worked_here(case: Case) -> str:
    """ "worked here on 2026-11-22": of a case of this site's own; "" of any other."""
    day = clean_line(str(case.reported.get(WORKED_HERE, "")), 20)
    return say("worked here on {day}", day=day) if day else ""


def reported_by(case: Case) -> str:
    """Which documented case, and how sure it is: "logic-rl-8 (confirmed)"."""
    return say("{case} ({grade})", case=case.id, grade=_GRADES[case.grade])


class Reported(Struct, frozen=True):
    """What a documented case says of one value. `rank`: the best of its list is 0."""

    text: str
    rank: int
    confirmed: bool
    worked_here: str = ""
    """The day on which it helped at this site, in words; "" where it is no case of its own."""


def documented_values(native: Native, situation: Situation, same_version: bool = False) -> dict[str, Reported]:
    """Value → what matching cases report of it for this key, best match first.

    `same_version`: only cases whose library version is known to be the one here.
    """
    found: dict[str, Reported] = {}
    for case in situation.cases:
        versions = [name.removeprefix("version ") for name in case.situation if name.startswith("version ")]
        if same_version and not all(f"library.{library}" in situation.facts for library in versions):
            continue
        for value in case.values.get(native.key.removeprefix(EnvironmentPrefix), []):
            found.setdefault(
                str(value), Reported(reported_by(case), len(found), case.grade == "confirmed", worked_here(case))
            )
    return found


def of_framework(native: Native, situation: Situation) -> dict[str, Reported]:
    """Value → the confirmed case of this framework that ran with it, whatever died there; the mildest first."""
    name = situation.now.run.framework
    cases = [c for c in situation.knowledge.cases if c.grade == "confirmed" and c.situation.get("framework") == name]
    told = {str(value): case for case in cases for value in case.values.get(native.key, []) if is_number(str(value))}
    ranked = sorted(told, key=float, reverse=True)
    return {text: Reported(reported_by(told[text]), rank, False) for rank, text in enumerate(ranked)}


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
