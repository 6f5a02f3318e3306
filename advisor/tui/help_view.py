"""Shows the keys of the screen underneath, made from its bindings, and what the signs mean."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding
from textual.widget import Widget

from advisor.language import Sayings, mark, say
from advisor.memory.cells import OWNERS, TITLES
from advisor.memory.fit import ROOM_WORDS, Room
from advisor.tui.keys import Hint, hints
from advisor.tui.page import Page
from advisor.tui.proof import LEGEND
from advisor.tui.screen import Overlay, keys_of_every_screen
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
_ROOMS: Sayings[Room] = Sayings(
    {
        "fits": "it leaves the margin free",
        "unsure": "expected to fit; with longer rows, or if what nothing explains grows, it may not",
        "tight": "below the limit, but it eats into the margin",
        "over": "more than there is",
        "passed": "more than there is by the count, but the run got past it",
        "engine": "the rollout engine has no room for its cache",
    }
)
_LABEL = 16
"""Columns of keys, and of the words that are explained."""


def keys_rows(head: str, group: list[Hint], width: int) -> list[Row]:
    """Keys under a heading; nothing where there are none."""
    out = [BLANK, heading(head)] if group else []
    for hint in group:
        out += labelled(f"  {hint.keys}", hint.explained, width, _LABEL)
    return out


def signs_rows(width: int) -> list[Row]:
    """What words and letters mean."""
    out = [BLANK, heading(say("How a number is known"))]
    for basis in _BASES:
        out += labelled(f"  {BASIS_TITLES[basis]}", _BASES[basis], width, _LABEL)
    letters = dict.fromkeys(
        f"{row.letter} {TITLES[owner]}" for owner, row in OWNERS.items() if not owner.startswith("offloaded")
    )
    out += [BLANK, heading(say("Letters of the memory bars")), *flow(letters, width, 2)]
    out += [*flow([say("· free"), say("| the limit")], width, 2)]
    out += [BLANK, heading(say("Words behind the memory bars"))]
    for room in _ROOMS:
        out += labelled(f"  {ROOM_WORDS[room]}", _ROOMS[room], width, _LABEL)
    return [*out, BLANK, heading(say("Letters beside log lines")), *flow(say(LEGEND).split("  "), width, 2)]


class HelpView(Overlay):
    """Help for the screen it was asked on."""

    OPENED_BY = Binding("question_mark", "help", "help", tooltip="the keys of this screen")
    RANK = 80
    NEEDS_STATE = False
    TITLE_WORDS = mark("Help")
    ENTER_CLOSES = True

    def panes(self) -> Iterable[Widget]:
        """The keys of the screen; beside them, where there is room, those of every screen and the signs."""
        yield self.page(self.main_rows, "main")
        yield self.page(self.side_rows, "second")

    def main_rows(self, width: int) -> list[Row]:
        about, keymap = self.underneath, self.ui.keymap
        out = paragraph(say(about.TITLE_WORDS), width, tone="strong")
        out += keys_rows(say("Keys of this screen"), about.own_hints(), width)
        out += keys_rows(say("Moving"), hints(Page.BINDINGS, keymap), width)
        return out if self.columns > 1 else [*out, *self.side_rows(width)]

    def side_rows(self, width: int) -> list[Row]:
        everywhere = hints(keys_of_every_screen(), self.ui.keymap)
        return [*keys_rows(say("Keys everywhere"), everywhere, width), *signs_rows(width)]
