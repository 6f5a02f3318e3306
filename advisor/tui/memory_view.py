"""Shows every phase's memory on the GPU and on the host, now and after the plan, one stacked bar a line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from advisor.language import mark, say
from advisor.memory.cells import Place
from advisor.plan.plan import Plan
from advisor.tui import ui_text as words
from advisor.tui.explain import ArithmeticView, arithmetic_rows
from advisor.tui.facts import doubts_of_sums
from advisor.tui.field_view import FIND, FindingScreen
from advisor.tui.memory_bars import doubt_rows, fit_words, legend, pair, phases_of, unexplained
from advisor.tui.page import POINTER, Page
from advisor.tui.screen import BACK, Overlay
from advisor.tui.ui_text import BLANK, Row, Toned, heading, line, paragraph, span
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, Phase

PLACES: tuple[Place, Place] = ("gpu", "host")


def memory_rows(plan: Plan, died_in: Phase, width: int) -> list[Row]:
    """GPU then host, each phase with its bars; the cursor stands on phases, whose key is "place phase"."""
    known = phases_of(plan)
    if not known:
        return unexplained(plan, width)
    out: list[Row] = [Row(line(fit_words(plan)))]
    for place in PLACES:
        of_place = [row for phase in known for row in _phase(plan, place, phase, died_in, width)]
        out += [BLANK, _title(plan, place, width), *of_place] if of_place else []
    return [*out, BLANK, *legend(plan, known, width)]


def _title(plan: Plan, place: Place, width: int) -> Row:
    ledger = plan.before or plan.after
    assert ledger is not None
    room = ledger.gpu_capacity if place == "gpu" else ledger.host_limit
    return heading(words.one_place(place, show_bytes(room) if room is not None else ""), say("| is the limit"), width)


def _phase(plan: Plan, place: Place, phase: Phase, died_in: Phase, width: int) -> list[Row]:
    bars = pair(plan, place, phase, width - POINTER)
    if not bars:
        return []
    key = f"{place} {phase}"
    died = span(f"   {say('the run died here')}", "bad") if phase == died_in else Toned("")
    title = Row(line(span(PHASE_TITLES[phase], "title"), died), key)
    return [title, *(Row(bar.line, key) for bar in bars)]


class MemoryView(FindingScreen, Overlay):
    """All phases; Enter opens the arithmetic of the marked one."""

    TITLE_WORDS = mark("Memory, phase by phase")
    NEEDS_RUN = True
    CLICKED_AGAIN = "arithmetic"
    OPENED_BY = Binding("m", "memory", "memory", tooltip="who holds how much in every phase, before and after")
    RANK = 40
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,a", "arithmetic", "arithmetic", key_display="enter", tooltip="the formula of every cell"),
        Binding("up,down", "nothing", "phase", key_display="↑↓", tooltip="choose a phase"),
        BACK,
        FIND,
    ]

    def panes(self) -> Iterable[Widget]:
        """The phases, from the one that died on; beside them the arithmetic of the marked one."""
        place = "host" if self.state.diagnosis.memory == "host" else "gpu"
        yield self.page(self.main_rows, "main", f"{place} {self.state.diagnosis.phase}")
        yield self.page(self.side_rows, "second")
        yield self.finder()

    def main_rows(self, width: int) -> list[Row]:
        doubts = doubt_rows(self.state.run, width)
        for doubt in doubts_of_sums(self.state) if phases_of(self.state.plan) else ():
            doubts += paragraph(doubt, width, tone="warn")
        return [*doubts, *memory_rows(self.state.plan, self.state.diagnosis.phase, width)]

    def side_rows(self, width: int) -> list[Row]:
        phase = self._marked
        return arithmetic_rows(self.state, phase, width) if phase is not None else []

    @property
    def _marked(self) -> Phase | None:
        """The phase the cursor stands on."""
        key = self.query_one("#main", Page).cursor
        name = key.partition(" ")[2] if key else ""
        return next((phase for phase in phases_of(self.state.plan) if phase == name), None)

    def on_page_moved(self, message: Page.Moved) -> None:
        if message.page.id == "main" and self.columns > 1:
            second = self.query_one("#second", Page)
            second.top = 0
            second.reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a ledger there is no arithmetic."""
        if action in ("arithmetic", "nothing", "find") and not phases_of(self.state.plan):
            return False
        return super().check_action(action, parameters)

    def action_arithmetic(self) -> None:
        phase = self._marked
        if phase is not None:
            self.app.push_screen(ArithmeticView(self.ui, phase))
