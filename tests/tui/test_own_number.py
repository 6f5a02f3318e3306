"""A number of one's own on the plan: typed on the marked row, with the bars following, its bounds, and undo."""

from pathlib import Path

import pytest
from textual.events import Paste

from advisor.tui.plan_view import PlanScreen
from advisor.tui.save_view import DiffScreen
from tests.heavy import heavy

from .made_state import gpu_crash, host_crash
from .screen_text import opened, press, screen_text, settle
from .test_cases_at_sizes import SIZES, case, is_sound

SHARE = "gpu_memory_utilization"


@pytest.mark.parametrize("size", [SIZES[0], SIZES[2], pytest.param(SIZES[1], marks=heavy)], ids=str)
async def test_a_number_is_typed_on_its_row_and_the_bars_follow(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(driver=case("easyr1", tmp_path, monkeypatch), size=size) as pilot:
        await press(pilot, "enter", "down", "down")
        assert "= number" in screen_text(pilot.app) or size[0] == 60
        await press(pilot, "equals_sign")
        shown = screen_text(pilot.app)
        assert "0.6 → [0.55]" in shown
        assert "fits up to 0.55; 0.6 does not" in shown
        assert "enter keep it" in shown
        assert "may fit with" in shown or size[0] == 60
        is_sound_while_typing(shown)
        await press(pilot, "0", ".", "8", "6", "backspace", "5")
        shown = screen_text(pilot.app)
        assert "0.6 → 0.85▌" in shown
        assert "does not fit" in shown or size[0] == 60
        assert "generating" in shown, "the bars are those of the phase that decides now"
        await press(pilot, "q", "w", "space", "x")  # letters are no keys here, nor part of a number
        assert "0.6 → 0.85▌" in screen_text(pilot.app)
        await press(pilot, "escape")
        assert "0.6 → 0.55" in screen_text(pilot.app)
        await press(pilot, "equals_sign", "left", "left", "enter")
        shown = screen_text(pilot.app)
        assert "0.6 → 0.45  your number" in shown
        assert isinstance(pilot.app.screen, PlanScreen)
        is_sound(pilot, size)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, DiffScreen)
        assert f"{SHARE}=0.45" in screen_text(pilot.app) or size[0] == 60
        await press(pilot, "escape", "u")
        assert "0.6 → 0.55" in screen_text(pilot.app)
        assert "taken back" in screen_text(pilot.app)


def is_sound_while_typing(shown: str) -> None:
    assert "space toggle" not in shown
    assert "q quit" not in shown


async def test_what_cannot_be_says_why_and_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(driver=case("easyr1", tmp_path, monkeypatch), size=(100, 40)) as pilot:
        await press(pilot, "enter", "down", "down", "equals_sign", "9", "enter")
        assert "is a share: 1 is all of it" in " ".join(screen_text(pilot.app).split())
        assert "0.6 → 9▌" in screen_text(pilot.app)
        pilot.app.screen.post_message(Paste("\x1b[2J[red] 0.4\n"))
        await settle(pilot)
        await press(pilot, *["backspace"] * 12, "0", ".", "4", "enter")
        assert "0.6 → 0.4  your number" in screen_text(pilot.app)
        await press(pilot, "equals_sign", "up", "up", "down", "enter")
        assert "0.6 → 0.45  your number" in screen_text(pilot.app)
        await press(pilot, "equals_sign", "2")
        await pilot.click("#main", offset=(10, 1))  # another row: this one stays as it was
        await settle(pilot)
        assert "0.6 → 0.45  your number" in screen_text(pilot.app)
        assert "space toggle" in screen_text(pilot.app)


async def test_steps_without_a_number_offer_none() -> None:
    async with opened() as pilot:
        await press(pilot, "enter")
        assert "= number" not in screen_text(pilot.app)
        before = screen_text(pilot.app)
        await press(pilot, "equals_sign")
        told = " = (number): there is nothing of that here\n"
        assert told in screen_text(pilot.app)
        await press(pilot, "t")
        assert "t (over time): there is nothing of that here" in screen_text(pilot.app)
        await press(pilot, "e", "escape")
        assert screen_text(pilot.app) == before


async def test_undo_takes_switches_back_one_by_one() -> None:
    async with opened() as pilot:
        await press(pilot, "enter")
        assert "u undo" not in screen_text(pilot.app)
        before = screen_text(pilot.app)
        await press(pilot, "space", "down", "space", "u", "u", "home")
        after = screen_text(pilot.app).replace(" taken back\n", "")
        assert [line for line in after.splitlines() if "[x]" in line or "after" in line] == [
            line for line in before.splitlines() if "[x]" in line or "after" in line
        ]
        assert "u undo" not in after


async def test_a_click_on_the_box_switches_the_step_and_one_on_its_number_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(driver=case("easyr1", tmp_path, monkeypatch), size=(120, 40)) as pilot:
        await press(pilot, "enter")
        rows = screen_text(pilot.app).splitlines()
        at = next(number for number, row in enumerate(rows) if f"[x] worker.rollout.{SHARE}" in row)
        await pilot.click(offset=(rows[at].index("[x]") + 1, at))
        await settle(pilot)
        rows = screen_text(pilot.app).splitlines()
        at = next(number for number, row in enumerate(rows) if f"[ ] worker.rollout.{SHARE}" in row)
        await pilot.click(offset=(10, at + 1))
        await settle(pilot)
        assert "0.6 → [0.55]" in screen_text(pilot.app)


async def test_a_step_that_is_off_says_why() -> None:
    async with opened(host_crash()) as pilot:
        await press(pilot, "enter", "space")
        assert "off: you switched it off" in screen_text(pilot.app)
        await press(pilot, "u", "end")
        assert "off: " in screen_text(pilot.app)
    async with opened(gpu_crash(), size=(160, 50)) as pilot:
        await press(pilot, "enter", "end", "up")
        assert "off: " in screen_text(pilot.app)
