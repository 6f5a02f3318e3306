"""Opening: the glance, then the session in a thread; and the gauges, polled all the while."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from textual import on, work
from textual.app import App
from textual.events import Key
from textual.worker import get_current_worker

from advisor.language import say
from advisor.machine.timeouts import ThreadResult, run_in_thread
from advisor.tui.driver import Driver, expected_trouble
from advisor.tui.frame import Frame
from advisor.tui.loading import LoadingScreen
from advisor.tui.messages import GaugeSource, GaugesRead, Glanced, Glancing, NobodyWaitsError, Noticed
from advisor.tui.sitting import DemoAsked, FilesAsked, Sitting

if TYPE_CHECKING:
    from advisor.machine.live import GaugeSnapshot
    from advisor.session import State
    from advisor.tui.breadcrumb import Stage

T = TypeVar("T")


class Opening(App[int]):
    """Reads what was asked for and what the machine does. The first state to arrive opens the first screen."""

    def __init__(
        self,
        sitting: Sitting,
        gauges: GaugeSource | None,
        *,
        no_color: bool,
        refresh: float = 1.0,
        glancing: Glancing | None = None,
    ) -> None:
        super().__init__(ansi_color=True if no_color else None)
        self.sitting = sitting
        self._gauges, self._refresh = gauges, refresh
        self._glancing = glancing
        self._polling, self._asked = False, 0.0
        self._turn = asyncio.Lock()
        self._keeping = Lock()
        self._moves = self._last_kept = 0
        self.resume: tuple[Stage, int] | None = None
        """Stage and question to open at instead of the first screen."""
        self.trouble = ""
        """Why nothing could be opened; printed after the app has gone."""
        if gauges is None:
            sitting.no_gauges = say("no gauges")

    def on_mount(self) -> None:
        """Begin to read, and to watch."""
        if self.sitting.plain_ascii:
            self.add_class("-ascii")
        self.push_screen(LoadingScreen(self.sitting))
        if self._glancing is None:
            self._open()
        else:
            self._glance(self._glancing)
        if self._gauges is not None:
            self._tick()
            self.set_interval(self._refresh * 1.02, self._tick)  # a little above, so that no tick falls just short

    # --- reading ---------------------------------------------------------------------------------------------------

    @work(thread=True, group="open")
    def _glance(self, glancing: Glancing) -> None:
        self.post_message(Glanced(glancing()))

    @on(Glanced)
    def _glanced(self, message: Glanced) -> None:
        """Show it before anything else is loaded: that would keep the screen waiting."""
        self.sitting.glance = message.glance
        self._reload()
        self.call_after_refresh(self._open)

    @work(thread=True, exit_on_error=True, exclusive=True, group="open")
    def _open(self) -> None:
        worker = get_current_worker()
        gc.enable()

        def notice(text: str) -> None:
            if worker.is_cancelled:
                raise NobodyWaitsError
            self.post_message(Noticed(text))

        def early(state: State) -> None:
            if worker.is_cancelled:
                raise NobodyWaitsError
            self.call_from_thread(self._opened, state)

        try:
            state = self.sitting.driver.open(notice, early)
        except NobodyWaitsError:
            return
        except expected_trouble() as error:
            self.call_from_thread(self._give_up, str(error))
            return
        if not worker.is_cancelled:
            self.call_from_thread(self._opened, state)

    def _give_up(self, why: str) -> None:
        if self.sitting.state is not None:
            self.sitting.reading, self.sitting.note = "", say("the rest could not be read: {why}", why=why)
            self._reload()
        elif self.sitting.offers.files is not None and self._chosen_in_the_app():
            self.sitting.note = say("that could not be opened: {why}", why=why)
            self._open_driver(None)
        else:
            self.trouble = why
            self.exit(2, return_code=2)

    def _chosen_in_the_app(self) -> bool:
        return self.sitting.chosen_script is not None or bool(self.sitting.chosen_logs)

    def _opened(self, state: State) -> None:
        sitting = self.sitting
        if sitting.state is not None:
            self._read_on(state)
            return
        sitting.state, sitting.glance = state, None
        sitting.run_ended = _last_written(state.asked.logs) if state.crash.verdict == "oom" else None
        if not state.crash.preliminary:
            sitting.reading = ""
            self.call_after_refresh(_collect)
        if self.resume is not None:
            stage, question = self.resume
            self.resume = None
            self._show(stage, question)
        elif state.asked.logs:
            self._show("crash")
            self.call_after_refresh(self._press_on)
        else:
            self._show("machine")

    def _press_on(self) -> None:
        """The keys that were pressed on the glance, now that they mean something."""
        for key in self.sitting.typed:
            self.post_message(Key(key.key, key.character))
        self.sitting.typed.clear()

    @work(group="turn")
    async def _read_on(self, state: State) -> None:
        """All is read: what the end of the log proved makes room, the user's place and decisions stay."""
        async with self._turn:
            sitting, before = self.sitting, self.sitting.known
            sitting.state = await asyncio.to_thread(sitting.driver.carry_over, before, state)
            sitting.reading, sitting.preview = "", None
            asked = len(sitting.known.diagnosis.path)
            sitting.question = min(sitting.question, max(asked - 1, 0))
            if sitting.stage == "questions" and not asked:
                self._show("crash")
            self._reload()
            for screen in self.screen_stack:
                if isinstance(screen, Frame):
                    screen.read_on(before)
            if sitting.stage == "save":
                self._preview()
            self.call_after_refresh(_collect)

    @on(DemoAsked)
    def _demo_asked(self) -> None:
        if self.sitting.offers.demo is not None:
            self._open_driver(self.sitting.offers.demo())

    @on(FilesAsked)
    def _files_asked(self) -> None:
        sitting = self.sitting
        if sitting.offers.files is not None and self._chosen_in_the_app():
            self._open_driver(sitting.offers.files(sitting.chosen_script, sitting.chosen_logs))

    def _open_driver(self, driver: Driver | None) -> None:
        """Begin anew with another driver; None: with the one that asks for files."""
        sitting = self.sitting
        if driver is None:
            assert sitting.offers.files is not None
            sitting.chosen_script, sitting.chosen_logs = None, ()
            driver = sitting.offers.files(None, ())
        else:
            sitting.note = ""
        sitting.driver, sitting.state, sitting.reading, sitting.preview = driver, None, "", None
        sitting.switched.clear()
        while len(self.screen_stack) > 2:
            self.pop_screen()
        self.switch_screen(LoadingScreen(sitting))
        self._open()

    @on(Noticed)
    def _notice(self, message: Noticed) -> None:
        self.sitting.reading = message.text
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
            self._show_gauges((self.sitting.snapshot or NEVER).unanswered(monotonic()))

    @work(group="gauges")
    async def _poll(self) -> None:
        assert self._gauges is not None
        self.post_message(GaugesRead(await aside(partial(self._gauges.poll, monotonic()))))

    @on(GaugesRead)
    def _gauges_read(self, message: GaugesRead) -> None:
        self._polling = False
        self._show_gauges(message.snapshot)

    def _show_gauges(self, snapshot: GaugeSnapshot) -> None:
        self.sitting.snapshot = snapshot
        top = self.screen_stack[-1] if self.screen_stack else None  # none while the app ends
        if isinstance(top, Frame):
            top.reload_strip()

    # --- shown -----------------------------------------------------------------------------------------------------

    def _reload(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, Frame):
                screen.reload()

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


def _collect() -> None:
    """What was made while opening stays for good: it need not be looked through again by every collection."""
    import ctypes

    gc.enable()
    gc.collect()
    gc.freeze()
    with suppress(OSError, AttributeError):  # glibc only: what reading took and no longer needs goes back to the system
        ctypes.CDLL(None).malloc_trim(0)
