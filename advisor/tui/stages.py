"""Moves between the stages of a session, and carries out what the user decides on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual import work

from advisor.language import say
from advisor.tui.breadcrumb import STAGES, Stage
from advisor.tui.driver import Preview, expected_trouble
from advisor.tui.opening import OpeningApp
from advisor.tui.page import Page
from advisor.tui.screen import SCREENS, StageScreen

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.given import GivenName
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

    def look_at_machine(self) -> None:
        """The machine, although nothing was given."""
        self.switch_screen(SCREENS["machine"](self.ui))

    def go_on(self) -> None:
        """The next stage."""
        self._in_turn(self._forward)

    def go_back(self) -> None:
        """The stage before."""
        self._in_turn(self._backward)

    def action_stage(self, stage: Stage) -> None:
        """To a stage, from wherever we are."""
        if stage != "questions" or self.ui.known.diagnosis.path:
            self._in_turn(lambda: self._show(stage))

    def action_neighbour(self, by: int) -> None:
        """To the stage before or after this one that has something to show."""
        known = [stage for stage in STAGES if stage != "questions" or self.ui.known.diagnosis.path]
        at = known.index(self.ui.stage) + by
        if 0 <= at < len(known):
            self.action_stage(known[at])

    def action_step(self, step_id: str) -> None:
        """To a step of the plan, from wherever we are."""
        self.ui.cursors["plan"] = step_id
        if isinstance(self.screen, StageScreen) and self.screen.STAGE == "plan":
            self.screen.query_one("#main", Page).move_to(step_id)
        else:
            self.action_stage("plan")

    def action_question(self, number: int) -> None:
        """To a question of the path, counted from 0, from wherever we are."""
        self._in_turn(lambda: self._show("questions", number))

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

    def answer(self, question: str, choice: str | None, then_on: bool) -> None:
        """Answer a question (None: take the answer back), and go to the next one where `then_on`."""
        from advisor.tui.plan_rows import after_answer

        driver = self.ui.driver()
        self.ui.switched.clear()
        self.ui.earlier.clear()
        then = self._forward if then_on else None
        self._change(lambda state: driver.answer(state, question, choice), after_answer, then)

    def toggle(self, step_id: str) -> None:
        """Switch a step of the plan."""
        self._switch(step_id, partial(self.ui.driver().toggle, step_id=step_id))

    def give_number(self, step_id: str, text: str) -> None:
        """Switch a step of the plan on, at a number that the user wrote."""
        self._switch(step_id, partial(self.ui.driver().give_number, step_id=step_id, text=text))

    def _switch(self, step_id: str, change: Callable[[State], State]) -> None:
        from advisor.tui.plan_rows import after_toggle

        self._change(change, partial(after_toggle, asked=step_id), None, step_id)

    def say_otherwise(self, name: GivenName, text: str) -> None:
        """Say something of run or machine otherwise; "": it is not said any more."""
        from advisor.tui.given_view import after_said

        driver = self.ui.driver()
        self.ui.earlier.clear()
        self._change(lambda state: driver.say_otherwise(state, name, text), partial(after_said, name=name), None)

    def take_set(self, chosen: ChosenSet, proposed: ChosenSet) -> None:
        """Switch the plan to a set of changes; `proposed`: what would be on by itself."""
        from advisor.tui.sets_view import after_set

        driver = self.ui.driver()
        self._change(lambda state: driver.with_set(state, chosen), after_set, None, proposed=proposed)

    def name_set(self, name: str) -> None:
        """Keep what is on under a name."""
        self.ui.sets[name] = self.ui.driver().chosen_set(self.ui.known)
        self._keep()
        self._reload()

    def forget_set(self, name: str) -> None:
        """Keep a set no longer."""
        self.ui.sets.pop(name, None)
        self._keep()
        self._reload()

    def undo(self) -> None:
        """Take the last change of the plan back."""
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
            copies = {"switched": dict(ui.switched), "sets": dict(ui.sets), "cursors": dict(ui.cursors)}
            keep = partial(ui.keeper, ui.state, replace(ui, **copies))
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

    @work(group="turn", description="what is saved")
    async def save(self, destination: Path, force: bool) -> None:
        """Write the script; where the file is there already, ask first unless `force`."""
        from advisor.tui.save_view import OverwriteScreen

        async with self._turn:
            ui = self.ui
            ui.note = ""
            try:
                saved = await asyncio.to_thread(ui.driver().save, ui.known, destination, force)
            except FileExistsError:
                self.push_screen(OverwriteScreen(ui, destination))
            except expected_trouble() as error:
                ui.note = say("nothing was written: {why}", why=error)
                self._reload()
            else:
                ui.saved = replace(saved, by_hand=ui.preview.by_hand if ui.preview else ())
                self._replace_all("saved")
