"""Frames every screen: breadcrumb, panes, gauge strip, key line; and registers what a screen declares of itself.

A screen is one class: the key that opens it (or its stage), its title, whether it needs a State, its rows. The app's
bindings, the help, the palette and docs/keys.md follow from that.
"""

from __future__ import annotations

import dataclasses
import os
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, cast

from msgspec.structs import replace
from textual import events
from textual.actions import parse
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widget import Widget

from advisor.language import mark, say
from advisor.tui.breadcrumb import Stage, breadcrumb, stage_at
from advisor.tui.gauge_strip import strip
from advisor.tui.keys import Hint, hint_at, hints, key_line, named
from advisor.tui.page import Lines, Page, RowSource
from advisor.tui.ui_state import UiState, nothing_given
from advisor.tui.ui_text import MARGIN, Row, Tone, ascii_only, paragraph, plain, rows

if TYPE_CHECKING:
    from typing_extensions import Self

    from advisor.state import State
    from advisor.tui.app import AdvisorApp

SMALLEST = (60, 15)
READABLE = 120
TWO_PANES, THREE_PANES = 100, 140
BACK = Binding("escape", "back", "back", tooltip="the screen before")


_TOO_SMALL = mark(
    "This terminal is {width}×{height}; {least} is the least that can be read. Make it larger, or press q to quit."
)
OTHER_PANE = mark("other pane")
OTHER_PANE_DOES = mark("the next pane, where the arrows then scroll")
WIDTHS = ((140, "-huge"), (100, "-wide"), (60, "-narrow"), (0, "-tiny"))
HEIGHTS = ((15, "-tall"), (0, "-flat"))
SCREENS: dict[str, type[BaseScreen]] = {}
"""The screens that were loaded, by stage or by the name of the key that opens them."""


OWN_KEYS: dict[int, Binding] = {
    60: Binding("v", "plain", "plain view", tooltip="this screen as plain text in the terminal's own scrollback"),
    57: Binding("left_square_bracket", "neighbour(-1)", "stage before", show=False, tooltip="the stage before"),
    58: Binding("right_square_bracket", "neighbour(1)", "stage after", show=False, tooltip="the stage after"),
    90: Binding("q", "leave_by_letter", "quit", tooltip="quit; nothing is written unless you saved", id="quit"),
    99: Binding("ctrl+z", "suspend_process", "to the shell", show=False, tooltip="stop the app; fg brings it back"),
}
"""Keys of every screen that open none, by their rank among those that do."""


def keys_of_every_screen() -> list[BindingType]:
    """The app's own keys and those of the screens that are loaded, in the order of help and key line."""
    opening = [
        (screen.RANK, dataclasses.replace(binding, action=f"look('{name}')", id=name))
        for name, screen in list(SCREENS.items())  # a thread may be loading the others
        if (binding := screen.OPENED_BY) is not None
    ]
    return named(*(binding for _, binding in sorted([*OWN_KEYS.items(), *opening], key=lambda one: one[0])))


def load_screens() -> None:
    """Import the modules of this folder: each screen registers itself. Not before the first frame stands."""
    for module in pkgutil.iter_modules([os.path.dirname(__file__)], "advisor.tui."):
        import_module(module.name)


