"""Chooses script and log in a tree of folders, or takes pasted text or a pasted path for one of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from advisor.hostile import clean
from advisor.language import mark, say, say_count
from advisor.line_breaks import cut
from advisor.recent import SCRIPTS
from advisor.tui import ui_text as words
from advisor.tui.page import Page
from advisor.tui.screen import Overlay
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import BLANK, Row, Toned, line, paragraph, rows, span, spread
from advisor.units import show_bytes
from advisor.words import os_words

MOST = 500
"""Entries of one folder that are shown."""


def take(ui: UiState, path: Path) -> str:
    """Choose a file: a script by its name's end, anything else as a log; returns the sentence that says so."""
    if path.suffix.lower() in (*SCRIPTS, ".yaml", ".yml", ".json"):
        ui.chosen_script = path
        return say(words.CHOSEN_SCRIPT, name=path.name)
    ui.chosen_logs = (path,)
    return say(words.CHOSEN_LOG, name=path.name)


def entries_of(folder: Path) -> list[tuple[Path, bool, int]]:
    """(path, is a folder, bytes) of what stands in `folder`, folders first; hidden ones last. Raises OSError."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                is_folder = entry.is_dir()
                size = 0 if is_folder else entry.stat().st_size
            except OSError:
                continue
            found.append((Path(entry.path), is_folder, size))
    return sorted(found, key=lambda one: (one[0].name.startswith("."), not one[1], one[0].name.lower()))


def tree_rows(folder: Path, opened: set[Path], chosen: set[Path], width: int, depth: int = 0) -> list[Row]:
    """The folder's entries, and below each opened folder its own; the cursor stands on all of them."""
    try:
        found = entries_of(folder)
    except OSError as error:
        return paragraph(say("cannot be read: {why}", why=os_words(error)), width, 2 * depth + 2, "warn")
    out: list[Row] = []
    for path, is_folder, size in found[:MOST]:
        is_open = path in opened
        sign = ("▾ " if is_open else "▸ ") if is_folder else ("● " if path in chosen else "  ")
        left = line("  " * depth, Toned(sign, "mark"), path.name + ("/" if is_folder else ""))
        right = line(span("" if is_folder else show_bytes(size), "dim"))
        out.append(Row(spread(left, right, width - 2), str(path)))
        out += tree_rows(path, opened, chosen, width, depth + 1) if is_open and depth < 12 else []
    if len(found) > MOST:
        more = say_count("and {number} entry more", "and {number} entries more", len(found) - MOST)
        out += paragraph(more, width, 2 * depth + 2, "dim")
    return out


class FilesView(Overlay):
    """Enter opens a folder or chooses a file; Esc takes what was chosen back to the list of runs."""

    TITLE_WORDS = mark("Files")
    CLICKED_AGAIN = "take"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "take", "open or choose", key_display="enter", tooltip="open a folder, choose a file"),
        Binding("right,l", "open", "open", show=False, tooltip="open the marked folder"),
        Binding("left,h", "close", "close", show=False, tooltip="close the folder, or go to the one above"),
        Binding("u", "above", "folder above", tooltip="begin the tree one folder higher"),
        Binding("escape", "back", "done", tooltip="back to the list of runs with what was chosen"),
    ]

    def __init__(self, ui: UiState, folder: Path) -> None:
        super().__init__(ui)
        self._folder = folder
        self._opened: set[Path] = set()

    def main_rows(self, width: int) -> list[Row]:
        ui = self.ui
        chosen = {path for path in (ui.chosen_script, *ui.chosen_logs) if path is not None}
        top = paragraph(str(self._folder), width, tone="strong")
        return [*top, *tree_rows(self._folder, self._opened, chosen, width)]

    @property
    def _marked(self) -> Path | None:
        key = self.query_one("#main", Page).cursor
        return Path(key) if key else None

    def action_take(self) -> None:
        path = self._marked
        if path is None:
            return
        if path.is_dir():
            self._opened ^= {path}
        else:
            self.ui.note = take(self.ui, path)
        self.reload()

    def action_open(self) -> None:
        if self._marked is not None and self._marked.is_dir():
            self._opened.add(self._marked)
            self.reload()

    def action_close(self) -> None:
        """Close a folder; on anything else, go to the folder it stands in."""
        path = self._marked
        if path is None:
            return
        if path in self._opened:
            self._opened.discard(path)
        elif path.parent in self._opened:
            self.query_one("#main", Page).move_to(str(path.parent))
        self.reload()

    def action_above(self) -> None:
        below = self._folder
        self._opened.add(below)
        self._folder = below.parent
        self.reload()
        self.query_one("#main", Page).move_to(str(below))


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
        self._text = ""
        self.reload()
