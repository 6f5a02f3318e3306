"""Takes pasted text, or a pasted path, as a log or a script."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from advisor.hostile import clean
from advisor.language import mark, say, say_count
from advisor.tui import ui_text as words
from advisor.tui.files_view import take
from advisor.tui.screen import Overlay
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import BLANK, Row, cut, line, paragraph, rows
from advisor.words import os_words

LARGEST = 8 << 20
SHOWN = 3


def path_in(text: str) -> Path | None:
    """A pasted path, if that is what it is: one line that names something which exists."""
    stripped = text.strip().strip("'\"")
    if not stripped or "\n" in stripped or len(stripped) > 4096:
        return None
    try:
        path = Path(stripped).expanduser()
        return path if path.exists() else None
    except (OSError, ValueError, RuntimeError):
        return None


def paste_rows(text: str, width: int) -> list[Row]:
    """How to paste; then how much came, its beginning and its end."""
    if not text:
        return [
            *paragraph(say("Paste a log, a launch script, or the path of one."), width, tone="strong"),
            BLANK,
            *paragraph(say("With the terminal's own paste: ctrl+shift+v, cmd+v, or the middle mouse button."), width),
        ]
    lines = clean(text, LARGEST).splitlines()
    out = paragraph(say_count("{number} line came.", "{number} lines came.", len(lines)), width, tone="strong")
    ends = lines if len(lines) <= 2 * SHOWN else [*lines[:SHOWN], "⋮", *lines[-SHOWN:]]
    out += rows(*(line("  " + cut(one, width - 2)) for one in ends))
    return [*out, BLANK, *paragraph(say(words.WHAT_IS_IT), width)]


class PasteView(Overlay):
    """Paste, then say what it is."""

    TITLE_WORDS = mark("Pasting")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,l", "take('log')", "a log", key_display="l", tooltip="take it as the log", id="paste_log"),
        Binding("s", "take('script')", "a script", tooltip="take it as the launch script", id="paste_script"),
        Binding("backspace", "forget", "again", show=False, tooltip="forget it and paste again"),
    ]

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._text = ""

    def main_rows(self, width: int) -> list[Row]:
        """What to do, or what came."""
        return paste_rows(self._text, width)

    def on_paste(self, event: events.Paste) -> None:
        """Text comes in pieces where it is long; a path is taken at once."""
        event.stop()
        self._text = (self._text + event.text)[:LARGEST]
        path = path_in(self._text)
        if path is not None:
            self.ui.note = take(self.ui, path)
            self.dismiss()
            return
        self.reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing to take before something came."""
        return action not in ("take", "forget") or bool(self._text)

    def action_take(self, kind: str) -> None:
        """Keep it as a file and choose that."""
        keep = self.ui.offers.pasted
        if keep is None or not self._text:
            return
        try:
            path = keep(self._text)
        except OSError as error:
            self.ui.note = say("it cannot be kept: {why}", why=os_words(error))
            self.reload()
            return
        if kind == "script":
            named = path.with_suffix(".sh")
            path.replace(named)
            self.ui.chosen_script = named
        else:
            self.ui.chosen_logs = (path,)
        self.ui.note = say(words.CHOSEN_SCRIPT if kind == "script" else words.CHOSEN_LOG, name=path.name)
        self.dismiss()

    def action_forget(self) -> None:
        """Paste again."""
        self._text = ""
        self.reload()
