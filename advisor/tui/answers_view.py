"""Lists every question of the path with its answer and who gave it; Enter goes to one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from advisor.hostile import cells
from advisor.language import mark, say
from advisor.tui.page import Page
from advisor.tui.question import answer_title, answered_by
from advisor.tui.screen import READABLE, Overlay
from advisor.tui.ui_text import BLANK, Row, cut, labelled, line, span, spread

if TYPE_CHECKING:
    from advisor.state import State


def answer_rows(state: State, width: int) -> list[Row]:
    """Two lines a question: what is asked; the answer, and what answered it."""
    out: list[Row] = []
    for number, step in enumerate(state.diagnosis.path):
        by = answered_by(state, step, brief=True)
        answer = cut(answer_title(step), width - cells(by) - 7)
        given = spread(line("    ", span(answer, "strong")), line(span(by, "dim")), width - 2)
        out += [Row(line(cut(step.asks, width - 2)), str(number)), Row(given)]
    return out


class AnswersView(Overlay):
    """All answers; the plan rests on them."""

    OPENED_BY = Binding("r", "answers", "answers", show=False, tooltip="every question, its answer and who gave it")
    RANK = 15
    TITLE_WORDS = mark("The answers")
    NEEDS_RUN = True
    WIDEST = READABLE
    CLICKED_AGAIN = "change"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "change", "change", tooltip="answer it otherwise")]

    def main_rows(self, width: int) -> list[Row]:
        """The path, from the first question to the cause."""
        cause = labelled(say("Likely cause"), self.state.diagnosis.title, width)
        return [*answer_rows(self.state, width), BLANK, *cause]

    def action_change(self) -> None:
        """Go to the marked question."""
        chosen = self.query_one("#main", Page).cursor
        self.dismiss()
        if chosen is not None:
            self.advisor.action_question(int(chosen))
