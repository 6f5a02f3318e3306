"""Asks which run died where nothing was given: recent runs, or the ways to files, pasted text and the demo."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.worker import get_current_worker

from advisor.hostile import cells, clean_line
from advisor.language import mark, say
from advisor.line_breaks import cut_left
from advisor.recent import FoundFile, Recent, RecentRun
from advisor.tui import ui_text as words
from advisor.tui.driver import expected_trouble
from advisor.tui.files_view import FilesView, PasteView
from advisor.tui.page import Page
from advisor.tui.proof import headline
from advisor.tui.screen import READABLE, StageScreen
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import BLANK, Row, heading, line, paragraph, span, spread
from advisor.units import show_bytes

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
    recent: Recent | None,
    script: Path | None,
    logs: tuple[Path, ...],
    now: float,
    width: int,
    endings: Mapping[Path, str],
) -> list[Row]:
    """What was chosen, then what was found, each log with how it ended. Keys: "run N", "log N", "ray", "open"."""
    out = paragraph(say("Which run died? Choose its script and its log, or either of them."), width, tone="strong")
    if script is not None or logs:
        for label, path in ((words.SCRIPT, script), *((words.LOG, log) for log in logs)):
            out += paragraph(f"{say(label)} {path}", width, 2) if path is not None else []
        out.append(Row(line("  ", span(say("read these"), "mark")), "open"))
    out.append(BLANK)
    if recent is None:
        return [*out, *paragraph(say("looking through this folder …"), width, tone="dim")]
    out += _runs(recent, now, width, endings) + _logs(recent, now, width, endings)
    if not recent.runs and not recent.logs and recent.ray is None:
        out += paragraph(say(NOTHING_HERE, folder=recent.folder), width)
    return [*out, BLANK, *paragraph(say(words.HOW_TO_GIVE, command=_command(recent, script, logs)), width, tone="dim")]


def _command(recent: Recent, script: Path | None, logs: tuple[Path, ...]) -> str:
    """The command that opens what was chosen, else the newest run of the folder; without one, names as an example."""
    if script is None and not logs:
        newest = recent.runs[0] if recent.runs else RecentRun(None, recent.logs[0] if recent.logs else None)
        script, logs = (newest.script.path if newest.script else None), ((newest.log.path,) if newest.log else ())
    if script is None and not logs:
        script, logs = Path("run.sh"), (Path("train.log"),)
    parts = [script] if script is not None else []
    named = [*parts, *(part for log in logs for part in ("--log", log))]
    told = (shlex.quote(_below(part, recent.folder) if isinstance(part, Path) else part) for part in named)
    return clean_line(" ".join(("rl-oom-advisor", *told)))


def _runs(recent: Recent, now: float, width: int, endings: Mapping[Path, str]) -> list[Row]:
    if not recent.runs:
        return []
    out = [heading(say(words.RUNS_HERE), say(words.NEWEST_FIRST), width)]
    for number, run in enumerate(recent.runs):
        parts = [_below(one.path, recent.folder) for one in (run.script, run.log) if one is not None]
        right = age_words(now - run.changed)
        if run.log is not None:
            right = f"{show_bytes(run.log.size)}  {right}"
        left = line(cut_left(" + ".join(parts), width - cells(right) - 4))
        out.append(Row(spread(left, line(span(right, "dim")), width - 2), f"run {number}"))
        out += _ending(run.log, endings, width, f"run {number}")
    return out


def _ending(log: FoundFile | None, endings: Mapping[Path, str], width: int, key: str) -> list[Row]:
    """How a log ended, as far as it was looked at."""
    told = endings.get(log.path, "") if log is not None else ""
    return paragraph(told, width - 2, 2, "dim", key) if told else []


def _logs(recent: Recent, now: float, width: int, endings: Mapping[Path, str]) -> list[Row]:
    out: list[Row] = []
    if recent.logs:
        out.append(heading(say("Other logs")))
        for number, log in enumerate(recent.logs):
            right = f"{show_bytes(log.size)}  {age_words(now - log.changed)}"
            left = line(cut_left(_below(log.path, recent.folder), width - cells(right) - 4))
            out.append(Row(spread(left, line(span(right, "dim")), width - 2), f"log {number}"))
            out += _ending(log, endings, width, f"log {number}")
    if recent.ray is not None:
        right = age_words(now - recent.ray.changed)
        out += [
            heading(say("Ray's newest session on this machine")),
            Row(spread(line(str(recent.ray.path)), line(span(right, "dim")), width - 2), "ray"),
            *_ending(recent.ray, endings, width, "ray"),
        ]
    return out


def _below(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


class ChooseScreen(StageScreen):
    STAGE = "choose"
    TITLE_WORDS = mark("Which run died?")
    WIDEST = READABLE
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

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._recent: Recent | None = None
        self._endings: dict[Path, str] = {}

    def panes(self) -> Iterable[Widget]:
        yield self.page(self.main_rows, "main", "open" if self._chosen else None)

    def on_mount(self) -> None:
        super().on_mount()
        self._look()

    @work(thread=True, exclusive=True, group="recent")
    def _look(self) -> None:
        worker, offers = get_current_worker(), self.ui.offers
        if offers.recent is None:
            return
        recent = offers.recent()
        self.call_later(self._looked, recent)
        logs = [run.log for run in recent.runs if run.log is not None]
        for log in (*logs, *recent.logs, *([recent.ray] if recent.ray is not None else [])):
            if offers.ending is None or worker.is_cancelled:
                return
            with suppress(*expected_trouble()):  # what cannot be read says so when it is chosen
                crash = offers.ending(log.path)
                if crash is not None:
                    self.call_later(self._ended, log.path, headline(crash))

    def _looked(self, recent: Recent) -> None:
        self._recent = recent
        self.reload()

    def _ended(self, log: Path, told: str) -> None:
        self._endings[log] = told
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
        ui = self.ui
        return choose_rows(self._recent, ui.chosen_script, ui.chosen_logs, time.time(), width, self._endings)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter needs something to open."""
        offers = self.ui.offers
        if action == "demo":
            return offers.demo is not None
        if action == "paste":
            return offers.pasted is not None
        if action == "forget":
            return self._chosen
        if action == "go_on":
            found = self._recent
            return self._chosen or (found is not None and bool(found.runs or found.logs or found.ray))
        return True

    def action_go_on(self) -> None:
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
            self.advisor.open_files()

    def action_back(self) -> None:
        """Nothing lies before this."""

    def action_forget(self) -> None:
        self.ui.chosen_script, self.ui.chosen_logs = None, ()
        self.reload()

    def action_files(self) -> None:
        self.app.push_screen(FilesView(self.ui, Path.cwd()))

    def action_paste(self) -> None:
        self.app.push_screen(PasteView(self.ui))

    def action_demo(self) -> None:
        self.advisor.open_demo()

    def action_machine(self) -> None:
        self.advisor.look_at_machine()
