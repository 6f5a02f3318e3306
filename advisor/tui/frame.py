"""The frame of every screen: breadcrumb, panes, gauge strip, key line. A screen only says what its panes show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widget import Widget

from advisor.language import mark, say
from advisor.tui.breadcrumb import breadcrumb
from advisor.tui.gauge_strip import strip
from advisor.tui.keys import Hint, hints, key_line, named
from advisor.tui.page import Lines, Page
from advisor.tui.sitting import GoBack, GoOn, Sitting
from advisor.tui.ui_text import TONES, Row, ascii_only, paragraph, plain, rows

if TYPE_CHECKING:
    from advisor.session import State

SMALLEST = (60, 15)
TWO_PANES, THREE_PANES = 100, 140
BACK = Binding("escape", "back", "back", tooltip="the screen before")


_TOO_SMALL = mark(
    "This terminal is {width}×{height}; {least} is the least that can be read. Make it larger, or press q to quit."
)
OTHER_PANE = mark("other pane")
OTHER_PANE_DOES = mark("the next pane, where the arrows then scroll")
WIDTHS = ((140, "-huge"), (100, "-wide"), (60, "-narrow"), (0, "-tiny"))
HEIGHTS = ((15, "-tall"), (0, "-flat"))


class Frame(Screen[None]):
    """Base of all screens. Subclasses give `panes` and bindings; the words of "enter" may follow the state."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tone--{tone}" for tone in TONES} | {"tone--cursor"}
    TITLE_WORDS: ClassVar[str] = ""
    """What the help calls this screen; said there."""
    AUTO_FOCUS = "#main"
    STACKED: ClassVar[bool] = False
    """Below two panes' width: keep the second pane, under the first."""
    TYPES: ClassVar[bool] = False
    """Letters are typed into a field here: they are no keys."""
    OPENED_BY: ClassVar[str] = ""
    """The action of the app that opens it, where it is one that every screen has."""

    NEEDS_STATE: ClassVar[bool] = True
    """It can show nothing before a session is open, nor while another is being opened."""

    def __init__(self, sitting: Sitting) -> None:
        super().__init__()
        self.sitting = sitting
        self._built_columns = 0

    def __init_subclass__(cls, **options: object) -> None:
        """Give every binding its name before Textual merges them."""
        own = cls.__dict__.get("BINDINGS")
        if own is not None:
            cls.BINDINGS = named(*own)
        super().__init_subclass__(**options)  # type: ignore[arg-type]

    @property
    def state(self) -> State:
        """The sitting as it stands."""
        return self.sitting.known

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
        raise NotImplementedError

    def page(self, source: str, name: str, cursor: str | None = None) -> Page:
        """A page whose rows come from the method `source` of this screen."""

        def built(width: int) -> Sequence[Row]:
            found: Sequence[Row] = getattr(self, source)(width) if self._has_words else ()
            return found

        return Page(built, plain_ascii=self.sitting.plain_ascii, id=name, cursor=cursor)

    def compose(self) -> ComposeResult:
        """One line on top, the panes, two lines at the bottom."""
        self._lay_out()
        signs = self.sitting.plain_ascii
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
        for size, steps in ((width, WIDTHS), (height, HEIGHTS)):
            self.add_class(next(name for least, name in steps if size >= least))

    def on_mount(self) -> None:
        """An empty note takes no line."""
        self.query_one("#note").display = self._has_note

    def reload(self) -> None:
        """Show the sitting as it stands now."""
        for lines in self.query(Lines):  # none before the screen is composed and after it is gone
            if lines.id == "note":
                lines.display = self._has_note
            lines.reload()

    def reload_strip(self) -> None:
        """Only the gauges changed."""
        for lines in self.query("#strip").results(Lines):
            lines.reload()

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
        sitting = self.sitting
        return rows(breadcrumb(sitting.state, sitting.stage, sitting.question, width))

    @property
    def _has_note(self) -> bool:
        return bool(self.sitting.note or self.sitting.behind)

    def _note(self, width: int) -> list[Row]:
        note, behind = self.sitting.note, self.sitting.behind
        told = paragraph(note, width, tone="mark") if note else []
        return [*told, *paragraph(behind, width, tone="dim")] if behind else told

    def _strip(self, width: int) -> list[Row]:
        return rows(strip(self.sitting.snapshot, self.sitting.no_gauges, width, self.sitting.plain_ascii))

    @property
    def _has_words(self) -> bool:
        return not self.NEEDS_STATE or self.sitting.state is not None

    def _keys(self, width: int) -> list[Row]:
        if not self._has_words:
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
        known = hints(type(self).BINDINGS, self.sitting.keymap)
        usable = [hint for hint in known if self.check_action(hint.action.split("(")[0], ())]
        own = [replace(hint, words=words.get(hint.action, hint.words)) for hint in usable]
        if len([page for page in self.query(Page) if page.display]) > 1:
            own.append(Hint("tab", say(OTHER_PANE), say(OTHER_PANE_DOES), True, "app.focus_next"))
        return own

    def shared_hints(self) -> list[Hint]:
        """The keys of every screen that belong in the key line."""
        known = hints(self.app.BINDINGS, self.sitting.keymap)
        return [hint for hint in known if hint.shown and self.app.check_action(hint.action, ())]

    def words(self) -> dict[str, str]:
        """Action → its words just now, said, where they differ from the binding's."""
        return {}


class StageScreen(Frame):
    """A stage of the sitting: Enter goes on, Esc goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "go_on", "go on", tooltip="agree and go on"), BACK]

    def action_go_on(self) -> None:
        """The next stage."""
        self.post_message(GoOn())

    def action_back(self) -> None:
        """The stage before."""
        self.post_message(GoBack())


class Overlay(Frame):
    """Something looked at for a moment; Esc returns."""

    BINDINGS: ClassVar[list[BindingType]] = [BACK]

    def action_back(self) -> None:
        """Return to the screen underneath."""
        self.dismiss()


class Reading(Overlay):
    """An overlay of one page. `READ_BY` is the name of the action that opened it; the same key closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "back", "back", show=False, tooltip="return"),
        BACK,
    ]

    def panes(self) -> Iterable[Widget]:
        """One page over the whole width."""
        yield self.page("page_rows", "main")

    def page_rows(self, width: int) -> list[Row]:
        """What is read."""
        raise NotImplementedError
