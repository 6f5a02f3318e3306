"""Shows what is being read until the session is open."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from advisor.language import mark, say
from advisor.tui.frame import Frame
from advisor.tui.ui_text import Row, paragraph


class LoadingScreen(Frame):
    """Until the session is open. q leaves at any time."""

    NEEDS_STATE = False
    TITLE_WORDS = mark("Reading")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.leave", "stop", tooltip="stop reading and quit"),
    ]

    def main_rows(self, width: int) -> list[Row]:
        """What is being read."""
        return paragraph(self.sitting.reading or say("reading …"), width, tone="strong")
