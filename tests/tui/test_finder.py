"""Screens with many rows show, as one types, only those that hold the words."""

import pytest

from advisor.tui.machine_view import RunScreen
from advisor.tui.memory_view import MemoryView
from advisor.tui.verdict import VerdictScreen

from .screen_text import opened, press, screen_text


async def test_memory_shows_the_phases_that_hold_the_words_and_escape_shows_all() -> None:
    async with opened() as pilot:
        await press(pilot, "m", "/", *"actor upd")
        shown = screen_text(pilot.app)
        assert "actor update" in shown
        assert "generating" not in shown
        assert "One GPU of" in shown, "the title above it stays"
        await press(pilot, "enter", "down")
        assert "generating" not in screen_text(pilot.app)
        await press(pilot, "/", *" qq")
        assert "nothing holds these words" in screen_text(pilot.app)
        await press(pilot, "escape")
        assert "generating" in screen_text(pilot.app)
        assert isinstance(pilot.app.screen, MemoryView)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, VerdictScreen)


@pytest.mark.parametrize("width", [80, 120])
async def test_the_run_shows_the_knobs_that_hold_the_words(width: int) -> None:
    async with opened(size=(width, 40)) as pilot:
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, RunScreen)
        before = screen_text(pilot.app)
        await press(pilot, "/", *"share")
        shown = screen_text(pilot.app)
        assert "rollout.memory_share" in shown
        assert len(shown.split()) < len(before.split())
        await press(pilot, "enter", "enter")
        assert isinstance(pilot.app.screen, VerdictScreen)
