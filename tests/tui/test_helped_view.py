"""The app asks once whether a fix that was written in this folder helped."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from advisor.saved_fix import SavedFix, remember_fix, waiting_fix
from advisor.session import SessionRequest, State, open_session
from advisor.tui.helped_view import HelpedView
from advisor.tui.ui_state import Offers

from .screen_text import opened, press, screen_text

RUN = Path(__file__).parents[1] / "runs" / "logic-rl"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asked = SessionRequest(script=RUN / "stage1.sh", logs=(RUN / "stage1.log",), accept="token-budget")
    remember_fix(open_session(asked), tmp_path / "run.fits.sh")
    return tmp_path


def asking(folder: Path, lines: str = "a later run\n") -> Offers:
    log = folder.parent / "next.log"
    log.write_text(lines)
    os.utime(log, (time.time() + 5, time.time() + 5))

    def fix(_: State) -> SavedFix | None:
        return waiting_fix({folder}, (log,))

    return Offers(written=fix)


@pytest.mark.parametrize(("key", "kept"), [("y", 1), ("n", 0), ("escape", 0)])
async def test_one_key_answers_and_it_is_not_asked_again(written: Path, key: str, kept: int) -> None:
    async with opened(offers=asking(written)) as pilot:
        assert isinstance(pilot.app.screen, HelpedView)
        shown = screen_text(pilot.app)
        assert "run.fits.sh" in shown
        assert "use_dynamic_bsz" in shown
        await press(pilot, key)
        assert not isinstance(pilot.app.screen, HelpedView)
        assert "quit" in screen_text(pilot.app).splitlines()[-1]  # the keys of every screen are back
    assert len([*written.glob("config/rl-oom-advisor/knowledge/cases/*.yaml")]) == kept
    async with opened(offers=asking(written)) as pilot:
        assert not isinstance(pilot.app.screen, HelpedView)


async def test_of_the_log_that_the_fix_was_made_for_nothing_is_asked(written: Path) -> None:
    async with opened(offers=asking(written, (RUN / "stage1.log").read_text() + "its launcher ends\n")) as pilot:
        assert not isinstance(pilot.app.screen, HelpedView)


async def test_elsewhere_nothing_is_asked(written: Path) -> None:
    async with opened(offers=asking(written / "elsewhere")) as pilot:
        assert not isinstance(pilot.app.screen, HelpedView)
