"""Opens the session in a thread behind the first frame, and polls the gauges all the while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import work
from textual.binding import Binding, BindingType
from textual.worker import get_current_worker

from advisor.collector import as_usual
from advisor.language import mark, say
from advisor.machine.tool import ThreadResult, run_in_thread
from advisor.tui.driver import expected_trouble
from advisor.tui.page import TonedApp
from advisor.tui.proof import loading_rows
from advisor.tui.screen import BaseScreen, load_screens
from advisor.tui.ui_state import MakeDriver, UiState
from advisor.tui.ui_text import Row

if TYPE_CHECKING:
    from advisor.crash.evidence import Crash
    from advisor.machine.live import Gauges, GaugeSnapshot
    from advisor.state import State
    from advisor.tui.breadcrumb import Stage

T = TypeVar("T")


class LoadingScreen(BaseScreen):
    """Until the session is open. q leaves at any time."""

    NEEDS_STATE = False
    TITLE_WORDS = mark("Reading")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.leave", "stop", tooltip="stop reading and quit"),
    ]

    def main_rows(self, width: int) -> list[Row]:
        return loading_rows(self.ui.reading or say("reading …"), self.ui.ends, width)


class NobodyWaitsError(Exception):
    """What is being read is not wanted any more."""


class OpeningApp(TonedApp):
    """Reads what was asked for and what the machine does. The first state to arrive opens the first screen."""

    def __init__(
        self,
        ui: UiState,
        gauges: Gauges | None,
        *,
        no_color: bool,
        refresh: float = 1.0,
    ) -> None:
        super().__init__(ansi_color=True if no_color else None)
        self.ui = ui
        self._gauges, self._refresh = gauges, refresh
        self._polling, self._asked = False, 0.0
        self._turn = asyncio.Lock()
        self._keeping = Lock()
        self._moves = self._last_kept = 0
        self.kept = False
        """Whether the session lies on the disk as it was left."""
        self.resume: tuple[Stage, int] | None = None
        """Stage and question to open at instead of the first screen."""
        self.trouble = ""
        """Why nothing could be opened; printed after the app has gone."""
        if gauges is None:
            ui.no_gauges = say("no gauges")

    def on_mount(self) -> None:
        if self.ui.plain_ascii:
            self.add_class("-ascii")
        self.push_screen(LoadingScreen(self.ui))
        self._open()
        if self._gauges is not None:
            self._tick()
            self.set_interval(self._refresh * 1.02, self._tick)  # a little above, so that no tick falls just short

    # --- reading ---------------------------------------------------------------------------------------------------

    @work(thread=True, exit_on_error=True, exclusive=True, group="open")
    def _open(self) -> None:
        worker = get_current_worker()

        def notice(text: str) -> None:
            if worker.is_cancelled:
                raise NobodyWaitsError
            self.call_later(self._tell, text)

        def early(state: State) -> None:
            if worker.is_cancelled:
                raise NobodyWaitsError
            self.call_from_thread(self._opened, state)

        try:
            driver = self.ui.driver()
            ends = self.ui.ends or driver.ends()
            if ends is not None and ends is not self.ui.ends:
                self.call_later(self._ends_read, ends)
            load_screens()
            self.call_from_thread(self.bind_screens)
            state = driver.open(notice, early, ends)
        except NobodyWaitsError:
            return
        except expected_trouble() as error:
            self.call_from_thread(self._give_up, str(error))
            return
        if not worker.is_cancelled:
            self.call_from_thread(self._opened, state)

    def _give_up(self, why: str) -> None:
        if self.ui.state is not None:
            self.ui.reading, self.ui.note = "", say("the rest could not be read: {why}", why=why)
            self._reload()
        elif self.ui.offers.files is not None and self._chosen_in_the_app():
            self.ui.note = say("that could not be opened: {why}", why=why)
            self._open_driver(None)
        else:
            self.trouble = why
            self.exit(2, return_code=2)

    def _chosen_in_the_app(self) -> bool:
        return self.ui.chosen_script is not None or bool(self.ui.chosen_logs)

    def _opened(self, state: State) -> None:
        ui = self.ui
        if not state.crash.preliminary:
            self.call_after_refresh(as_usual)
        if ui.state is not None:
            self._read_on(state)
            return
        ui.state = state
        here = state.machine.sources.get("gpus") == "measured"
        ui.run_ended = _last_written(state.asked.logs) if here and state.crash.verdict == "oom" else None
        if not state.crash.preliminary:
            ui.reading = ""
        if self.resume is not None:
            stage, question = self.resume
            self.resume = None
            self._show(stage, question)
        elif state.asked.logs:
            self._show("crash")
        else:
            self._show("machine")
        self._ask_once()

    def _ask_once(self) -> None:
        """Whether a fix that was written here helped."""
        fix = self.ui.offers.written(self.ui.known) if self.ui.offers.written is not None else None
        if fix is not None and isinstance(self.screen, BaseScreen):
            from advisor.tui.helped_view import HelpedView

            self.push_screen(HelpedView.about(fix, self.screen))

    @work(group="turn", description="the whole log")
    async def _read_on(self, state: State) -> None:
        """All is read: what the end of the log proved makes room, the user's place and decisions stay."""
        async with self._turn:
            ui, before = self.ui, self.ui.known
            ui.state = await asyncio.to_thread(ui.driver().carry_over, before, state)
            ui.reading, ui.preview = "", None
            ui.earlier.clear()
            asked = len(ui.known.diagnosis.path)
            ui.question = min(ui.question, max(asked - 1, 0))
            if ui.stage == "questions" and not asked:
                self._show("crash")
            self._reload()
            for screen in self.screen_stack:
                if isinstance(screen, BaseScreen):
                    screen.read_on(before)
            if ui.stage == "save":
                self._preview()

    def open_demo(self) -> None:
        """Read the bundled crash instead of what was given."""
        if self.ui.offers.demo is not None:
            self._open_driver(self.ui.offers.demo)

    def open_files(self) -> None:
        """Open the files that were chosen in the app."""
        ui = self.ui
        if ui.offers.files is not None and self._chosen_in_the_app():
            self._open_driver(partial(ui.offers.files, ui.chosen_script, ui.chosen_logs))

    def _open_driver(self, make: MakeDriver | None) -> None:
        """Begin anew with another driver; None: with the one that asks for files."""
        ui = self.ui
        if make is None:
            assert ui.offers.files is not None
            ui.chosen_script, ui.chosen_logs = None, ()
            make = partial(ui.offers.files, None, ())
        else:
            ui.note = ""
        ui.driver, ui.state, ui.ends, ui.reading, ui.preview = cache(make), None, None, "", None
        ui.resumed = ""
        ui.switched.clear()
        ui.earlier.clear()
        while len(self.screen_stack) > 2:
            self.pop_screen()
        self.switch_screen(LoadingScreen(ui))
        self._open()

    def _ends_read(self, crash: Crash) -> None:
        self.ui.ends = crash
        self._reload()

    def _tell(self, reading: str) -> None:
        self.ui.reading = reading
        self._reload()

    # --- gauges ----------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if not self._polling:
            self._polling, self._asked = True, monotonic()
            self._poll()
        else:
            self._wait_for_gauges()

    def _wait_for_gauges(self) -> None:
        """A driver that hangs must not leave old numbers standing as if they were fresh."""
        from advisor.machine.live import HANGS_SECONDS, NEVER

        if monotonic() - self._asked > HANGS_SECONDS:
            self._show_gauges((self.ui.snapshot or NEVER).unanswered(monotonic()))

    @work(group="gauges")
    async def _poll(self) -> None:
        assert self._gauges is not None
        snapshot = await aside(partial(self._gauges.poll, monotonic()))
        self._polling = False
        self._show_gauges(snapshot)

    def _show_gauges(self, snapshot: GaugeSnapshot) -> None:
        self.ui.snapshot = snapshot
        top = self.screen_stack[-1] if self.screen_stack else None  # none while the app ends
        if isinstance(top, BaseScreen):
            top.reload_strip()

    # --- shown -----------------------------------------------------------------------------------------------------

    def _reload(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, BaseScreen):
                screen.reload()

    def bind_screens(self) -> None:
        """Bind the keys of all screens that are loaded."""
        raise NotImplementedError

    def _show(self, stage: Stage, question: int = 0) -> None:
        raise NotImplementedError

    def _preview(self) -> object:
        raise NotImplementedError


async def aside(ask: Callable[[], T]) -> T:
    """What `ask` answers, in a thread that nobody waits for at the end: a driver that hangs must not keep the user."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(told: ThreadResult[T]) -> None:
        if answer.done():  # the app is leaving
            return
        if told.problem is not None:
            answer.set_exception(told.problem)
        else:
            answer.set_result(told.values[0])

    def hand_over(told: ThreadResult[T]) -> None:
        with suppress(RuntimeError):  # the loop has gone
            loop.call_soon_threadsafe(settle, told)

    run_in_thread(ask, hand_over)
    return await answer


def _last_written(logs: Iterable[Path]) -> float | None:
    """When the newest of the logs was written last; None where none can be asked."""
    times = []
    for log in logs:
        with suppress(OSError):
            times.append(log.stat().st_mtime)
    return max(times, default=None)
