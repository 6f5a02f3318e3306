"""Help: the keys of the screen underneath, made from its bindings, and what the signs mean."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from advisor.language import Sayings, mark, say
from advisor.memory.cells import OWNERS, TITLES
from advisor.tui.frame import BACK, Frame, Reading
from advisor.tui.keys import Hint, hints
from advisor.tui.page import Page
from advisor.tui.proof import LEGEND
from advisor.tui.sitting import Sitting
from advisor.tui.ui_text import BLANK, Row, flow, heading, labelled, paragraph
from advisor.words import BASIS_TITLES, Basis

_BASES: Sayings[Basis] = Sayings(
    {
        "measured": "the number was printed in this log or read on this GPU",
        "computed": "a formula, and all its inputs are known",
        "estimated": "a formula, and an input was assumed; the arithmetic (a) names it",
        "documented": "a documented case did this",
    }
)
_LABEL = 16
"""Columns of keys, and of the words that are explained."""


def help_rows(title: str, own: list[Hint], moving: list[Hint], everywhere: list[Hint], width: int) -> list[Row]:
    """Keys, then signs."""
    out = paragraph(title, width, tone="strong")
    for head, group in (
        (say("Keys of this screen"), own),
        (say("Moving"), moving),
        (say("Keys everywhere"), everywhere),
    ):
        if group:
            out += [BLANK, heading(head)]
            for hint in group:
                name = f" [{hint.name}]" if hint.name else ""
                out += labelled(f"  {hint.keys}", f"{hint.explained}{name}", width, _LABEL)
    out += [BLANK, heading(say("How a number is known"))]
    for basis in _BASES:
        out += labelled(f"  {BASIS_TITLES[basis]}", _BASES[basis], width, _LABEL)
    letters = dict.fromkeys(
        f"{row.letter} {TITLES[owner]}" for owner, row in OWNERS.items() if not owner.startswith("offloaded")
    )
    out += [BLANK, heading(say("Letters of the memory bars")), *flow(letters, width, 2)]
    out += [*flow([say("· free"), say("| the limit")], width, 2)]
    return [*out, BLANK, heading(say("Letters beside log lines")), *flow(say(LEGEND).split("  "), width, 2)]


class HelpView(Reading):
    """Help for the screen it was asked on."""

    OPENED_BY = "help"
    NEEDS_STATE = False
    TITLE_WORDS = mark("Help")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "back", "back", show=False),
        Binding("question_mark", "back", "back", show=False),
        BACK,
    ]

    def __init__(self, sitting: Sitting, about: Frame) -> None:
        super().__init__(sitting)
        self._about = about

    def page_rows(self, width: int) -> list[Row]:
        """Keys and signs."""
        own, keymap = self._about.own_hints(), self.sitting.keymap
        moving, everywhere = hints(Page.BINDINGS, keymap), hints(self.app.BINDINGS, keymap)
        return help_rows(say(self._about.TITLE_WORDS), own, moving, everywhere, width)
