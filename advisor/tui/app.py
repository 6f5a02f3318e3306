"""The app: it owns the sitting, calls the driver from workers, and moves between screens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import ClassVar

from textual import on, work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.worker import WorkerFailed, get_current_worker

from advisor.session import State
from advisor.tui import changed
from advisor.tui.breadcrumb import STAGES, Stage
from advisor.tui.diff_view import DiffScreen
from advisor.tui.driver import EXPECTED_TROUBLE, Driver, Preview
from advisor.tui.evidence_view import EvidenceView
from advisor.tui.explain import WhyNot
from advisor.tui.frame import Frame
from advisor.tui.gauges_view import GaugesView
from advisor.tui.help_view import HelpView
from advisor.tui.loading import LoadingScreen
from advisor.tui.machine_view import MachineScreen, RunScreen
from advisor.tui.messages import GaugeSource, GaugesRead, NobodyWaitsError, Noticed
from advisor.tui.plan_view import PlanScreen
from advisor.tui.question import QuestionScreen
from advisor.tui.save_view import OverwriteScreen, SavedScreen, SaveScreen
from advisor.tui.sitting import Answered, DemoAsked, GoBack, GoOn, SaveAsked, Sitting, Toggled
from advisor.tui.verdict import VerdictScreen

EVERY_SECONDS = 1.02
"""A little above the poller's own second, so that no tick falls just short of it."""
_SCREENS: dict[Stage, type[Frame]] = {
    "machine": MachineScreen,
    "run": RunScreen,
    "crash": VerdictScreen,
    "questions": QuestionScreen,
    "plan": PlanScreen,
    "save": DiffScreen,
}


