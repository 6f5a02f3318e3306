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
from advisor.tui.opening import OpeningApp
from advisor.tui.page import Page
from advisor.tui.screen import SCREENS, StageScreen
from advisor.tui.ui_state import (
    Answered,
    GoBack,
    GoOn,
    MachineAsked,
    NumberGiven,
    QuestionAsked,
    SaidOtherwise,
    SaveAsked,
    SetForgotten,
    SetNamed,
    SetTaken,
    StageAsked,
    Toggled,
    Undone,
)

if TYPE_CHECKING:
    from advisor.session import ChosenSet
    from advisor.state import State


class StagesApp(OpeningApp):
    """All changes of the state happen here, one after the other."""

    # --- moving ----------------------------------------------------------------------------------------------------

    def _show(self, stage: Stage, question: int = 0) -> None:
        """Replace whatever is shown by the screen of `stage`."""
        ui = self.ui
        ui.stage, ui.question = stage, question
        asks = stage == "machine" and ui.offers.files is not None and self._asks_for_files()
        self._replace_all("choose" if asks else stage)
        self._keep()
        if stage == "save":
            self._preview()

    def _replace_all(self, name: str) -> None:
        while len(self.screen_stack) > 2:
            self.pop_screen()
        self.switch_screen(SCREENS[name](self.ui))

    def _asks_for_files(self) -> bool:
        asked = self.ui.known.asked
        return asked.script is None and not asked.logs

    @on(MachineAsked)
    def _machine_asked(self) -> None:
        self.switch_screen(SCREENS["machine"](self.ui))

    @on(GoOn)
    def _go_on(self) -> None:
        self._in_turn(self._forward)

    @on(GoBack)
    def _go_back(self) -> None:
        self._in_turn(self._backward)

    @on(QuestionAsked)
    def _question_asked(self, message: QuestionAsked) -> None:
        self._in_turn(lambda: self._show("questions", message.number))

    @on(StageAsked)
    def _stage_asked(self, message: StageAsked) -> None:
        if message.stage != "questions" or self.ui.known.diagnosis.path:
            self._in_turn(lambda: self._show(message.stage))

    def action_stage(self, stage: Stage) -> None:
        """To a stage, from wherever we are."""
        self.post_message(StageAsked(stage))

    def action_step(self, step_id: str) -> None:
        """To a step of the plan, from wherever we are."""
        self.ui.cursors["plan"] = step_id
        if isinstance(self.screen, StageScreen) and self.screen.STAGE == "plan":
            self.screen.query_one("#main", Page).move_to(step_id)
        else:
            self.post_message(StageAsked("plan"))

    def action_question(self, number: int) -> None:
        """To a question of the path, from wherever we are."""
        self.post_message(QuestionAsked(number))

    def _in_turn(self, move: Callable[[], None]) -> None:
        """Move only after what was asked before is done, so that quick keys arrive where they would have."""

        async def moved() -> None:
            async with self._turn:
                self.ui.note = ""
                move()

        self.run_worker(moved(), group="turn")

    def _forward(self) -> None:
        ui = self.ui
        if ui.stage in ("crash", "questions"):
            self._ask_or_plan()
        elif ui.stage != "save":
            self._show(STAGES[STAGES.index(ui.stage) + 1])

    def _ask_or_plan(self) -> None:
        """To the next open question that decides something, else to the plan."""
        ui = self.ui
        if ui.stage == "questions" and ui.question_id:
            ui.asked[ui.question_id] = None
        following = ui.to_ask
        self._show("questions", ui.number_of(following[0])) if following else self._show("plan")

    def _backward(self) -> None:
        ui = self.ui
        if isinstance(self.screen, StageScreen) and self.screen.BACK_TO:
            self._show(self.screen.BACK_TO)
        elif ui.stage in ("questions", "plan"):
            self._ask_again_or_verdict()
        elif ui.stage != "machine":
            self._show(STAGES[STAGES.index(ui.stage) - 1])
        elif self._asks_for_files():
            self._show("machine")

    def _ask_again_or_verdict(self) -> None:
        """To the question that was asked last before this screen, else to the verdict."""
        ui = self.ui
        here = ui.question_id if ui.stage == "questions" else ""
        while ui.asked:
            last, _ = ui.asked.popitem()
            if last != here and ui.number_of(last) >= 0:
                return self._show("questions", ui.number_of(last))
        return self._show("crash")

    # --- what the user decides -------------------------------------------------------------------------------------

    @on(Answered)
    def _answered(self, message: Answered) -> None:
        from advisor.tui.plan_rows import after_answer

        driver, choice = self.ui.driver(), message.choice

        def answered(state: State) -> State:
            return driver.answer(state, message.question, choice)

        self.ui.switched.clear()
        self.ui.earlier.clear()
        self._change(answered, after_answer, self._forward if message.then_on else None)

    @on(Toggled)
    def _toggled(self, message: Toggled) -> None:
        from advisor.tui.plan_rows import after_toggle

        driver = self.ui.driver()
        step_id = message.step_id
        self._change(lambda state: driver.toggle(state, step_id), partial(after_toggle, asked=step_id), None, step_id)

    @on(NumberGiven)
    def _number_given(self, message: NumberGiven) -> None:
        from advisor.tui.plan_rows import after_toggle

        driver, step_id, text = self.ui.driver(), message.step_id, message.text
        told = partial(after_toggle, asked=step_id)
        self._change(lambda state: driver.give_number(state, step_id, text), told, None, step_id)

    @on(SaidOtherwise)
    def _said_otherwise(self, message: SaidOtherwise) -> None:
        from advisor.tui.given_view import after_said

        driver, name, text = self.ui.driver(), message.name, message.text
        self.ui.earlier.clear()
        self._change(lambda state: driver.say_otherwise(state, name, text), partial(after_said, name=name), None)

    @on(SetTaken)
    def _set_taken(self, message: SetTaken) -> None:
        from advisor.tui.sets_view import after_set

        driver, chosen = self.ui.driver(), message.chosen
        self._change(lambda state: driver.with_set(state, chosen), after_set, None, proposed=message.proposed)

    @on(SetNamed)
    def _set_named(self, message: SetNamed) -> None:
        ui = self.ui
        ui.sets[message.name] = ui.driver().chosen_set(ui.known)
        self._keep()
        self._reload()

    @on(SetForgotten)
    def _set_forgotten(self, message: SetForgotten) -> None:
        self.ui.sets.pop(message.name, None)
        self._keep()
        self._reload()

    @on(Undone)
    def _undone(self) -> None:
        self._in_turn(self._take_back)

    def _take_back(self) -> None:
        ui = self.ui
        if ui.earlier:
            ui.state, ui.switched = ui.earlier.pop()
            ui.preview, ui.note = None, say("taken back")
            self._keep()
            self._reload()

    @work(group="turn", description="a change")
    async def _change(
        self,
        step: Callable[[State], State],
        told: Callable[[State, State], str],
        then: Callable[[], None] | None,
        switched: str = "",
        *,
        proposed: ChosenSet | None = None,
    ) -> None:
        """One change of the state: the driver works in a thread, the screens follow.

        `switched`: the step that the user switched; `proposed`: what would be on by itself, where all were switched.
        """
        async with self._turn:
            ui = self.ui
            before = ui.known
            try:
                ui.state = await asyncio.to_thread(step, before)
            except expected_trouble() as error:
                ui.note = say("that could not be done: {why}", why=error)
                then = None
            else:
                ui.note = told(before, ui.known)
                ui.preview = None
                ui.question = max(0, min(ui.question, len(ui.known.diagnosis.path) - 1))
                if switched or proposed is not None:
                    ui.earlier.append((before, dict(ui.switched)))
                self._remember(switched, proposed)
            if then is not None:
                then()
            else:
                self._reload()

    def _remember(self, switched: str, proposed: ChosenSet | None) -> None:
        """What the user switched, in the order in which it can be repeated: what goes on puts others off."""
        ui, steps = self.ui, self.ui.known.plan.steps
        if proposed is not None:
            moved = [step for step in steps if step.selected != (step.id in proposed.steps)]
            ui.switched = {step.id: step.selected for step in sorted(moved, key=lambda one: one.selected)}
        for step in steps:
            if step.id == switched:
                ui.switched.pop(switched, None)
                ui.switched[switched] = step.selected
        self._keep()

    def _keep(self) -> None:
        """Keep the session on disk, in a thread: the disk may be slow."""
        ui = self.ui
        if ui.keeper is not None and ui.state is not None:
            self._moves += 1
            keep = partial(ui.keeper, ui.state, dict(ui.switched), ui.stage, ui.question, dict(ui.sets))
            self._kept(self._moves, keep)

    # described, since Textual would print all arguments: 5 MB of a State, 60 ms at every key
    @work(thread=True, group="keep", description="what is kept")
    def _kept(self, move: int, keep: Callable[[], bool]) -> None:
        with self._keeping:  # keys come faster than a slow disk writes: one at a time, and never an older one last
            if move < self._last_kept:
                return
            self._last_kept = move
            try:
                self.kept = keep()
            except OSError:
                self.kept = False
                self.ui.keeper = None  # nowhere to keep it: the session goes on without

    @work(group="turn")
    async def _preview(self) -> None:
        async with self._turn:
            ui = self.ui
            if ui.preview is not None:
                return
            try:
                ui.preview = await asyncio.to_thread(ui.driver().preview, ui.known)
            except expected_trouble() as error:
                ui.preview = Preview("", refused=str(error))
            self._reload()

    @on(SaveAsked)
    def _save_asked(self, message: SaveAsked) -> None:
        self._save(message)

    @work(group="turn", description="what is saved")
    async def _save(self, message: SaveAsked) -> None:
        from advisor.tui.save_view import OverwriteScreen

        async with self._turn:
            ui = self.ui
            ui.note = ""
            try:
                save = ui.driver().save
                saved = await asyncio.to_thread(save, ui.known, message.destination, message.force)
            except FileExistsError:
                self.push_screen(OverwriteScreen(ui, message.destination))
            except expected_trouble() as error:
                ui.note = say("nothing was written: {why}", why=error)
                self._reload()
            else:
                ui.saved = replace(saved, by_hand=ui.preview.by_hand if ui.preview else ())
                self._replace_all("saved")
