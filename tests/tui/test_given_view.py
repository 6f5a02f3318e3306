"""The facts: what the sums count with and from where; what a command line could say is said here, and counts."""

from pathlib import Path

import pytest

from advisor.tui.verdict import VerdictScreen
from tests.heavy import heavy

from .made_state import no_log
from .screen_text import opened, press, screen_text, settle
from .test_cases_at_sizes import SIZES, case, is_sound


@pytest.mark.parametrize("size", [SIZES[0], SIZES[2], pytest.param(SIZES[1], marks=heavy)], ids=str)
async def test_a_fact_is_said_otherwise_and_the_sums_follow(
    size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(driver=case("easyr1", tmp_path, monkeypatch), size=size) as pilot:
        await press(pilot, "i")
        shown = screen_text(pilot.app)
        assert "8 × A100-40GB" in shown
        assert "as given" in shown or size[0] == 60
        is_sound(pilot, size)
        await press(pilot, "enter")
        shown = screen_text(pilot.app)
        assert "like 8xA100-80GB" in shown
        assert "enter take it  esc leave it as it was" in shown
        await press(pilot, "end", *["backspace"] * 5, *"80GB", "enter")
        shown = screen_text(pilot.app)
        assert "GPUs per node: 8 × A100-80GB now" in shown
        assert "q quit" in shown
        await press(pilot, "escape", "enter")
        assert "of 78." in screen_text(pilot.app) or "of 79." in screen_text(pilot.app) or size[0] == 60


async def test_what_cannot_be_is_told_and_stands_there_to_be_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(driver=case("easyr1", tmp_path, monkeypatch), size=(120, 40)) as pilot:
        await press(pilot, "i", "enter", *["backspace"] * 11, *"8xFOO[red]q", "enter")
        assert "that could not be done: --gpus: " in screen_text(pilot.app)
        assert "8 × A100-40GB" in screen_text(pilot.app)
        await press(pilot, "w", "escape")
        assert "could not be done" not in screen_text(pilot.app), "it was said, and another screen stood there since"
        await press(pilot, "enter")
        assert "8xFOO[red]q" in screen_text(pilot.app)
        await press(pilot, "escape", "end", "enter", *["backspace"] * 9, *"0.2", "enter")
        assert "margin: 20% now" in screen_text(pilot.app)
        await pilot.click("#main", offset=(10, 3))
        await pilot.click("#main", offset=(10, 3))
        await settle(pilot)
        assert "like 760GB; GB is read as GiB, as free -g shows it; empty: " in screen_text(pilot.app)
        await press(pilot, "escape", "escape")
        assert isinstance(pilot.app.screen, VerdictScreen)


async def test_where_nothing_was_given_there_is_nothing_to_say_otherwise() -> None:
    async with opened(no_log(script=False)) as pilot:
        await press(pilot, "i")
        assert "i (facts): there is nothing of that here" in screen_text(pilot.app)


async def test_what_is_typed_replaces_what_was_said_and_a_bare_number_counts_gigabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(driver=case("easyr1", tmp_path, monkeypatch), size=(120, 40)) as pilot:
        await press(pilot, "i", "down", "down", "enter", *"1000", "enter")
        assert "host RAM per node: 1000.00 GiB now" in screen_text(pilot.app)
        await press(pilot, "enter", *"900GB", "enter")
        assert "host RAM per node: 900.00 GiB now" in screen_text(pilot.app)
