"""Asks which run died where nothing was given: recent runs, a folder tree, pasted text, the demo."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import events, work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from advisor.hostile import cells, clean
from advisor.language import mark, say, say_count
from advisor.recent import SCRIPTS, FoundFile, Recent
from advisor.tui import ui_text as words
from advisor.tui.page import Page
from advisor.tui.screen import Overlay, StageScreen
from advisor.tui.ui_state import DemoAsked, FilesAsked, MachineAsked, UiState
from advisor.tui.ui_text import BLANK, Row, Toned, cut, cut_left, heading, line, paragraph, rows, span, spread
from advisor.units import show_bytes
from advisor.words import os_words

NOTHING_HERE = mark("No script that launches training and no log was found in {folder}, three folders deep.")
_AGO = (
    (86400, mark("{number:.0f} d ago")),
    (3600, mark("{number:.0f} h ago")),
    (60, mark("{number:.0f} min ago")),
)


def age_words(seconds: float) -> str:
    """Like "3 min ago"."""
    for size, ago in _AGO:
        if seconds >= size:
            return say(ago, number=seconds / size)
    return say("just now")


def choose_rows(
    recent: Recent | None, script: Path | None, logs: tuple[Path, ...], now: float, width: int
) -> list[Row]:
    """What was chosen, then what was found. Keys: "run N", "log N", "ray", "open"."""
    out = paragraph(say("Which run died? Choose its script and its log, or either of them."), width, tone="strong")
    if script is not None or logs:
        for label, path in ((words.SCRIPT, script), *((words.LOG, log) for log in logs)):
            out += paragraph(f"{say(label)} {path}", width, 2) if path is not None else []
        out.append(Row(line("  ", span(say("read these"), "mark")), "open"))
    out.append(BLANK)
    if recent is None:
        return [*out, *paragraph(say("looking through this folder …"), width, tone="dim")]
    out += _runs(recent, now, width) + _logs(recent, now, width)
    if not recent.runs and not recent.logs and recent.ray is None:
        out += paragraph(say(NOTHING_HERE, folder=recent.folder), width)
    return [*out, BLANK, *paragraph(say(words.HOW_TO_GIVE), width, tone="dim")]


def _runs(recent: Recent, now: float, width: int) -> list[Row]:
    if not recent.runs:
        return []
    out = [heading(say(words.RUNS_HERE), say(words.NEWEST_FIRST), width)]
    for number, run in enumerate(recent.runs):
        parts = [_below(one, recent.folder) for one in (run.script, run.log) if one is not None]
        right = age_words(now - run.changed)
        if run.log is not None:
            right = f"{show_bytes(run.log.size)}  {right}"
        left = line(cut_left(" + ".join(parts), width - cells(right) - 4))
        out.append(Row(spread(left, line(span(right, "dim")), width - 2), f"run {number}"))
    return out


def _logs(recent: Recent, now: float, width: int) -> list[Row]:
    out: list[Row] = []
    if recent.logs:
        out.append(heading(say("Other logs")))
        for number, log in enumerate(recent.logs):
            right = f"{show_bytes(log.size)}  {age_words(now - log.changed)}"
            left = line(cut_left(_below(log, recent.folder), width - cells(right) - 4))
            out.append(Row(spread(left, line(span(right, "dim")), width - 2), f"log {number}"))
    if recent.ray is not None:
        right = age_words(now - recent.ray.changed)
        out += [
            heading(say("Ray's newest session on this machine")),
            Row(spread(line(str(recent.ray.path)), line(span(right, "dim")), width - 2), "ray"),
        ]
    return out


def _below(found: FoundFile, folder: Path) -> str:
    try:
        return str(found.path.relative_to(folder))
    except ValueError:
        return str(found.path)


class ChooseScreen(StageScreen):
    """Choose a run; Enter opens it."""

    STAGE = "choose"
    TITLE_WORDS = mark("Which run died?")
    CLICKED_AGAIN = "go_on"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_on", "open", tooltip="read the marked run"),
        Binding("f", "files", "files", tooltip="choose script and log in a tree of folders"),
        Binding("p", "paste", "paste", tooltip="paste a log, a script, or a path"),
        Binding("d", "demo", "demo", tooltip="look at a bundled crash instead"),
        Binding("b", "machine", "this box", tooltip="what this machine has"),
        Binding("backspace", "forget", "forget", show=False, tooltip="forget what was chosen"),
        Binding("escape", "back", "back", show=False, tooltip="nothing lies before this screen"),
    ]

    @dataclass(eq=False)
    class Looked(Message):
        """A worker looked through the folder."""

        recent: Recent

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._recent: Recent | None = None

    def panes(self) -> Iterable[Widget]:
        """One page."""
        yield self.page(self.main_rows, "main", "open" if self._chosen else None)

    def on_mount(self) -> None:
        """Look through the folder meanwhile."""
        super().on_mount()
        self._look()

    @work(thread=True, exclusive=True, group="recent")
    def _look(self) -> None:
        if self.ui.offers.recent is not None:
            self.post_message(self.Looked(self.ui.offers.recent()))

    def on_choose_screen_looked(self, message: Looked) -> None:
        """Show what was found."""
        self._recent = message.recent
        self.reload()

    def on_screen_resume(self) -> None:
        """Back from the tree or from pasting: what was chosen stands on top, under the cursor."""
        if self._chosen:
            self.query_one("#main", Page).move_to("open")
        self.reload()

    @property
    def _chosen(self) -> bool:
        return self.ui.chosen_script is not None or bool(self.ui.chosen_logs)

    def main_rows(self, width: int) -> list[Row]:
        """Chosen and found."""
        ui = self.ui
        return choose_rows(self._recent, ui.chosen_script, ui.chosen_logs, time.time(), width)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter needs something to open."""
        offers = self.ui.offers
        if action == "demo":
            return offers.demo is not None
        if action == "paste":
            return offers.pasted is not None
        if action == "forget":
            return self._chosen
        return True

    def action_go_on(self) -> None:
        """Read the marked run."""
        key, recent = self.query_one("#main", Page).cursor or "", self._recent
        kind, _, number = key.partition(" ")
        if kind == "run" and recent is not None:
            run = recent.runs[int(number)]
            self.ui.chosen_script = run.script.path if run.script else None
            self.ui.chosen_logs = (run.log.path,) if run.log else ()
        elif kind in ("log", "ray") and recent is not None:
            found = recent.logs[int(number)] if kind == "log" else recent.ray
            self.ui.chosen_logs = (found.path,) if found else ()
        if self._chosen:
            self.post_message(FilesAsked())

    def action_back(self) -> None:
        """Nothing lies before this."""

    def action_forget(self) -> None:
        """Choose anew."""
        self.ui.chosen_script, self.ui.chosen_logs = None, ()
        self.reload()

    def action_files(self) -> None:
        """The tree of folders."""
        self.app.push_screen(FilesView(self.ui, Path.cwd()))

    def action_paste(self) -> None:
        """Pasted text."""
        self.app.push_screen(PasteView(self.ui))

    def action_demo(self) -> None:
        """The bundled crash."""
        self.post_message(DemoAsked())

    def action_machine(self) -> None:
        """What this box has."""
        self.post_message(MachineAsked())


def take(ui: UiState, path: Path) -> str:
    """Choose a file: a script by its name's end, anything else as a log; returns the sentence that says so."""
    if path.suffix.lower() in (*SCRIPTS, ".yaml", ".yml", ".json"):
        ui.chosen_script = path
        return say(words.CHOSEN_SCRIPT, name=path.name)
    ui.chosen_logs = (path,)
    return say(words.CHOSEN_LOG, name=path.name)


MOST = 500
"""Entries of one folder that are shown."""


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
