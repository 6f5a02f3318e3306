"""The same stories driven in the app with the keyboard alone: the same answers, the same bytes saved."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from advisor.commands import app_parser
from advisor.commands.requests import asked_from
from advisor.tui.driver import SessionDriver
from advisor.tui.plan_view import PlanScreen
from advisor.tui.question import QuestionScreen
from advisor.tui.save_view import DiffScreen, SavedScreen
from advisor.tui.verdict import VerdictScreen
from tests.heavy import sampled
from tests.stories.told import DOCUMENTED, RUNS, STORIES, Story, changes, diagnosis, enter, tell
from tests.tui.screen_text import opened, press, screen_text

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def _still(monkeypatch: Patch) -> None:
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.delenv("NO_COLOR", raising=False)


@asynccontextmanager
async def app_of(story: Story, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Pilot[int]]:
    asked = asked_from(app_parser().parse_args([story.script, "--log", story.log, *story.machine]))
    async with opened(size=size, driver=SessionDriver(asked)) as pilot:
        yield pilot


def same_picture(name: str, story: Story, text: str) -> None:
    file = RUNS / story.folder / f"expected.{story.name}.{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text(), f"{file.name} looks different; UPDATE_GOLDEN=1 accepts it"


@pytest.mark.parametrize("name", STORIES)
async def test_verdict_and_plan_look_as_they_should(name: str, tmp_path: Path, monkeypatch: Patch) -> None:
    story = STORIES[name]
    enter(story, tmp_path, monkeypatch)
    async with app_of(story) as pilot:
        assert isinstance(pilot.app.screen, VerdictScreen)
        same_picture("verdict", story, screen_text(pilot.app))
        await press(pilot, *["enter"] * (1 + (name == "unknown")))
        assert isinstance(pilot.app.screen, PlanScreen), "log and script leave nothing open that decides"
        same_picture("plan", story, screen_text(pilot.app))


@pytest.mark.parametrize("name", sampled([name for name in DOCUMENTED if name != "openrlhf"], (0, 2)))
async def test_enter_alone_saves_the_very_bytes_that_the_command_writes(
    name: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES[name]
    folder = enter(story, tmp_path, monkeypatch)
    code, _, err = tell(story.words("fix", "-o", f"headless{Path(story.script).suffix}"), capsys)
    assert code == 0, err
    async with app_of(story) as pilot:
        keys = 0
        while not isinstance(pilot.app.screen, SavedScreen):
            await press(pilot, "enter")
            keys += 1
        assert keys <= 3, "with the run's choice in the list of runs four keys from start to saved script"
        assert story.fits in screen_text(pilot.app)
    assert (folder / story.fits).read_bytes() == (folder / f"headless{Path(story.script).suffix}").read_bytes()


async def test_a_version_as_the_way_out_is_said_where_the_diff_would_be(tmp_path: Path, monkeypatch: Patch) -> None:
    story = STORIES["openrlhf"]
    enter(story, tmp_path, monkeypatch)
    async with app_of(story, size=(120, 40)) as pilot:
        while not isinstance(pilot.app.screen, DiffScreen):
            await press(pilot, "enter")
        assert "deepspeed>=0.16.8" in screen_text(pilot.app).replace("\n", " ")


async def test_changing_the_first_answer_changes_everything_downstream(tmp_path: Path, monkeypatch: Patch) -> None:
    story = STORIES["easyr1"]
    enter(story, tmp_path, monkeypatch)
    async with app_of(story) as pilot:
        await press(pilot, "r", "enter")
        assert isinstance(pilot.app.screen, QuestionScreen)
        await press(pilot, "1")
        while not isinstance(pilot.app.screen, PlanScreen):
            await press(pilot, "enter")
        assert "offload_params" not in screen_text(pilot.app)


@pytest.mark.parametrize("name", sampled(DOCUMENTED, (1, 3, 4)))
async def test_the_app_and_the_command_agree_on_cause_and_changes(
    name: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES[name]
    enter(story, tmp_path, monkeypatch)
    told = diagnosis(story, capsys)
    asked = asked_from(app_parser().parse_args([story.script, "--log", story.log, *story.machine]))
    state = SessionDriver(asked).open(lambda _: None)
    assert state.diagnosis.cause == told["diagnosis"]["cause"]
    chosen = {c.key.lstrip("-"): (c.old, c.new) for step in state.plan.selected() for c in step.changes}
    assert chosen == changes(told, selected=True)
