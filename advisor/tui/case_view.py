"""A documented case in full: what was reported, what was changed, and what of it the mechanism supports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from advisor.diagnosis.diagnosis import CaseMatch
from advisor.language import mark, say
from advisor.report.explain_report import UnknownIdError, explain_report
from advisor.tui import ui_text as words
from advisor.tui.frame import BACK, Reading
from advisor.tui.sitting import Sitting
from advisor.tui.ui_text import BLANK, Row, line, paragraph, rows, span

if TYPE_CHECKING:
    from advisor.session import State


def case_of_step(state: State, documented: str) -> CaseMatch | None:
    """The matched case that a step's documented value comes from ("logic-rl-8: 4"), else the best one."""
    name = re.split(r"[\s:(]", documented, maxsplit=1)[0]
    cases = state.diagnosis.cases
    return next((case for case in cases if case.id == name), next(iter(cases), None))


def case_rows(state: State, case_id: str, width: int) -> list[Row]:
    """How far this run is like it, then the case as `explain` tells it."""
    out: list[Row] = []
    for match in state.diagnosis.cases:
        if match.id == case_id:
            out += [*paragraph(words.alike(match.agree, match.of, match.differs), width, tone="mark"), BLANK]
    try:
        text = explain_report(state.knowledge, case_id)
    except UnknownIdError:
        return [*out, *paragraph(say(words.NO_SUCH_CASE), width)]
    for told in text.splitlines():
        indent = len(told) - len(told.lstrip())
        out += paragraph(told.strip(), width, indent) if told.strip() else rows(line(span("")))
    return out


class CaseView(Reading):
    """One documented case."""

    TITLE_WORDS = mark("A documented case")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "back", "back", show=False),
        Binding("d", "back", "back", show=False),
        BACK,
    ]

    def __init__(self, sitting: Sitting, case_id: str) -> None:
        super().__init__(sitting)
        self._case_id = case_id

    def page_rows(self, width: int) -> list[Row]:
        """The case."""
        return case_rows(self.state, self._case_id, width)
