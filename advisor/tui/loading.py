"""The first moments: what is being read, calmly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from advisor.tui.frame import Frame
from advisor.tui.ui_text import Row, paragraph


class LoadingScreen(Frame):
    """Until the session is open. q leaves at any time."""

    TITLE_WORDS = "Reading"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.leave", "stop", tooltip="stop reading and quit")]

    def panes(self) -> Iterable[Widget]:
        """One page."""
        yield self.page("main_rows", "main")

    def main_rows(self, width: int) -> list[Row]:
        """What is being read."""
        return paragraph(self.sitting.reading or "reading …", width, tone="strong")
