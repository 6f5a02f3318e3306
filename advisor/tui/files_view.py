"""Chooses script and log in a tree of folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from advisor.language import mark, say, say_count
from advisor.recent import SCRIPTS
from advisor.tui import ui_text as words
from advisor.tui.page import Page
from advisor.tui.screen import Overlay
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import Row, Toned, line, paragraph, span, spread
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
        """The present folder and its tree."""
        ui = self.ui
        chosen = {path for path in (ui.chosen_script, *ui.chosen_logs) if path is not None}
        top = paragraph(str(self._folder), width, tone="strong")
        return [*top, *tree_rows(self._folder, self._opened, chosen, width)]

    @property
    def _marked(self) -> Path | None:
        key = self.query_one("#main", Page).cursor
        return Path(key) if key else None

    def action_take(self) -> None:
        """Open or close a folder; choose a file."""
        path = self._marked
        if path is None:
            return
        if path.is_dir():
            self._opened ^= {path}
        else:
            self.ui.note = take(self.ui, path)
        self.reload()

    def action_open(self) -> None:
        """Open a folder."""
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
        """Begin one folder higher."""
        below = self._folder
        self._opened.add(below)
        self._folder = below.parent
        self.reload()
        self.query_one("#main", Page).move_to(str(below))
