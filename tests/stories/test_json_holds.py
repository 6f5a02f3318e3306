"""What the JSON of every story keeps: its schema, and what must agree within it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.stories.told import DOCUMENTED, STORIES, diagnosis, enter

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
Answer = dict[str, Any]
CONTRACT = json.loads((Path(__file__).parents[2] / "docs" / "contract.schema.json").read_text("utf-8"))
COLOUR = re.compile(r"\x1b\[[\d;]*m")
ROUNDING = 4
"""Bytes by which a sum may differ from its rounded parts."""


entered: dict[str, Path] = {}
"""Story → its folder, copied by the first test that asks for it; no test writes to it."""


@pytest.fixture(params=STORIES)
def answer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: Patch, capsys: Capture
) -> Answer:
    story = STORIES[request.param]
    if story.name not in entered:
        entered[story.name] = enter(story, tmp_path_factory.mktemp(story.name), monkeypatch)
        diagnosis(story, capsys)
    monkeypatch.chdir(entered[story.name])
    return diagnosis(story, capsys)


def phases(answer: Answer) -> Iterator[dict[str, Any]]:
    for ledger in (answer["memory"], answer["after"]):
        if ledger is not None:
            yield from (*ledger["gpu"]["phases"], *ledger["host"]["phases"])


def test_it_keeps_its_schema(answer: Answer) -> None:
    jsonschema.validate(answer, CONTRACT)


def test_a_phase_holds_what_its_owners_hold(answer: Answer) -> None:
    for phase in phases(answer):
        assert abs(phase["expected_bytes"] - sum(item["bytes"] for item in phase["items"])) <= ROUNDING, phase["phase"]


def test_what_is_expected_lies_in_its_interval(answer: Answer) -> None:
    for phase in phases(answer):
        assert phase["low_bytes"] <= phase["expected_bytes"] <= phase["high_bytes"], phase["phase"]
        for item in phase["items"]:
            assert 0 <= item["low_bytes"] <= item["bytes"] <= item["high_bytes"], item


def test_every_answer_quotes_evidence_that_is_there(answer: Answer) -> None:
    count = len(answer["crash"]["evidence"])
    for step in answer["diagnosis"]["path"]:
        assert all(0 <= index < count for index in step["evidence"]), step["question"]
        assert step["answer"] in (*step["choices"], "unknown")
        assert (step["source"] == "unknown") == (step["answer"] == "unknown")


def test_every_quoted_line_stands_in_its_file(answer: Answer) -> None:
    for entry in answer["crash"]["evidence"]:
        lines = COLOUR.sub("", Path(entry["file"]).read_text("utf-8", "replace")).splitlines()
        assert entry["text"].strip()[:40] in lines[entry["line"] - 1]


def test_a_settings_line_and_bytes_are_where_its_value_is_written(answer: Answer) -> None:
    for setting in answer["run"]["settings"]:
        if setting["file"] is None:
            assert setting["line"] is setting["start"] is setting["end"] is None, setting
            continue
        data = Path(setting["file"]).read_bytes()
        assert data[: setting["start"]].count(b"\n") + 1 == setting["line"], setting
        value = setting["value"]
        there = data[setting["start"] : setting["end"]].decode().lower()
        parts = value if isinstance(value, list) else str(value).strip("[]").split(",")
        assert there, setting
        assert all(str(part).lower() in there for part in parts), setting


def test_before_and_after_have_the_same_phases(answer: Answer) -> None:
    for place in ("gpu", "host"):
        before, after = ([p["phase"] for p in answer[side][place]["phases"]] for side in ("memory", "after"))
        assert before == after


def test_changes_start_from_what_is_in_force(answer: Answer) -> None:
    now = {s["key"].lstrip("-"): s["value"] for s in answer["run"]["settings"] if s["effective"]}
    for step in answer["plan"]:
        for change in step["changes"]:
            assert change["old"] != change["new"], change
            if change["old"] is not None and change["key"].lstrip("-") in now:
                assert change["old"] == now[change["key"].lstrip("-")], change


def test_alternatives_are_not_selected_together(answer: Answer) -> None:
    chosen = [step for step in answer["plan"] if step["selected"]]
    ids = {step["id"] for step in chosen}
    groups = [step["group"] for step in chosen if step["group"]]
    assert len(groups) == len(set(groups))
    assert not [(step["id"], other) for step in chosen for other in step["conflicts"] if other in ids]
    assert [step["rank"] for step in answer["plan"]] == list(range(1, len(answer["plan"]) + 1))


def test_every_documented_story_has_a_plan_and_a_ledger(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    for name in DOCUMENTED:
        enter(STORIES[name], tmp_path / name, monkeypatch)
        answer = diagnosis(STORIES[name], capsys)
        assert answer["plan"], name
        assert answer["memory"]["gpu"]["phases"], name
