"""A crawler: every key on every screen raises nothing, and from everywhere there is a way back."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from advisor.session import State
from advisor.tui.frame import Frame

from .made_state import MadeDriver, host_crash, no_log
from .screen_text import hit, opened, press, screen_text

KEYS = [
    *"aeghjknNouwxyz0149", "question_mark", "space", "enter", "up", "down", "left", "right", "home", "end",
    "pageup", "pagedown", "tab", "shift+tab", "escape", "backspace", "slash", "f1", "ctrl+p",
]  # fmt: skip
WAYS = {
    "machine": ["escape", "escape"],
    "run": ["escape"],
    "verdict": [],
    "question": ["enter"],
    "last question": ["enter"] * 3,
    "plan": ["enter"] * 4,
    "diff": ["enter"] * 5,
    "save": ["enter"] * 6,
    "saved": ["enter"] * 7,
    "overwrite": ["enter"] * 7,
    "gauges": ["g"],
    "why not": ["w"],
    "help": ["question_mark"],
    "log": ["o"],
    "explain": [*["enter"] * 4, "e"],
    "arithmetic": [*["enter"] * 4, "a"],
}

SCREENS = {
    "MachineScreen", "RunScreen", "VerdictScreen", "QuestionScreen", "PlanScreen", "DiffScreen", "SaveScreen",
    "SavedScreen", "OverwriteScreen", "GaugesView", "WhyNot", "HelpView", "EvidenceView", "Explanation", "Arithmetic",
}  # fmt: skip


def alive(pilot: Pilot[int]) -> None:
    """The app runs, and stands on a screen of ours."""
    assert pilot.app.is_running
    assert pilot.app.return_code in (0, None)
    assert isinstance(pilot.app.screen, Frame)


async def test_every_key_on_every_screen_is_safe(tmp_path: Path) -> None:
    """Walk: on each screen try a key not tried there yet; when all were tried, go on to the next screen."""
    tried: dict[str, set[str]] = {}
    ways = iter(WAYS.values())
    async with opened(driver=MadeDriver(host_crash(), folder=tmp_path)) as pilot:
        while True:
            here = type(pilot.app.screen).__name__
            untried = [key for key in KEYS if key not in tried.setdefault(here, set())]
            if untried:
                tried[here].add(untried[0])
                await hit(pilot, untried[0])
                alive(pilot)
                continue
            if (following := next(ways, None)) is None:
                break
            await _start(pilot)
            await press(pilot, *following)
            alive(pilot)
            shown = screen_text(pilot.app).splitlines()
            assert all(shown[place].strip() for place in (0, -2, -1)), "breadcrumb, gauges or keys are missing"
    assert set(tried) == SCREENS


async def _start(pilot: Pilot[int]) -> None:
    """Back to the machine by Esc alone, then to the verdict."""
    for _ in range(12):
        if type(pilot.app.screen).__name__ == "MachineScreen":
            break
        await hit(pilot, "escape")
    assert type(pilot.app.screen).__name__ == "MachineScreen"
    await hit(pilot, "enter")
    await hit(pilot, "enter")


@pytest.mark.parametrize("state", [no_log(), no_log(script=False)], ids=["no log", "nothing"])
async def test_with_little_known_there_is_no_dead_end_either(state: State) -> None:
    async with opened(state) as pilot:
        for key in (*["enter"] * 7, *"gwo", "question_mark"):
            await hit(pilot, key)
            alive(pilot)
        for _ in range(9):
            await hit(pilot, "escape")
        assert type(pilot.app.screen).__name__ == "MachineScreen"


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
@pytest.mark.parametrize("way", [[], ["g"], ["enter"], ["question_mark"]])
async def test_quitting_is_one_key(key: str, way: list[str]) -> None:
    async with opened() as pilot:
        await press(pilot, *way)
        await pilot.press(key)
        await pilot.pause()
        assert pilot.app.return_code == 0


async def test_the_help_knows_every_key_of_the_screen() -> None:
    async with opened() as pilot:
        await press(pilot, *["enter"] * 4)
        words = [hint.explained for hint in pilot.app.screen.own_hints()]  # type: ignore[attr-defined]
        await press(pilot, "question_mark")
        page = pilot.app.screen.query_one("#main")
        shown = " ".join(" ".join(part.text for part in row.line) for row in page.rows)  # type: ignore[attr-defined]
        for sentence in words:
            assert sentence in " ".join(shown.split())