class AdvisorApp(App[int]):
    """One sitting in the terminal. All changes of its state happen here, one after the other."""

    CSS_PATH = "app.tcss"
    TITLE = "rl-oom-advisor"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [
        (0, "-tiny"),
        (60, "-narrow"),
        (100, "-wide"),
        (140, "-huge"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (15, "-tall")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "why_not", "why not", tooltip="causes that were ruled out, remedies that are not proposed"),
        Binding("g", "gauges", "gauges", tooltip="all GPUs, the host, and who sits on them"),
        Binding("question_mark", "help", "help", tooltip="the keys of this screen"),
        Binding("q", "leave_by_letter", "quit", tooltip="quit; nothing is written unless you saved"),
        Binding("ctrl+c", "leave", show=False, priority=True),
        Binding("ctrl+q", "leave", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False),
    ]

    def __init__(
        self,
        driver: Driver,
        gauges: GaugeSource | None,
        *,
        no_color: bool,
        plain_ascii: bool,
        demo: Callable[[], Driver] | None = None,
    ) -> None:
        super().__init__(ansi_color=True if no_color else None)
        self.sitting = Sitting(driver, plain_ascii, demo=demo)
        self._gauges = gauges
        self._polling = False
        self._turn = asyncio.Lock()
        self.trouble = ""
        """Why nothing could be opened; printed after the app has gone."""
        self.fault: Exception | None = None
        """A bug of ours: raised again after the app has gone, where the door records it."""
        if gauges is None:
            self.sitting.no_gauges = "no gauges"

    def on_mount(self) -> None:
        """Begin to read, and to watch."""
        if self.sitting.plain_ascii:
            self.add_class("-ascii")
        self.push_screen(LoadingScreen(self.sitting))
        self._open()
        if self._gauges is not None:
            self._tick()
            self.set_interval(EVERY_SECONDS, self._tick)

    # --- reading ---------------------------------------------------------------------------------------------------

    @work(thread=True, exit_on_error=True, exclusive=True, group="open")
    def _open(self) -> None:
        worker = get_current_worker()

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
        except EXPECTED_TROUBLE as error:
            self.call_from_thread(self._give_up, str(error))
            return
        if not worker.is_cancelled:
            self.call_from_thread(self._opened, state)

    def _give_up(self, why: str) -> None:
        if self.sitting.state is not None:
            self.sitting.reading, self.sitting.note = "", f"the rest could not be read: {why}"
            self._reload()
            return
        self.trouble = why
        self.exit(2, return_code=2)

    def _opened(self, state: State) -> None:
        if self.sitting.state is not None:
            self._read_on(state)
            return
        self.sitting.state = state
        self._show("crash" if state.asked.logs else "machine")

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
                if isinstance(screen, EvidenceView):
                    screen.renumber(before.crash)
            if sitting.stage == "save":
                self._preview()

    @on(DemoAsked)
    def _demo_asked(self) -> None:
        sitting = self.sitting
        if sitting.demo is None:
            return
        sitting.driver, sitting.state, sitting.reading = sitting.demo(), None, ""
        self.switch_screen(LoadingScreen(sitting))
        self._open()

    @on(Noticed)
    def _notice(self, message: Noticed) -> None:
        self.sitting.reading = message.text
        self._reload()

    # --- gauges ----------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if not self._polling:
            self._polling = True
            self._poll()

    @work(thread=True, group="gauges")
    def _poll(self) -> None:
        assert self._gauges is not None
        self.post_message(GaugesRead(self._gauges.poll(monotonic())))

    @on(GaugesRead)
    def _gauges_read(self, message: GaugesRead) -> None:
        self._polling = False
        self.sitting.snapshot = message.snapshot
        top = self.screen_stack[-1] if self.screen_stack else None  # none while the app ends
        if isinstance(top, Frame):
            top.reload_strip()

    # --- moving ----------------------------------------------------------------------------------------------------

    def _show(self, stage: Stage, question: int = 0) -> None:
        """Replace whatever is shown by the screen of `stage`."""
        self.sitting.stage, self.sitting.question = stage, question
        while len(self.screen_stack) > 2:
            self.pop_screen()
        self.switch_screen(_SCREENS[stage](self.sitting))
        if stage == "save":
            self._preview()

    def _reload(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, Frame):
                screen.reload()

    @on(GoOn)
    def _go_on(self) -> None:
        self._in_turn(self._forward)

    @on(GoBack)
    def _go_back(self) -> None:
        self._in_turn(self._backward)

    def _in_turn(self, move: Callable[[], None]) -> None:
        """Move only after what was asked before is done, so that quick keys arrive where they would have."""

        async def moved() -> None:
            async with self._turn:
                self.sitting.note = ""
                move()

        self.run_worker(moved(), group="turn")

    def _forward(self) -> None:
        sitting = self.sitting
        asked = len(sitting.known.diagnosis.path)
        if isinstance(self.screen, DiffScreen):
            self.push_screen(SaveScreen(sitting))
        elif sitting.stage == "questions" and sitting.question + 1 < asked:
            self._show("questions", sitting.question + 1)
        elif sitting.stage == "crash" and not asked:
            self._show("plan")
        elif sitting.stage != "save":
            self._show(STAGES[STAGES.index(sitting.stage) + 1])

    def _backward(self) -> None:
        sitting = self.sitting
        asked = len(sitting.known.diagnosis.path)
        if isinstance(self.screen, SavedScreen) or (sitting.stage == "questions" and not asked):
            self._show("plan" if isinstance(self.screen, SavedScreen) else "crash")
        elif sitting.stage == "questions" and sitting.question > 0:
            self._show("questions", sitting.question - 1)
        elif sitting.stage == "plan":
            self._show("questions", asked - 1) if asked else self._show("crash")
        elif sitting.stage != "machine":
            self._show(STAGES[STAGES.index(sitting.stage) - 1])

    # --- what the user decides -------------------------------------------------------------------------------------

    @on(Answered)
    def _answered(self, message: Answered) -> None:
        driver, choice = self.sitting.driver, message.choice

        def answered(state: State) -> State:
            return driver.answer(state, message.question, choice)

        self._change(answered, changed.after_answer, self._forward if message.then_on else None)

    @on(Toggled)
    def _toggled(self, message: Toggled) -> None:
        driver = self.sitting.driver
        self._change(lambda state: driver.toggle(state, message.step_id), changed.after_toggle, None)

    @work(group="turn")
    async def _change(
        self,
        step: Callable[[State], State],
        told: Callable[[State, State], str],
        then: Callable[[], None] | None,
    ) -> None:
        """One change of the state: the driver works in a thread, the screens follow."""
        async with self._turn:
            sitting = self.sitting
            before = sitting.known
            try:
                sitting.state = await asyncio.to_thread(step, before)
            except EXPECTED_TROUBLE as error:
                sitting.note = f"that could not be done: {error}"
                then = None
            else:
                sitting.note = told(before, sitting.known)
                sitting.preview = None
            if then is not None:
                then()
            else:
                self._reload()

    @work(group="turn")
    async def _preview(self) -> None:
        async with self._turn:
            sitting = self.sitting
            if sitting.preview is not None:
                return
            try:
                sitting.preview = await asyncio.to_thread(sitting.driver.preview, sitting.known)
            except EXPECTED_TROUBLE as error:
                sitting.preview = Preview("", refused=str(error))
            self._reload()

    @on(SaveAsked)
    def _save_asked(self, message: SaveAsked) -> None:
        self._save(message)

    @work(group="turn")
    async def _save(self, message: SaveAsked) -> None:
        async with self._turn:
            sitting = self.sitting
            sitting.note = ""
            try:
                saved = await asyncio.to_thread(sitting.driver.save, sitting.known, message.destination, message.force)
            except FileExistsError:
                self.push_screen(OverwriteScreen(sitting, message.destination))
            except EXPECTED_TROUBLE as error:
                sitting.note = f"nothing was written: {error}"
                self._reload()
            else:
                sitting.saved = replace(saved, by_hand=sitting.preview.by_hand if sitting.preview else ())
                self._show_saved()

    def _show_saved(self) -> None:
        while len(self.screen_stack) > 2:
            self.pop_screen()
        self.switch_screen(SavedScreen(self.sitting))

    # --- keys of every screen --------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Overlays do not stack on themselves, and before the session is open there is nothing to look at."""
        if action == "leave_by_letter":
            return not isinstance(self.screen, SaveScreen)  # there, letters are typed
        if action in ("why_not", "help", "gauges"):
            opened = {"why_not": WhyNot, "help": HelpView, "gauges": GaugesView}[action]
            if isinstance(self.screen, (opened, SaveScreen)):
                return False
            return action != "why_not" or self.sitting.state is not None
        return True

    def _handle_exception(self, error: Exception) -> None:
        self.fault = error.error if isinstance(error, WorkerFailed) and isinstance(error.error, Exception) else error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """End. Textual would print the stack with every variable over the user's terminal first."""
        self._close_messages_no_wait()

    def action_why_not(self) -> None:
        """Causes that were ruled out and remedies that are not proposed."""
        self.push_screen(WhyNot(self.sitting))

    def action_gauges(self) -> None:
        """All gauges."""
        self.push_screen(GaugesView(self.sitting))

    def action_help(self) -> None:
        """Keys of the present screen."""
        if isinstance(self.screen, Frame):
            self.push_screen(HelpView(self.sitting, self.screen))

    def action_leave_by_letter(self) -> None:
        """Quit, where letters are keys."""
        self.action_leave()

    def action_leave(self) -> None:
        """Quit."""
        self.exit(0, return_code=0)