class BaseScreen(Screen[None]):
    """Base of all screens. Subclasses give `panes` and bindings; the words of "enter" may follow the state."""

    TITLE_WORDS: ClassVar[str] = ""
    """What the help calls this screen; said there."""
    AUTO_FOCUS = "#main"
    STACKED: ClassVar[bool] = False
    """Below two panes' width: keep the second pane, under the first."""
    WIDEST: ClassVar[int] = 0
    """Columns that its words take at most, where lines that are longer would be hard to read; 0: all there are."""
    TYPES: ClassVar[bool] = False
    """Letters are its own here, typed into a field or answers: those of every screen are no keys."""
    STAGE: ClassVar[str] = ""
    """The stage that it is the screen of."""
    OPENED_BY: ClassVar[Binding | None] = None
    """The key that opens it from every screen; the action is its name. The same key closes it."""
    RANK: ClassVar[int] = 55
    """Where that key stands among those of every screen, in help and key line: lower ones first."""
    REFUSED: ClassVar[Mapping[str, str]] = {}
    """Action → why it has nothing to act on, where it has not; said then."""
    CLICKED_AGAIN: ClassVar[str] = ""
    """The action that a click does on the row where the cursor stands already."""
    underneath: BaseScreen
    """The screen that it was opened over by its key."""
    NEEDS_STATE: ClassVar[bool] = True
    """It can show nothing before a session is open, nor while another is being opened."""

    NEEDS_RUN: ClassVar[bool] = False
    """It can show nothing, either, where neither a script nor a log was given."""

    def __init__(self, ui: UiState) -> None:
        super().__init__()
        self.ui = ui
        self._built_columns = 0

    def __init_subclass__(cls, **options: object) -> None:
        """Register the screen, and give every binding its name before Textual merges them."""
        if "BINDINGS" in cls.__dict__:
            cls.BINDINGS = named(*cls.__dict__["BINDINGS"])
        if name := cls.OPENED_BY.action if cls.OPENED_BY else cls.STAGE:
            SCREENS[name] = cls
        super().__init_subclass__(**options)  # type: ignore[arg-type]

    @classmethod
    def can_show(cls, ui: UiState) -> bool:
        """Whether it has anything to show just now."""
        if cls.NEEDS_RUN and (ui.state is None or nothing_given(ui.state)):
            return False
        return not cls.NEEDS_STATE or ui.state is not None

    @classmethod
    def over(cls, screen: BaseScreen) -> Self:
        """The screen, to be opened over another one."""
        made = cls(screen.ui)
        made.underneath = screen
        return made

    @property
    def state(self) -> State:
        """The session as it stands."""
        return self.ui.known

    @property
    def advisor(self) -> AdvisorApp:
        """The app, which alone changes the session."""
        return cast("AdvisorApp", self.app)

    @property
    def typing(self) -> bool:
        """Letters belong to a field just now."""
        return False

    @property
    def columns(self) -> int:
        """Panes side by side at the present width: 1, 2 or 3."""
        width = self.app.size.width
        return 1 + (width >= TWO_PANES) + (width >= THREE_PANES)

    def panes(self) -> Iterable[Widget]:
        """The panes, most important first. The second shows from 100 columns, the third from 140."""
        yield self.page(self.main_rows, "main")

    def main_rows(self, width: int) -> list[Row]:
        """What the first pane shows."""
        raise NotImplementedError

    def page(self, source: RowSource, name: str, cursor: str | None = None) -> Page:
        """A page of what `source` gives, empty while there is no state to show."""

        def built(width: int) -> Sequence[Row]:
            width = min(width, self.WIDEST or width)
            return source(width) if self.can_show(self.ui) else ()

        return Page(built, plain_ascii=self.ui.plain_ascii, id=name, cursor=cursor)

    def compose(self) -> ComposeResult:
        """One line on top, the panes, two lines at the bottom."""
        self._lay_out()
        signs = self.ui.plain_ascii
        yield Lines(self._too_small, plain_ascii=signs, id="too-small")
        yield Lines(self._crumb, plain_ascii=signs, id="crumb")
        yield Lines(self._note, plain_ascii=signs, id="note")
        with Container(id="panes", classes="stacked" if self.STACKED else ""):
            yield from self.panes()
        yield Lines(self._strip, plain_ascii=signs, id="strip")
        yield Lines(self._keys, plain_ascii=signs, id="keys")

    def _lay_out(self) -> None:
        """The layout of this size from the very first frame on: Textual sets it only with the first resize."""
        width, height = self.app.size
        sizes = ((width, WIDTHS), (height, HEIGHTS))
        self.add_class(*(next(name for least, name in steps if size >= least) for size, steps in sizes))

    def on_mount(self) -> None:
        """An empty note takes no line."""
        self.query_one("#note").display = self._has_note

    def reload(self) -> None:
        """Show the session as it stands now."""
        for lines in self.query(Lines):  # none before the screen is composed and after it is gone
            if lines.id == "note":
                lines.display = self._has_note
            lines.reload()

    def on_screen_resume(self) -> None:
        """The keys of every screen are keys again where the screen above took letters for itself."""
        for lines in self.query("#keys").results(Lines):
            lines.reload()

    def reload_strip(self) -> None:
        """Only the gauges changed."""
        for lines in self.query("#strip").results(Lines):
            lines.reload()

    async def on_page_clicked(self, message: Page.Clicked) -> None:
        """Do what the screen does with a row."""
        own = message.again and message.page.id == "main"
        if own and self.CLICKED_AGAIN and self.check_action(self.CLICKED_AGAIN, ()):
            await self.run_action(self.CLICKED_AGAIN)

    async def on_lines_pointed(self, message: Lines.Pointed) -> None:
        """A click on a key does what the key does; one on a stage goes there."""
        if not self.can_show(self.ui):
            return
        column, width = message.column, message.lines.size.width - 2 * MARGIN
        if message.lines.id == "keys":
            own, shared = self.own_hints(), self.shared_hints()
            hint = hint_at(column, own, shared, width)
            if hint is not None:
                await self.run_action(hint.action if hint in own else f"app.{hint.action}")
        elif message.lines.id == "crumb" and not self.typing and not self.TYPES:
            crumbs = breadcrumb(self.ui.state, self.ui.stage, self.ui.question, width)
            stage = stage_at(column, crumbs) if type(self)._crumb is BaseScreen._crumb else None
            if stage is not None and self.ui.state is not None:
                self.advisor.action_stage(stage)

    def read_on(self, before: State) -> None:
        """The rest of the logs was read; `before`: what was known when only their ends were."""

    def plain_words(self, signs: bool = False) -> str:
        """All that the panes have to say, also what is scrolled out of sight. `signs`: in ASCII."""
        parts = [page.rows for page in self.query(Page) if page.display]
        text = "\n\n".join("\n".join(plain(row.line).rstrip() for row in part) for part in parts)
        return ascii_only(text) if signs else text

    def on_resize(self, event: events.Resize) -> None:
        """Another number of panes may mean other words in each."""
        if self.columns != self._built_columns:
            self._built_columns = self.columns
            self.call_after_refresh(self._rebuilt)

    def _rebuilt(self) -> None:
        """A pane that is out of sight now must not keep the keys."""
        if self.focused is None or not self.focused.display:
            self.set_focus(next(iter(self.query(self.AUTO_FOCUS or "#main")), None))
        self.reload()

    def _crumb(self, width: int) -> list[Row]:
        ui = self.ui
        return rows(breadcrumb(ui.state, ui.stage, ui.question, width))

    @property
    def _has_note(self) -> bool:
        return bool(self.ui.note or self.ui.behind or self.ui.resumed)

    def _note(self, width: int) -> list[Row]:
        told: tuple[tuple[str, Tone], ...] = ((self.ui.note, "mark"), (self.ui.behind, "dim"), (self.ui.resumed, "dim"))
        return [row for text, tone in told if text for row in paragraph(text, width, tone=tone)]

    def _strip(self, width: int) -> list[Row]:
        return rows(strip(self.ui.snapshot, self.ui.no_gauges, width, self.ui.plain_ascii))

    def _keys(self, width: int) -> list[Row]:
        if not self.can_show(self.ui):
            return []
        return rows(key_line(self.own_hints(), self.shared_hints(), width))

    def _too_small(self, width: int) -> list[Row]:
        size = self.app.size
        return paragraph(
            say(_TOO_SMALL, width=size.width, height=size.height, least=f"{SMALLEST[0]}×{SMALLEST[1]}"),
            width,
        )

    def own_hints(self) -> list[Hint]:
        """The keys of this screen, in words that may follow the state."""
        words = self.words()
        known = hints(type(self).BINDINGS, self.ui.keymap)
        usable = [hint for hint in known if self.check_action(hint.action.split("(")[0], ())]
        own = [replace(hint, words=words.get(hint.action, hint.words)) for hint in usable]
        if not self.typing and len([page for page in self.query(Page) if page.display]) > 1:
            own.append(Hint("tab", say(OTHER_PANE), say(OTHER_PANE_DOES), True, "app.focus_next"))
        return own

    def shared_hints(self) -> list[Hint]:
        """The keys of every screen that belong in the key line; a key that is the screen's own is told once."""
        own = {hint.keys for hint in self.own_hints()}
        return [hint for hint in self.usable_everywhere() if hint.shown and hint.keys not in own]

    def usable_everywhere(self) -> list[Hint]:
        """The keys of every screen that can be used on this one."""
        known = hints(keys_of_every_screen(), self.ui.keymap)
        return [hint for hint in known if self.app.check_action(*parse(hint.action)[1:])]

    def action_nothing(self) -> None:
        """The page itself moves its cursor: the key stands in the help."""

    def words(self) -> dict[str, str]:
        """Action → its words just now, said, where they differ from the binding's."""
        return {}


