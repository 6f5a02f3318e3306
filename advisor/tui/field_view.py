"""Frames pages with one field, which takes the letters while it is open: to write something, or to narrow the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Input

from advisor.language import say
from advisor.tui.page import Page, RowSource
from advisor.tui.screen import BaseScreen, Overlay
from advisor.tui.ui_text import Row, paragraph, plain


def text_field(name: str, text: str = "", hint: str = "", *, longest: int = 0, closed: bool = False) -> Input:
    """A field of one line without a frame; `hint` stands where nothing is written."""
    made = Input(text, hint, id=name, compact=True, select_on_focus=False, max_length=longest)
    made.cursor_blink, made.display = False, not closed
    return made


class FieldView(Overlay):
    """Base of an overlay in which something is written: Enter takes it, Esc closes the field first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "complete", show=False, tooltip="go on as the grey letters do, while it is written")
    ]
    TAKES: ClassVar[str] = ""
    """The action of Enter while something is written; "": the field's own."""

    @property
    def typing(self) -> bool:
        return any(field.display for field in self.query(Input))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is written, letters are no keys."""
        return not self.typing or action in ("back", "complete", self.TAKES)

    def action_complete(self) -> None:
        """Take what is suggested; elsewhere go to the next pane."""
        if self.typing:
            self.query_one(Input).action_end()
            self.query_one(Input).action_cursor_right()
        else:
            self.app.action_focus_next()

    def open_field(self, text: str, hint: str) -> None:
        """What is typed replaces `text`; an arrow keeps it, to write on. `hint` stands where nothing does."""
        field = self.query_one(Input)
        field.placeholder, field.display, field.value = hint, True, text
        field.focus()
        field.select_all()
        self.reload()

    def close_field(self) -> None:
        """The page has the keys again."""
        self.query_one(Input).display = False
        self.query_one("#main", Page).focus()
        self.reload()

    def action_back(self) -> None:
        if self.typing:
            self.close_field()
        else:
            super().action_back()


FIND = Binding("slash", "find", "find", tooltip="show only the rows that hold what is typed; esc shows all again")


def holding(rows: Sequence[Row], typed: str) -> list[Row]:
    """The rows in which every typed word stands, all rows of one thing together, and the titles above them."""
    words = typed.lower().split()
    out: list[Row] = []
    titles: list[Row] = []
    at = 0
    while at < len(rows):
        end = at + 1
        while end < len(rows) and _goes_on(rows[at], rows[end]):
            end += 1
        thing, at = rows[at:end], end
        told = " ".join(plain(row.line) for row in thing).lower()
        if _is_title(thing[0]):
            titles = [thing[0]]
        elif told.strip() and all(word in told for word in words):
            out += [*titles, *thing]
            titles = []
    return out


def _goes_on(first: Row, row: Row) -> bool:
    """Whether a row belongs to the thing that began with `first`: it has its key, or is indented beneath it."""
    if first.key is not None or row.key is not None:
        return first.key == row.key
    return bool(row.line) and not _is_title(first) and plain(row.line).startswith(" " * 8)


def _is_title(row: Row) -> bool:
    return row.key is None and bool(row.line) and row.line[0].tone == "title" and plain(row.line)[:1] != " "


class FindingScreen(BaseScreen):
    """Base of a screen with many rows: "/" opens a field, and the pages show what holds the words in it."""

    def finder(self) -> Input:
        """The field, closed; the last of the panes."""
        return text_field("find", hint=say("show only what holds …"), closed=True)

    @property
    def _wanted(self) -> str:
        return next((field.value for field in self.query(Input) if field.display), "")

    @property
    def typing(self) -> bool:
        """Letters belong to the field while it has the cursor."""
        return any(field.has_focus for field in self.query(Input))

    def page(self, source: RowSource, name: str, cursor: str | None = None) -> Page:
        """A page that shows only what is looked for."""

        def narrowed(width: int) -> Sequence[Row]:
            rows = source(width)
            if not self._wanted.strip():
                return rows
            return holding(rows, self._wanted) or paragraph(say("nothing holds these words"), width, tone="dim")

        return super().page(narrowed, name, cursor)

    def words(self) -> dict[str, str]:
        return {"back": say("show all")} if any(field.display for field in self.query(Input)) else super().words()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While words are typed, letters are no keys."""
        return (action == "back" or not self.typing) and super().check_action(action, parameters)

    def action_find(self) -> None:
        field = self.query_one("#find", Input)
        field.display = True
        field.focus()
        self.reload()

    @on(Input.Changed, "#find")
    def _narrowed(self) -> None:
        self.reload()

    @on(Input.Submitted, "#find")
    def _found(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one("#main", Page).focus()
        self.reload()

    def action_back(self) -> None:
        field = self.query_one("#find", Input)
        if not field.display:
            super().action_back()  # type: ignore[misc]
            return
        field.display, field.value = False, ""
        self.query_one("#main", Page).focus()
        self.reload()
