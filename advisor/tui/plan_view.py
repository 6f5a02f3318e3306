"""Shows the plan: steps that are switched on and off, numbers that are written by hand, bars that follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget

from advisor.language import mark, say
from advisor.memory.cells import Place
from advisor.plan.patch import is_written
from advisor.plan.plan import Plan, PlanStep
from advisor.report.phrases import change_line
from advisor.tui.driver import expected_trouble
from advisor.tui.explain import ArithmeticView, CaseView, Explanation, case_of_step, step_rows
from advisor.tui.field_view import FIND, FindingScreen
from advisor.tui.memory_bars import first_phase, fullest_after, phases_of
from advisor.tui.page import Lines, Page
from advisor.tui.plan_rows import BOX, Group, NumberField, bar_rows, groups_of, off_because, plan_rows, takes_number
from advisor.tui.screen import BaseScreen, StageScreen
from advisor.tui.sets_view import SetsView
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import Row
from advisor.words import Phase

if TYPE_CHECKING:
    from advisor.plan.own_number import Fitting
    from advisor.state import State


class PlanScreen(FindingScreen, StageScreen):
    """Plan: space switches a step, the bars follow."""

    STAGE = "plan"
    TITLE_WORDS = mark("The plan")
    STACKED = True
    REFUSED: ClassVar[Mapping[str, str]] = {"go_on": mark("no change is on, so there is nothing to write")}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "switch", "toggle", tooltip="switch the marked step on or off"),
        Binding("enter", "go_on", "diff", tooltip="see the exact change to the script"),
        Binding("equals_sign", "number", "number", tooltip="write another number for the marked step; the bars follow"),
        Binding("u", "undo", "undo", tooltip="take the last switch or number back"),
        Binding("left,h", "phase(-1)", "phase", key_display="← →", tooltip="bars of another phase"),
        Binding("right,l", "phase(1)", show=False),
        Binding("e", "explain", "explain", tooltip="the marked step in full: why, cost, sources"),
        Binding("s", "sets", "sets", tooltip="keep what is on under a name, and compare it with another set"),
        Binding("a", "arithmetic", "arithmetic", tooltip="how each number of the bars was computed"),
        Binding("c", "copy", "copy", show=False, tooltip="copy the marked change"),
        Binding("d", "case", "case", tooltip="the documented case behind the marked step"),
        FIND,
        Binding("f", "fullest", "fullest", show=False, tooltip="bars of the phase that is fullest after; again: back"),
        Binding("escape", "back", "back", tooltip="the last question"),
    ]

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._phase: Phase | None = None
        self._field: NumberField | None = None
        self._groups: dict[str, Group] = {}
        self._if_on: tuple[State, dict[str, Plan]] | None = None

    @property
    def state(self) -> State:
        """The session as it stands, with the number that is being written."""
        return self._field.draft if self._field is not None and self._field.draft is not None else self.ui.known

    @property
    def typing(self) -> bool:
        return self._field is not None or super().typing

    @property
    def phase(self) -> Phase | None:
        """The phase the bars show: the chosen one, else the one that died or is fullest.

        While a number is written, the fullest of those that it moves: there it decides.
        """
        plan = self.state.plan
        chosen = self._phase if self._phase in phases_of(plan) else first_phase(plan, self.state.diagnosis.phase)
        fullest = self._fullest_moved(chosen) if self._field is not None else None
        return fullest[0] if fullest else chosen

    def _fullest_moved(self, shown: Phase | None) -> tuple[Phase, Place] | None:
        """The fullest of the phases that the number being written moves."""
        step = self._field.step if self._field is not None else None
        return fullest_after(self.state.plan, shown, {*step.saves, *step.host_saves} if step is not None else None)

    def panes(self) -> Iterable[Widget]:
        plan = self.state.plan
        first = next((one.id for one in plan.steps if is_written(one) and not plan.selected()), None)
        yield self.page(self.main_rows, "main", self.ui.cursors.get("plan") or first)
        yield BaseScreen.page(self, self.third_rows, "third")
        yield BaseScreen.page(self, self.bar_rows, "second")
        yield self.finder()

    def main_rows(self, width: int) -> list[Row]:
        step = self.chosen
        because = off_because(step, self.state.plan, self._by_user(step), lambda: self._plan_with(step)) if step else ""
        marked = step.id if step else None
        brief = self.columns == 3  # the step stands beside it in full
        groups = groups_of(self.ui.known.plan)
        if groups.keys() != self._groups.keys():  # what is switched stays where it stands
            self._groups = groups
        return plan_rows(self.state, width, marked, brief=brief, field=self._field, because=because,
                         groups=self._groups)  # fmt: skip

    def _by_user(self, step: PlanStep) -> bool:
        return self.ui.switched.get(step.id) is False

    def _plan_with(self, step: PlanStep) -> Plan:
        """The plan with a step on; asked once for each."""
        state = self.state
        if self._if_on is None or self._if_on[0] is not state:
            self._if_on = state, {}
        known = self._if_on[1]
        if step.id not in known:
            known[step.id] = self.ui.driver().toggle(state, step.id).plan
        return known[step.id]

    def bar_rows(self, width: int) -> list[Row]:
        decides = self._decides if self._field is not None else None
        return bar_rows(self.state, self.phase, width, self.app.size.height, decides)

    @property
    def _decides(self) -> Place | None:
        """The memory that is fullest with the number that is written."""
        found = self._fullest_moved(self.phase)
        return found[1] if found is not None else None

    def third_rows(self, width: int) -> list[Row]:
        step = self.chosen
        return step_rows(self.state, step, width) if step else []

    @property
    def chosen(self) -> PlanStep | None:
        """The step the cursor stands on."""
        pages = self.query("#main")
        key = pages.first(Page).wanted if pages else None
        steps = self.state.plan.steps
        return next((step for step in steps if step.id == key), steps[0] if steps else None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing to toggle or explain in an empty plan, nothing to write with none on, no sums without a ledger."""
        if self._field is not None:
            return action in ("go_on", "phase", "back")
        if self.typing:
            return action == "back"
        if action in ("go_on", "switch", "explain", "copy", "sets", "find"):
            return bool(self.state.plan.steps)
        if action == "number":
            return self.chosen is not None and takes_number(self.chosen)
        if action == "undo":
            return bool(self.ui.earlier)
        if action == "case":
            return case_of_step(self.state, self.chosen.documented if self.chosen else "") is not None
        if action in ("arithmetic", "phase", "fullest"):
            return self.phase is not None
        return True

    def on_page_moved(self, message: Page.Moved) -> None:
        """The explanation follows the cursor; a number that is being written is left as it was."""
        if self._field is not None and message.key != self._field.step.id:
            self._close_field()
        if message.page.id == "main":
            self.ui.cursors["plan"] = message.key
            message.page.reload()
            self.query_one("#third", Page).reload()
            message.page.show_cursor()  # the step before told less than it does now
            self.query_one("#keys", Lines).reload()  # not every step has a number

    def words(self) -> dict[str, str]:
        if self._field is None:
            switch = {} if self.state.plan.selected() else {"go_on": say("switch it on")}
            return {**switch, **super().words()}
        return {"go_on": say("keep it"), "phase(-1)": say("other number"), "back": say("leave it as it was")}

    # --- a number of one's own ---------------------------------------------------------------------------------------

    def action_number(self) -> None:
        step = self.chosen
        if step is None or not takes_number(step):
            return
        self._field, self.ui.note = NumberField(step, step.number), ""
        self.set_focus(None)  # digits and arrows are the field's
        driver, state = self.ui.driver(), self.ui.known

        def look() -> None:
            self.call_later(self._numbers_found, step.id, driver.numbers_of(state, step.id))

        self.run_worker(look, thread=True, exclusive=True, group="numbers")
        self._draft()

    def _draft(self) -> None:
        """Ask the session what the number leads to."""
        field = self._field
        if field is None:
            return
        field.asked += 1
        driver, state, asked, text = self.ui.driver(), self.ui.known, field.asked, field.text

        def ask() -> None:
            try:
                draft = driver.give_number(state, field.step.id, text)
            except expected_trouble() as error:
                self.call_later(self._drafted, asked, None, str(error))
            else:
                self.call_later(self._drafted, asked, draft, "")

        self.run_worker(ask, thread=True, exclusive=True, group="draft")
        self.reload()

    def _numbers_found(self, step_id: str, fitting: Fitting) -> None:
        if self._field is not None and self._field.step.id == step_id:
            self._field.fitting = fitting
            self.reload()

    def _drafted(self, asked: int, draft: State | None, refused: str) -> None:
        field = self._field
        if field is not None and field.asked == asked:
            field.draft, field.refused = draft, refused
            self.reload()

    def on_key(self, event: events.Key) -> None:
        if self._field is None:
            return
        if event.key in ("up", "down"):
            self.action_phase(1 if event.key == "up" else -1)
            return
        if event.key == "backspace":
            self._field.rubbed()
        elif event.character is None or not self._field.typed(event.character):
            return
        event.stop()
        self._draft()

    def on_paste(self, event: events.Paste) -> None:
        if self._field is not None and self._field.typed(event.text):
            event.stop()
            self._draft()

    def action_go_on(self) -> None:
        field = self._field
        if field is None and not self.state.plan.selected():
            self.action_switch()
        elif field is None:
            super().action_go_on()
        elif not field.refused:
            if not (field.untouched and field.step.selected):
                self.advisor.give_number(field.step.id, field.text)
            self._close_field()

    def action_back(self) -> None:
        if self._field is None:
            super().action_back()
        else:
            self._close_field()

    def _close_field(self) -> None:
        self._field = None
        self.query_one("#main", Page).focus()
        self.reload()

    async def on_page_clicked(self, message: Page.Clicked) -> None:
        if message.page.id != "main" or self.typing:
            return
        if message.line == 0 and message.column < len(BOX):
            self.action_switch()
        elif message.again and message.line == 1 and self.check_action("number", ()):
            self.action_number()

    def action_undo(self) -> None:
        self.advisor.undo()

    def action_switch(self) -> None:
        if self.chosen is not None:
            self.advisor.toggle(self.chosen.id)

    def action_sets(self) -> None:
        self.app.push_screen(SetsView(self.ui))

    def action_explain(self) -> None:
        if self.chosen is not None:
            self.app.push_screen(Explanation(self.ui, self.chosen.id))

    def action_case(self) -> None:
        """The documented case that used this step's value, else the one most like this run."""
        found = case_of_step(self.state, self.chosen.documented if self.chosen else "")
        if found is not None:
            self.app.push_screen(CaseView(self.ui, found.id))

    def action_copy(self) -> None:
        if self.chosen is not None:
            changes = "".join(f"{change_line(change)}\n" for change in self.chosen.changes)
            self.advisor.copy(changes or f"{self.chosen.title}\n", mark("the change"))

    def action_arithmetic(self) -> None:
        if self.phase is not None:
            self.app.push_screen(ArithmeticView(self.ui, self.phase))

    def action_phase(self, by: int) -> None:
        """Bars of the neighbouring phase; while a number is written, the next one on this side."""
        if self._field is not None:
            if self._field.moved(by):
                self._draft()
            return
        known = phases_of(self.state.plan)
        if self.phase in known:
            self._phase = known[(known.index(self.phase) + by) % len(known)]
            self.reload()

    def action_fullest(self) -> None:
        died = first_phase(self.state.plan, self.state.diagnosis.phase)
        found = fullest_after(self.state.plan, self.phase)
        following = found[0] if found and found[0] != self.phase else died
        if following == self.phase:
            self.ui.note = say("this phase is the fullest already")
        self._phase = following
        self.reload()
