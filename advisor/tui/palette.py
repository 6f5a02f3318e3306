"""Finds every command of the screen and of the app by the words it is described in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from advisor.config import THEMES
from advisor.language import Sayings, clauses, mark, say
from advisor.tui.breadcrumb import STAGE_TITLES, STAGES
from advisor.tui.field_view import text_field
from advisor.tui.keys import Hint
from advisor.tui.page import Page
from advisor.tui.question import answer_title
from advisor.tui.screen import BaseScreen, Overlay
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import Row, line, pad, paragraph, span, spread

if TYPE_CHECKING:
    from typing_extensions import Self

NOT_LISTED = ("nothing", "app.look('palette')", "app.suspend_process")


_LABEL = 25
"""Columns of the words of a command."""

_COLOURS = Sayings({"dark": "dark", "light": "light", "contrast": "contrast", "terminal": "terminal"})
"""Our own themes; the others have names of their own."""


def commands_of(screen: BaseScreen) -> list[Hint]:
    """What can be done on `screen` now: its own keys, those of every screen, and the colours."""
    own = [hint for hint in screen.own_hints() if not hint.action.startswith("app.focus")]
    usable = [replace(hint, action=f"app.{hint.action}") for hint in screen.usable_everywhere()]
    colours = [
        _way(told, told, f"theme('{name}')", f"colours {name}")
        for name in THEMES
        for told in (say("colours: {name}", name=_COLOURS.get(name, name)),)
    ]
    listed = [hint for hint in (*own, *usable, *colours) if hint.action not in NOT_LISTED]
    return list({hint.action: hint for hint in reversed(listed)}.values())[::-1]


def stages_of(ui: UiState) -> list[Hint]:
    """One command a stage: to go there from wherever one is."""
    told = mark("go there")
    stages = STAGES if ui.state is not None else ()
    return [_way(STAGE_TITLES[one], say(told), f"stage('{one}')", f"{one} stage") for one in stages]


def questions_of(ui: UiState) -> list[Hint]:
    """One command a question of the path: to change an answer from wherever one is."""
    path = ui.state.diagnosis.path if ui.state is not None else ()
    return [
        _way(
            say("question {number}", number=at + 1),
            f"{step.asks} {answer_title(step)}",
            f"question({at})",
            f"question {at + 1}",
        )
        for at, step in enumerate(path)
    ]


def steps_of(ui: UiState) -> list[Hint]:
    """One command a step of the plan: to stand on it, found by its title and by its keys."""
    steps = ui.state.plan.steps if ui.state is not None else ()
    return [
        _way(
            say("step {number}", number=number),
            clauses([*(one.key for one in step.changes), step.title]),
            f"step('{step.id}')",
            f"step {number}",
        )
        for number, step in enumerate(steps, start=1)
    ]


def _way(words: str, told: str, action: str, english: str) -> Hint:
    """A command of the app that has no key."""
    return Hint("", words, told, False, f"app.{action}", english=english)


def matching(commands: list[Hint], typed: str) -> list[Hint]:
    """Commands in which every typed word stands; those whose own words begin with it come first."""
    parts = typed.lower().split()
    found = [
        one for one in commands if all(part in f"{one.words} {one.explained} {one.english}".lower() for part in parts)
    ]
    return sorted(found, key=lambda one: not one.words.lower().startswith(typed.lower().strip() or "\0"))


def palette_rows(commands: list[Hint], width: int) -> list[Row]:
    """One command a line: words, what it does, its key."""
    if not commands:
        return paragraph(say("no command goes by these words"), width, tone="dim")
    out = []
    for hint in commands:
        said = hint.explained if hint.explained != hint.words else ""
        left = line(pad(hint.words, _LABEL), " ", span(said, "dim"))
        out.append(Row(spread(left, line(span(hint.keys, "mark")), width - 2), hint.action))
    return out


class Palette(Overlay):
    """Type to find, arrows to choose, Enter to do it on the screen underneath."""

    NEEDS_STATE = False
    TITLE_WORDS = mark("All commands")
    CLICKED_AGAIN = "run"
    OPENED_BY = Binding("colon,ctrl+p", "palette", "more", key_display=":", tooltip="find a command by its name")
    RANK = 70
    TYPES = True
    AUTO_FOCUS = "#find"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "run", "do it", tooltip="do the marked command"),
        Binding("up", "move(-1)", "choose", key_display="↑↓", tooltip="the command above or below"),
        Binding("down", "move(1)", show=False),
    ]

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._commands: list[Hint] = []
        self._worn = ""

    @classmethod
    def over(cls, screen: BaseScreen) -> Self:
        """With what can be done on the screen underneath, as long as that is the one on top."""
        made = super().over(screen)
        made._commands = [*commands_of(screen), *stages_of(screen.ui), *questions_of(screen.ui), *steps_of(screen.ui)]
        return made

    def panes(self) -> Iterable[Widget]:
        yield text_field("find", hint=say("type to find a command"))
        yield self.page(self.main_rows, "main")

    def main_rows(self, width: int) -> list[Row]:
        return palette_rows(self._found(), width)

    def _found(self) -> list[Hint]:
        fields = self.query(Input)
        return matching(self._commands, fields.first().value if fields else "")

    @on(Input.Changed)
    def _narrowed(self) -> None:
        page = self.query_one("#main", Page)
        page.wanted = None
        page.reload()
        self._try_on(page.cursor)

    def on_mount(self) -> None:
        super().on_mount()
        self._worn = self.app.theme

    def on_page_moved(self, message: Page.Moved) -> None:
        self._try_on(message.key)

    def _try_on(self, action: str | None) -> None:
        tried = next((THEMES[name] for name in THEMES if action == f"app.theme('{name}')"), self._worn)
        self.app.theme = tried

    def action_back(self) -> None:
        self.app.theme = self._worn
        super().action_back()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_run()

    def action_move(self, by: int) -> None:
        self.query_one("#main", Page).action_step(by)

    def action_run(self) -> None:
        action = self.query_one("#main", Page).cursor
        if action is None:
            return
        about = self.underneath
        self.app.theme = self._worn
        self.dismiss()
        self.app.call_later(self.app.run_action, action, about)
