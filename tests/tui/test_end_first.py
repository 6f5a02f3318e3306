"""A log too long to wait for: its end is shown at once, the rest is read behind it, and what the user did stays."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from advisor.state import State
from advisor.tui.app import AdvisorApp
from advisor.tui.evidence_view import EvidenceView
from advisor.tui.opening import LoadingScreen
from advisor.tui.question import QuestionScreen
from advisor.tui.verdict import VerdictScreen
from tests.replacing import replace

from .made_state import MadeDriver, MadeGauges, host_crash
from .screen_text import press, screen_text, settle

BEHIND = "This is the end of the log"


def end_of(state: State) -> State:
    """The same crash, seen from the end of its log."""
    near = tuple(replace(one, line=one.line - 41_000) for one in state.crash.evidence)
    return replace(state, crash=replace(state.crash, evidence=near, preliminary=2 << 20))


async def until(pilot: Pilot[int], reached: Callable[[], bool]) -> None:
    """Wait without waiting for the worker that reads on."""
    for _ in range(400):
        if reached():
            return
        await pilot.pause()
        await asyncio.sleep(0.01)
    raise AssertionError("it was not reached")


@asynccontextmanager
async def reading_on(driver: MadeDriver) -> AsyncIterator[Pilot[int]]:
    """The app while the end of the log is shown and the rest is still being read."""
    app = AdvisorApp(lambda: driver, MadeGauges(), no_color=False, plain_ascii=False)
    async with app.run_test(size=(100, 30)) as pilot:
        try:
            await until(pilot, lambda: isinstance(app.screen, VerdictScreen) and "12%" in screen_text(app))
            yield pilot
        finally:
            driver.rest.set()


async def test_the_end_is_shown_with_a_quiet_line_until_the_rest_is_read() -> None:
    whole = host_crash()
    driver = MadeDriver(whole, early=end_of(whole))
    async with reading_on(driver) as pilot:
        assert BEHIND in screen_text(pilot.app)
        driver.rest.set()
        await settle(pilot)
        await pilot.pause()
        assert BEHIND not in screen_text(pilot.app)
        assert pilot.app.ui.known.crash == whole.crash


async def test_the_verdict_of_the_end_stands_before_the_session_is_open() -> None:
    whole = host_crash()
    driver = _Opening(whole, early=end_of(whole))
    app = AdvisorApp(lambda: driver, MadeGauges(), no_color=False, plain_ascii=False)
    async with app.run_test(size=(80, 24)) as pilot:
        try:
            await until(pilot, lambda: isinstance(app.screen, LoadingScreen) and "ran out" in screen_text(app))
            assert whole.crash.evidence[0].text[:40] in screen_text(app)
        finally:
            driver.begun.set()
        await settle(pilot)
        assert app.ui.known.crash == whole.crash


async def test_place_and_answers_stay_when_the_whole_log_arrives() -> None:
    whole = host_crash()
    driver = MadeDriver(whole, early=replace(end_of(whole), answers={"memory": "gpu"}))
    async with reading_on(driver) as pilot:
        app = pilot.app
        await pilot.press("r", "enter")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        screen = app.screen
        driver.rest.set()
        await settle(pilot)
        assert app.screen is screen
        assert driver.calls == ["carry over", "answer memory gpu"]
        assert app.ui.known.diagnosis != whole.diagnosis


async def test_a_line_that_is_being_looked_at_gets_its_number_in_the_whole_log() -> None:
    whole = host_crash()
    driver = MadeDriver(whole, early=end_of(whole))
    async with reading_on(driver) as pilot:
        app = pilot.app
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, EvidenceView))
        view = app.screen
        driver.rest.set()
        await settle(pilot)
        assert app.screen is view
        assert view._line == whole.crash.evidence[0].line


async def test_a_rest_that_cannot_be_read_leaves_what_the_end_proved() -> None:
    whole = host_crash()
    driver = _Breaking(whole, early=end_of(whole))
    async with reading_on(driver) as pilot:
        driver.rest.set()
        await settle(pilot)
        await pilot.pause()
        assert "the rest could not be read: it is gone" in screen_text(pilot.app)
        assert pilot.app.is_running


async def test_leaving_does_not_wait_for_the_rest() -> None:
    whole = host_crash()
    driver = _Telling(whole, early=end_of(whole))
    async with reading_on(driver) as pilot:
        await pilot.press("q")
        await until(pilot, lambda: not pilot.app.is_running)
    assert driver.told < 2_000


async def test_the_short_log_is_read_once_and_shown_as_ever() -> None:
    driver = MadeDriver(host_crash())
    app = AdvisorApp(lambda: driver, MadeGauges(), no_color=False, plain_ascii=False)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot)
        assert BEHIND not in screen_text(app)
        assert "carry over" not in driver.calls


class _Breaking(MadeDriver):
    def open(self, notice, early=None, ends=None):
        super().open(notice, early)
        raise OSError("it is gone")


class _Telling(MadeDriver):
    """Reads on until somebody stops it."""

    told = 0

    def open(self, notice, early=None, ends=None):
        early(self.early)
        while self.told < 2_000:
            self.told += 1
            notice(f"reading train.log: 12% of 10.0 GiB {self.told}")
            self.rest.wait(0.01)
        return self.state


class _Opening(MadeDriver):
    """Waits before the session is open."""

    def __init__(self, state: State, early: State) -> None:
        super().__init__(state, early=early)
        self.begun = threading.Event()

    def open(self, notice, early=None, ends=None):
        self.begun.wait(20)
        return self.state
