"""A crawler: every key on every screen raises nothing, and from everywhere there is a way back."""

import pytest
from textual.pilot import Pilot

from advisor.tui.frame import Frame

from .made_state import MadeDriver, gpu_crash, host_crash, no_log
from .screen_text import opened, press, screen_text

KEYS = [
    *"abcdefghijklmnoprstuvxyzNGW0123456789",
    "w", "question_mark", "space", "enter", "up", "down", "left", "right", "home", "end", "pageup", "pagedown",
    "tab", "shift+tab", "escape", "backspace", "delete", "slash", "f1", "ctrl+p", "ctrl+l", "ctrl+u",
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
    "gauges": ["g"],
    "why not": ["w"],
    "help": ["question_mark"],
    "log": ["o"],
    "explain": [*["enter"] * 4, "e"],
    "arithmetic": [*["enter"] * 4, "a"],
}


async def alive(pilot: Pilot[int]) -> None:
    """The app stands on a screen of ours that shows a breadcrumb and keys."""
    assert pilot.app.is_running
    assert pilot.app.return_code in (0, None)
    assert isinstance(pilot.app.screen, Frame)
    shown = screen_text(pilot.app).splitlines()
    assert shown[0].strip()
    assert shown[-1].strip()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_every_key_is_safe(way: list[str]) -> None:
    driver = MadeDriver(host_crash())
    async with opened(driver=driver) as pilot:
        await press(pilot, *way)
        start = type(pilot.app.screen)
        for key in KEYS:
            await pilot.press(key)
            await pilot.pause()
            await alive(pilot)
            if type(pilot.app.screen) is not start:
                await _again(pilot, way)


async def _again(pilot: Pilot[int], way: list[str]) -> None:
    """Back to the beginning by Esc alone, and forth again."""
    for _ in range(12):
        await press(pilot, "escape")
    await press(pilot, "enter", "enter", *way)


@pytest.mark.parametrize("state", [gpu_crash(), no_log(), no_log(script=False)], ids=["gpu", "no log", "nothing"])
async def test_every_way_leads_back(state: object) -> None:
    async with opened(state) as pilot:  # type: ignore[arg-type]
        for way in WAYS.values():
            await press(pilot, *way)
            await alive(pilot)
            for _ in range(10):
                await press(pilot, "escape")
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
