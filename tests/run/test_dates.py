"""The days of a log's lines bound the versions that may have written it."""

from __future__ import annotations

from advisor.crash.log_facts import dated_in
from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework
from advisor.run.dialect import recognise, told_era
from advisor.run.version_notes import version_notes
from tests.loops import each

FRAMEWORKS = load_knowledge().frameworks
DATED = [one for one in FRAMEWORKS if len([era for era in one.eras if era.released]) > 1]
TODAY = "2026-11-26"


@each("framework", DATED, ids=lambda one: one.framework)
def test_no_era_is_taken_that_came_after_the_log(framework: Framework) -> None:
    oldest = min(era.released for era in framework.eras if era.released)
    for era in framework.eras:
        day = era.released if len(era.released) > len("2025-02") else f"{era.released}-28"
        if era.released > oldest:
            found, by = told_era(framework, None, set(), {}, dated=day)
            taken = next(each for each in framework.eras if each.id == found)
            assert by == "dates"
            assert oldest <= taken.released <= day


@each("framework", DATED, ids=lambda one: one.framework)
def test_before_the_first_release_it_is_the_oldest(framework: Framework) -> None:
    found, _ = told_era(framework, None, set(), {}, dated="2019-01-01")
    taken = next(era for era in framework.eras if era.id == found)
    assert taken.released == min(era.released for era in framework.eras if era.released)


def test_a_version_and_keys_of_an_era_say_more_than_a_day() -> None:
    trl = next(one for one in FRAMEWORKS if one.framework == "trl")
    assert told_era(trl, "0.25.0", set(), {}, dated="2024-12-01") == ("v0.25", "version")
    assert told_era(trl, None, {"vllm_mode", "steps_per_generation"}, {}, dated="2024-12-01")[1] == "keys"
    assert told_era(trl, None, set(), {}) != told_era(trl, None, set(), {}, dated="2024-12-01")


def test_the_day_is_said_where_it_tells_the_version() -> None:
    found = recognise(None, "", ("trl",), {}, {}, FRAMEWORKS, dated="2025-04-01")
    (note,) = version_notes(found, None)
    assert (found.era, "2025-04-01" in note) == ("v0.16", True)


@each(
    ("text", "day"),
    [
        ("[2025-02-18 03:12:40,002] [INFO] step 3\n[2025-02-19 00:00:01] step 4", "2025-02-19"),
        ("[INFO|2025-03-02 10:04:11] llamafactory >> ready", "2025-03-02"),
        ("2025/03/02 10:04:11 ready", "2025-03-02"),
        ("(main pid=1) 2025-02-18T03:12:40Z ready\n2031-01-01 00:00:00 a clock ahead", "2025-02-18"),
        ("checkpoints/run_2024-12-01/step_3 holds data of 2023-10-01", ""),
        ("INFO 02-18 03:11:12 model_runner.py:1060] Starting to load model", ""),
    ],
)
def test_a_day_counts_with_a_time_and_its_year(text: str, day: str) -> None:
    assert dated_in(text, TODAY) == day
