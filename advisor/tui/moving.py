"""Moves between the stages of a session, and carries out what the user decides on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual import on, work

from advisor.language import say
from advisor.tui.breadcrumb import STAGES, Stage
from advisor.tui.driver import Preview, expected_trouble
from advisor.tui.frame import SCREENS, StageScreen
from advisor.tui.opening import Opening
from advisor.tui.sitting import Answered, GoBack, GoOn, MachineAsked, QuestionAsked, SaveAsked, Toggled

if TYPE_CHECKING:
    from advisor.session import State


class Moving(Opening):
    """All changes of the state happen here, one after the other."""

    # --- moving ----------------------------------------------------------------------------------------------------

    def _show(self, stage: Stage, question: int = 0) -> None:
        """Replace whatever is shown by the screen of `stage`."""
        sitting = self.sitting
        sitting.stage, sitting.question = stage, question
        asks = stage == "machine" and sitting.offers.files is not None and self._asks_for_files()
        self._replace_all("choose" if asks else stage)
        self._keep()
        if stage == "save":
            self._preview()

    def _replace_all(self, name: str) -> None:
        while len(self.screen_stack) > 2:
            self.pop_screen()
        self.switch_screen(SCREENS[name](self.sitting))

    def _asks_for_files(self) -> bool:
        asked = self.sitting.known.asked
        return asked.script is None and not asked.logs

    @on(MachineAsked)
    def _machine_asked(self) -> None:
        self.switch_screen(SCREENS["machine"](self.sitting))

    @on(GoOn)
    def _go_on(self) -> None:
        self._in_turn(self._forward)

    @on(GoBack)
    def _go_back(self) -> None:
        self._in_turn(self._backward)

    @on(QuestionAsked)
    def _question_asked(self, message: QuestionAsked) -> None:
        self._in_turn(lambda: self._show("questions", message.number))

    def action_question(self, number: int) -> None:
        """To a question of the path, from wherever we are."""
        self.post_message(QuestionAsked(number))

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
        over = self.screen.onward() if isinstance(self.screen, StageScreen) else None
        if over is not None:
            self.push_screen(over)
        elif sitting.stage == "questions" and sitting.question + 1 < asked:
            self._show("questions", sitting.question + 1)
        elif sitting.stage == "crash" and not asked:
            self._show("plan")
        elif sitting.stage != "save":
            self._show(STAGES[STAGES.index(sitting.stage) + 1])

    def _backward(self) -> None:
        sitting = self.sitting
        asked = len(sitting.known.diagnosis.path)
        if isinstance(self.screen, StageScreen) and self.screen.BACK_TO:
            self._show(self.screen.BACK_TO)
        elif sitting.stage == "questions" and not asked:
            self._show("crash")
        elif sitting.stage == "questions" and sitting.question > 0:
            self._show("questions", sitting.question - 1)
        elif sitting.stage == "plan":
            self._show("questions", asked - 1) if asked else self._show("crash")
        elif sitting.stage != "machine":
            self._show(STAGES[STAGES.index(sitting.stage) - 1])
        elif self._asks_for_files():
            self._show("machine")

    # --- what the user decides -------------------------------------------------------------------------------------

    @on(Answered)
    def _answered(self, message: Answered) -> None:
        from advisor.tui.plan_view import after_answer

        driver, choice = self.sitting.driver(), message.choice

        def answered(state: State) -> State:
            return driver.answer(state, message.question, choice)

        self.sitting.switched.clear()
        self._change(answered, after_answer, self._forward if message.then_on else None)

    @on(Toggled)
    def _toggled(self, message: Toggled) -> None:
        from advisor.tui.plan_view import after_toggle

        driver = self.sitting.driver()
        self._change(lambda state: driver.toggle(state, message.step_id), after_toggle, None, message.step_id)

    @work(group="turn")
    async def _change(
        self,
        step: Callable[[State], State],
        told: Callable[[State, State], str],
        then: Callable[[], None] | None,
        switched: str = "",
    ) -> None:
        """One change of the state: the driver works in a thread, the screens follow."""
        async with self._turn:
            sitting = self.sitting
            before = sitting.known
            try:
                sitting.state = await asyncio.to_thread(step, before)
            except expected_trouble() as error:
                sitting.note = say("that could not be done: {why}", why=error)
                then = None
            else:
                sitting.note = told(before, sitting.known)
                sitting.preview = None
                self._remember(switched)
            if then is not None:
                then()
            else:
                self._reload()

    def _remember(self, switched: str) -> None:
        sitting = self.sitting
        for step in sitting.known.plan.steps:
            if step.id == switched:
                sitting.switched.pop(switched, None)
                sitting.switched[switched] = step.selected
        self._keep()

    def _keep(self) -> None:
        """Keep the sitting on disk, in a thread: the disk may be slow."""
        sitting = self.sitting
        if sitting.keeper is not None and sitting.state is not None:
            self._moves += 1
            keep = partial(sitting.keeper, sitting.state, dict(sitting.switched), sitting.stage, sitting.question)
            self._kept(self._moves, keep)

    @work(thread=True, group="keep")
    def _kept(self, move: int, keep: Callable[[], None]) -> None:
        with self._keeping:  # keys come faster than a slow disk writes: one at a time, and never an older one last
            if move < self._last_kept:
                return
            self._last_kept = move
            try:
                keep()
            except OSError:
                self.sitting.keeper = None  # nowhere to keep it: the sitting goes on without

    @work(group="turn")
    async def _preview(self) -> None:
        async with self._turn:
            sitting = self.sitting
            if sitting.preview is not None:
                return
            try:
                sitting.preview = await asyncio.to_thread(sitting.driver().preview, sitting.known)
            except expected_trouble() as error:
                sitting.preview = Preview("", refused=str(error))
            self._reload()

    @on(SaveAsked)
    def _save_asked(self, message: SaveAsked) -> None:
        self._save(message)

    @work(group="turn")
    async def _save(self, message: SaveAsked) -> None:
        from advisor.tui.save_view import OverwriteScreen

        async with self._turn:
            sitting = self.sitting
            sitting.note = ""
            try:
                save = sitting.driver().save
                saved = await asyncio.to_thread(save, sitting.known, message.destination, message.force)
            except FileExistsError:
                self.push_screen(OverwriteScreen(sitting, message.destination))
            except expected_trouble() as error:
                sitting.note = say("nothing was written: {why}", why=error)
                self._reload()
            else:
                sitting.saved = replace(saved, by_hand=sitting.preview.by_hand if sitting.preview else ())
                self._replace_all("saved")
