"""Shows the ticket before anything leaves the app: Enter copies it, s writes it to a file, h writes the page."""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

from textual.binding import Binding, BindingType

from advisor.language import ENGLISH, mark, say, spoken
from advisor.tui.driver import expected_trouble
from advisor.tui.screen import Overlay
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import BLANK, Row, line, paragraph, rows, span

_ABOUT = mark("What a colleague or an issue needs; people, hosts and folders are left out. Read it before you send it.")


class TicketView(Overlay):
    OPENED_BY = Binding("y", "ticket", "ticket", tooltip="a short summary to send, to be read first")
    RANK = 20
    TITLE_WORDS = mark("The ticket")
    NEEDS_RUN = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "copy", "copy", tooltip="copy it"),
        Binding("l", "other_language", "in English", tooltip="the ticket in English, or in the language spoken"),
        Binding("s", "save", "save", tooltip="write it to a file in the present folder, and copy it"),
        Binding("h", "page", "HTML page", tooltip="write the report as a page for a browser: bars and diff"),
    ]

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._english = spoken() == ENGLISH

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Where English is spoken there is one ticket."""
        return action != "other_language" or spoken() != ENGLISH

    def words(self) -> dict[str, str]:
        return {"other_language": say("in the language spoken")} if self._english else {}

    def action_other_language(self) -> None:
        self._english = not self._english
        self.reload()

    def main_rows(self, width: int) -> list[Row]:
        lines = [line(span(text)) for text in self._text.splitlines()]
        return [*paragraph(say(_ABOUT), width, tone="dim"), BLANK, *rows(*lines)]

    @property
    def _text(self) -> str:
        from advisor.report.ticket import ticket

        return ticket(self.state, self._english)

    def _send(self, name: str) -> None:
        text = self._text
        self.dismiss()
        self.advisor.copy(text, mark("the ticket"), name)

    def action_copy(self) -> None:
        self._send("")

    def action_save(self) -> None:
        self._send("oom-report")

    def action_page(self) -> None:
        driver, state, app = self.ui.driver(), self.state, self.advisor

        def write() -> None:
            with suppress(*expected_trouble()):
                app.call_later(app.copy, driver.page(state), mark("the page"), "oom-report", ".html")

        self.dismiss()
        app.run_worker(write, thread=True, exclusive=True, group="page")