class StageScreen(BaseScreen):
    """A stage of the session: Enter goes on, Esc goes back."""

    BACK_TO: ClassVar[Stage | None] = None
    """Where Esc leads, if not to the stage before."""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "go_on", "go on", tooltip="agree and go on"), BACK]

    def action_go_on(self) -> None:
        self.advisor.go_on()

    def action_back(self) -> None:
        self.advisor.go_back()


class Overlay(BaseScreen):
    """Something looked at for a moment; Esc and the key that opened it return. A subclass gives its other keys."""

    BINDINGS: ClassVar[list[BindingType]] = [BACK]
    ENTER_CLOSES: ClassVar[bool] = False
    """Enter returns too: there is nothing to choose."""

    def __init_subclass__(cls, **options: object) -> None:
        """Add the keys that close it to those it has."""
        own = [one for one in cls.__dict__.get("BINDINGS", ()) if isinstance(one, Binding)]
        enter = [Binding("enter", "back", "back", show=False, tooltip="return")] if cls.ENTER_CLOSES else []
        key = "" if cls.OPENED_BY is None or cls.TYPES else cls.OPENED_BY.key
        same_key = [Binding(key, "back", "back", show=False)] if key else []
        escape = [] if any(one.key == "escape" for one in own) else [BACK]
        cls.BINDINGS = [*enter, *own, *same_key, *escape]
        super().__init_subclass__(**options)

    def on_mount(self) -> None:
        self._unsay()
        super().on_mount()

    def action_back(self) -> None:
        """Return to the screen underneath; what was said of this one is over."""
        self._unsay()
        self.dismiss()

    def _unsay(self) -> None:
        if self.ui.note:
            self.ui.note = ""
            for screen in self.app.screen_stack:
                if isinstance(screen, BaseScreen):
                    screen.reload()
