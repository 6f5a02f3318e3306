"""Frames a page with one field below it, which takes the letters while it is open."""

from __future__ import annotations

from typing import ClassVar

from textual.widgets import Input

from advisor.tui.keys import Hint
from advisor.tui.page import Page
from advisor.tui.screen import Overlay


class FieldView(Overlay):
    """Base of an overlay in which something is written: Enter takes it, Esc closes the field first."""

    TAKES: ClassVar[str]
    """The action of Enter."""

    def field(self, name: str, longest: int = 0) -> Input:
        """The field, closed."""
        made = Input(id=name, compact=True, select_on_focus=False, max_length=longest)
        made.cursor_blink, made.display = False, False
        return made

    @property
    def typing(self) -> bool:
        """Letters belong to the field while it is open."""
        return any(field.display for field in self.query(Input))

    def shared_hints(self) -> list[Hint]:
        """No single letters while they are typed."""
        return [] if self.typing else super().shared_hints()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is written, letters are no keys."""
        return not self.typing or action in ("back", self.TAKES)

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
        """Close the field, then return."""
        if self.typing:
            self.close_field()
        else:
            super().action_back()

    def action_nothing(self) -> None:
        """The page moves its cursor itself."""
