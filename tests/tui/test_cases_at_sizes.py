"""The documented cases at three sizes: ten keystrokes to the plan, every view on the way, nothing outside its line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from advisor.commands import app_parser
from advisor.commands.requests import asked_from
from advisor.crash.evidence import Crash
from advisor.hostile import cells
from advisor.language import spoken
from advisor.state import State
from advisor.tui.driver import SessionDriver
from advisor.tui.plan_view import PlanScreen
from advisor.tui.save_view import DiffScreen
from tests.heavy import sampled
from tests.stories.told import DOCUMENTED, STORIES, enter

from .screen_text import hit, opened, press, screen_text

SIZES = [(80, 24), (120, 40), (60, 15)]
_KNOWN: dict[tuple[str, str], State] = {}
"""(case, language) → what it was opened to."""


class Opened(SessionDriver, frozen=True):
    """The session's own driver on a case that was opened already."""

    state: State | None = None

    def ends(self) -> Crash | None:
        return None

    def open(
        self, notice: Callable[[str], None], early: Callable[[State], None] | None = None, ends: Crash | None = None
    ) -> State:
        assert self.state is not None
        return self.state


def case(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    story = STORIES[name]
    enter(story, tmp_path, monkeypatch)
    asked = asked_from(app_parser().parse_args([story.script, "--log", story.log, *story.machine]))
    known = name, spoken()
    if known not in _KNOWN:
        _KNOWN[known] = SessionDriver(asked).open(lambda _: None)
    return Opened(asked, state=_KNOWN[known])


def is_sound(pilot: Pilot[int], size: tuple[int, int]) -> None:
    """Breadcrumb, gauges and keys are there, and no line is longer than the terminal is wide."""
    lines = screen_text(pilot.app).splitlines()
    assert len(lines) == size[1]
    assert max(cells(line) for line in lines) <= size[0]
    assert all(lines[at].strip() for at in (0, -2, -1))
    assert "quit" in lines[-1]


EVERY = [(name, size) for size in SIZES for name in DOCUMENTED]


@pytest.mark.parametrize(("name", "size"), sampled(EVERY, range(len(DOCUMENTED) + 1)), ids=str)
async def test_enter_alone_leads_to_the_plan_and_every_view_opens_there(
    name: str, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(driver=case(name, tmp_path, monkeypatch), size=size) as pilot:
        assert "ran out" in screen_text(pilot.app)
        await hit(pilot, "enter")
        assert isinstance(pilot.app.screen, PlanScreen)
        await press(pilot)
        is_sound(pilot, size)
        for key in "eamdw" if size == SIZES[0] else "":
            await hit(pilot, key)
            assert not isinstance(pilot.app.screen, PlanScreen), f"{key} opens nothing"
            await press(pilot)
            is_sound(pilot, size)
            await hit(pilot, "escape")
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, DiffScreen)
        is_sound(pilot, size)
