"""A crawler: every key on every screen raises nothing, and from everywhere there is a way back."""

import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

from advisor.state import State
from advisor.tui.app import AdvisorApp
from advisor.tui.breadcrumb import Stage
from advisor.tui.screen import BaseScreen, Overlay
from tests.heavy import ASKED, sampled

from .made_state import MadeDriver, host_crash, no_log
from .screen_text import hit, opened, press, screen_text, settle

STRAYS = ["x", "backspace"]
"""Bound on no screen."""
ENDS = ("leave", "quit", "suspend")
"""Actions that end the app, or stop it; tried on their own below."""
WAYS: dict[str, tuple[Stage, list[str]]] = {
    "MachineScreen": ("machine", []),
    "RunScreen": ("run", []),
    "VerdictScreen": ("crash", []),
    "QuestionScreen": ("questions", []),
    "PlanScreen": ("plan", []),
    "DiffScreen": ("save", []),
    "SaveScreen": ("save", ["s"]),
    "SavedScreen": ("save", ["enter"]),
    "OverwriteScreen": ("save", ["enter"]),
    "GaugesView": ("crash", ["g"]),
    "WhyNot": ("crash", ["w"]),
    "HelpView": ("crash", ["question_mark"]),
    "EvidenceView": ("crash", ["o"]),
    "Explanation": ("plan", ["e"]),
    "ArithmeticView": ("plan", ["a"]),
    "MemoryView": ("plan", ["m"]),
    "CaseView": ("plan", ["d"]),
    "SetsView": ("plan", ["s"]),
    "TicketView": ("crash", ["y"]),
    "Palette": ("crash", [":"]),
}
"""Screen → the stage it is reached from, and by which keys. What was saved once is there to be overwritten then."""


def alive(pilot: Pilot[int]) -> None:
    """The app runs, and stands on a screen of ours that can be drawn."""
    assert pilot.app.is_running
    assert pilot.app.return_code in (0, None)
    assert isinstance(pilot.app.screen, BaseScreen)
    assert screen_text(pilot.app)


async def test_every_key_on_every_screen_is_safe_and_escape_leads_back(tmp_path: Path) -> None:
    """On each screen one key for every action that is bound there, and some that are bound nowhere."""
    async with opened(driver=MadeDriver(host_crash(), folder=tmp_path), size=(60, 15)) as pilot:
        for place, name in enumerate(WAYS):
            await _go(pilot, name)
            for key in [*_one_key_an_action(pilot, place), STRAYS[place % 2]]:
                await _stand_on(pilot, name)
                await hit(pilot, key)
                alive(pilot)
            await _go(pilot, name)
            shown = screen_text(pilot.app).splitlines()
            assert all(shown[place].strip() for place in (0, -2, -1)), "breadcrumb, gauges or keys are missing"
            await _back_to_the_machine(pilot)


def _one_key_an_action(pilot: Pilot[int], place: int) -> list[str]:
    """All that are the screen's own; of the actions of the app, of the page that screens share and of Textual itself a
    sixth, other ones from screen to screen, unless heavy tests are asked for."""
    found = {(type(b.node).__name__, b.binding.action): key for key, b in pilot.app.screen.active_bindings.items()}
    keys = {who: key for who, key in found.items() if not who[1].removeprefix("app.").startswith(ENDS)}
    own = type(pilot.app.screen).__name__
    shared = [who for who in keys if who[0] != own or "." in who[1]]
    left = set() if ASKED in os.environ else {who for at, who in enumerate(shared) if (at + place) % 6}
    return [key for who, key in keys.items() if who not in left]


async def _go(pilot: Pilot[int], name: str) -> None:
    """To the stage at once, then by keys."""
    assert isinstance(pilot.app, AdvisorApp)
    stage, keys = WAYS[name]
    if name == "SavedScreen":
        (pilot.app.ui.driver().folder / "run.fits.sh").unlink(missing_ok=True)  # type: ignore[attr-defined]
    pilot.app._show(stage)
    for key in ["", *keys]:
        await (hit(pilot, key) if key else settle(pilot))
    assert type(pilot.app.screen).__name__ == name


async def _stand_on(pilot: Pilot[int], name: str) -> None:
    """There again: by one Esc out of what a key opened, else the whole way."""
    if type(pilot.app.screen).__name__ != name and isinstance(pilot.app.screen, Overlay):
        await hit(pilot, "escape")
    if type(pilot.app.screen).__name__ != name:
        await _go(pilot, name)


async def _back_to_the_machine(pilot: Pilot[int]) -> None:
    for _ in range(12):
        if type(pilot.app.screen).__name__ == "MachineScreen":
            return
        await hit(pilot, "escape")
    raise AssertionError("Esc does not lead back")


@pytest.mark.parametrize("state", [no_log(), no_log(script=False)], ids=["no log", "nothing"])
async def test_with_little_known_there_is_no_dead_end_either(state: State) -> None:
    async with opened(state) as pilot:
        for key in (*["enter"] * 4, *"gwro", "question_mark"):
            await hit(pilot, key)
            alive(pilot)
        for _ in range(9):
            await hit(pilot, "escape")
        assert type(pilot.app.screen).__name__ == "MachineScreen"


QUITS, SHOWN = ["q", "ctrl+c", "ctrl+q"], [[], ["g"], ["enter"], ["question_mark"]]


@pytest.mark.parametrize(("key", "way"), sampled([(key, way) for key in QUITS for way in SHOWN], (0, 3, 5, 10)))
async def test_quitting_is_one_key(key: str, way: list[str]) -> None:
    async with opened() as pilot:
        await press(pilot, *way)
        await pilot.press(key)
        await pilot.pause()
        assert pilot.app.return_code == 0


async def test_the_help_knows_every_key_of_the_screen() -> None:
    async with opened() as pilot:
        await press(pilot, "enter")
        words = [hint.explained for hint in pilot.app.screen.own_hints()]  # type: ignore[attr-defined]
        await press(pilot, "question_mark")
        page = pilot.app.screen.query_one("#main")
        shown = " ".join(" ".join(part.text for part in row.line) for row in page.rows)  # type: ignore[attr-defined]
        for sentence in words:
            assert sentence in " ".join(shown.split())
