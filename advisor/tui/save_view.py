"""Shows the exact change and what was verified about it, then saves it: where to, overwriting, what comes next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from advisor.demo import is_bundled
from advisor.hostile import cells
from advisor.language import mark, say, say_count
from advisor.line_breaks import cut
from advisor.regex import regex
from advisor.report.phrases import fits_words
from advisor.tui.driver import Preview, Saved
from advisor.tui.field_view import text_field
from advisor.tui.gauges_view import left_behind
from advisor.tui.page import Page
from advisor.tui.screen import BaseScreen, Overlay, StageScreen
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import BLANK, Row, Tone, Toned, labelled, line, pad, pad_left, paragraph, span

if TYPE_CHECKING:
    from advisor.state import State

_REPORT_ONLY = mark("It explains every change and what to do by hand. {script} is not touched.")
_BESIDE = mark("{script} itself is not touched. The report that explains every change goes beside it: {report}")
_ENTER = mark("Enter writes to:")
_ENDS = mark("Enter or q ends; this is printed again then, for copying.")


def report_rows(script: str, width: int) -> list[Row]:
    """What will be written where no file changes."""
    return [
        *paragraph(say("Write the report"), width, tone="strong"),
        *paragraph(say(_REPORT_ONLY, script=script), width),
        BLANK,
        *paragraph(say(_ENTER), width, tone="title"),
    ]


def save_rows(destination: str, script: str, width: int) -> list[Row]:
    """What will be written where."""
    report = Path(destination).with_suffix(".md").name if destination else ""
    return [
        *paragraph(say("Write the script that fits"), width, tone="strong"),
        *paragraph(say(_BESIDE, script=script, report=report), width),
        BLANK,
        *paragraph(say(_ENTER), width, tone="title"),
    ]


def overwrite_rows(there: Sequence[Path], width: int) -> list[Row]:
    """The question before files are replaced."""
    return [row for one in there for row in paragraph(say("{file} exists already.", file=one), width, tone="strong")]


def saved_rows(saved: Saved, width: int, state: State | None = None, left: Sequence[str] = ()) -> list[Row]:
    """Done: what to run next, and where to read why."""
    out = [*paragraph(say("Written."), width, tone="good"), BLANK]
    if saved.path != saved.report:
        out += labelled(say("Script"), str(saved.path), width)
    if saved.launch is not None:
        out += labelled(say("Started by"), str(saved.launch), width)
    out += [*labelled(say("Report"), str(saved.report), width), BLANK]
    for note in saved.notes:
        out += paragraph(note, width)
    if state is not None and saved.path != saved.report and state.plan.fit.verdict == "does_not_fit":
        out += paragraph(fits_words(state.plan), width, tone="warn")
    for number, step in enumerate(saved.by_hand):
        out += labelled("" if number else say("By hand first"), step, width, tone="warn")
    if saved.next_command:
        out += labelled(say("Next"), saved.next_command, width, tone="strong")
    return [
        *out,
        *(before_start(saved, state, left, width) if state else []),
        BLANK,
        *paragraph(say(_ENDS), width, tone="dim"),
    ]


def before_start(saved: Saved, state: State, left: Sequence[str], width: int) -> list[Row]:
    """What to look at before the run starts again, of what is known. `left`: pids that a dead run left on the cards."""
    nodes, told = state.run.topology.nodes, []
    if is_bundled(state.asked.script):
        return []
    if left:
        told.append(say("end what the dead run left on the cards: kill {pids}", pids=" ".join(left)))
    written = [change for step in state.plan.selected() for change in step.changes if change.since]
    package = next((one.package for one in state.knowledge.frameworks if one.framework == state.run.framework), "")
    for change in written if package and saved.path != saved.report else ():
        names = {"key": change.key, "since": change.since, "package": package}
        told.append(say("which version runs is not known, and {key} exists {since}: pip show {package}", **names))
    if nodes > 1 and saved.path != saved.report:
        told.append(say("each of the {count} nodes must see the new file: on a shared folder, or copied", count=nodes))
    if state.asked.script is not None and saved.path != saved.report:
        files = " ".join(shlex.quote(str(one)) for one in (state.asked.script, saved.launch or saved.path))
        told.append(say("to see once more what changed: {command}", command=f"diff {files}"))
    if saved.next_command and not saved.next_command.startswith("sbatch"):
        told.append(
            say("to know more if it dies again: {command}", command=f"rl-oom-advisor watch -- {saved.next_command}")
        )
    rows = [row for one in told for row in paragraph(f"· {one}", width, 2)]
    return [BLANK, *paragraph(say("Before you start it"), width, tone="title"), *rows] if rows else []


def last_words(saved: Saved) -> str:
    """What stays in the terminal after the app has gone."""
    told = [(say("written"), str(saved.path))] if saved.path != saved.report else []
    told += [(say("written"), str(saved.launch))] if saved.launch is not None else []
    told += [(say("report"), str(saved.report)), *((say("by hand"), step) for step in saved.by_hand)]
    told += [(say("next"), saved.next_command)] if saved.next_command else []
    return "\n".join(f"{pad(label, 8)} {what}" for label, what in told)


class SaveScreen(BaseScreen):
    """Save, second half: the destination can be edited."""

    TITLE_WORDS = mark("Saving")
    TYPES = True
    STACKED = True
    AUTO_FOCUS = "#destination"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "write", "write", tooltip="write script and report"),
        Binding("escape", "back", "back", tooltip="the diff; nothing is written"),
        Binding("ctrl+c", "app.leave", "quit", tooltip="quit; letters belong to the file name here"),
    ]

    def panes(self) -> Iterable[Widget]:
        destination = savable(self.ui.preview)
        yield self.page(self.main_rows, "main")
        yield text_field("destination", str(destination or ""))

    def main_rows(self, width: int) -> list[Row]:
        name = self.state.asked.script.name if self.state.asked.script else say("the script")
        preview, fields = self.ui.preview, self.query(Input)
        if preview is not None and not preview.diff:
            return report_rows(name, width)
        return save_rows(fields.first().value if fields else "", name, width)

    @on(Input.Changed)
    def _follow(self) -> None:
        self.query_one("#main", Page).reload()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_write()

    def action_write(self) -> None:
        """Ask the app to write; it comes back with a question where the file exists."""
        value = self.query_one(Input).value.strip()
        if value:
            self.advisor.save(Path(value).expanduser(), force=False)

    def action_back(self) -> None:
        self.dismiss()


class OverwriteScreen(Overlay):
    """The question before a file is replaced; nothing is the default."""

    TITLE_WORDS = mark("Overwriting")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "overwrite", "replace it", tooltip="replace the file"),
        Binding("n,enter", "elsewhere", "another name", tooltip="keep it and choose another name"),
    ]

    def __init__(self, ui: UiState, destination: Path) -> None:
        super().__init__(ui)
        self._destination = destination

    def main_rows(self, width: int) -> list[Row]:
        launch = self.ui.preview.launch if self.ui.preview is not None else None
        written = (self._destination, self._destination.with_suffix(".md"), *([launch] if launch is not None else []))
        return overwrite_rows([one for one in written if os.path.lexists(one)] or written[:1], width)

    def action_elsewhere(self) -> None:
        self.dismiss()
        if not any(isinstance(one, SaveScreen) for one in self.app.screen_stack):
            self.app.push_screen(SaveScreen(self.ui))

    def action_overwrite(self) -> None:
        self.dismiss()
        self.advisor.save(self._destination, force=True)


class SavedScreen(StageScreen):
    STAGE, BACK_TO = "saved", "plan"
    TITLE_WORDS = mark("Written")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "app.leave", "done", tooltip="end; the next command is printed again"),
        Binding("c", "copy", "copy command", tooltip="copy the next command"),
        Binding("escape", "back", "back", tooltip="the plan, to try another set of changes"),
    ]

    def main_rows(self, width: int) -> list[Row]:
        saved, taken = self.ui.saved, self.ui.snapshot
        left = left_behind(taken, time(), self.ui.run_ended) if taken is not None else {}
        return saved_rows(saved, width, self.state, [str(pid) for pid in left]) if saved else []

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Where there is no next command there is none to copy."""
        return action != "copy" or bool(self.ui.saved and self.ui.saved.next_command)

    def action_copy(self) -> None:
        if self.ui.saved is not None:
            self.advisor.copy(f"{self.ui.saved.next_command}\n", mark("the next command"))


_HUNK = regex(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_NUMBER = 5
_PIECES = 3
"""Terminal lines that a changed line takes at most."""
SHIFT = 16
"""Columns that one key moves long lines."""
_NOT_EXACT = mark("The change cannot be made exactly, so nothing would be written.")
_DO_IT = mark("Do it where the run is started, on every node, and start again.")
_ENTER_WRITES = mark("Enter writes {file} and {report}; {script} stays as it is.")
_ENTER_WRITES_BOTH = mark(
    "Enter writes {file}, {launch}, which starts it, and {report}; no file that is there changes."
)
_ENTER_REPORTS = mark("Enter writes the report that explains this, {file}; nothing else is written.")


def diff_rows(diff: str, width: int = 0, shift: int = 0) -> list[Row]:
    """A unified diff as rows: line number, sign, text. Signs carry the meaning, colours repeat it.

    What changes is in sight: a changed line that is longer than `width` goes on below, and one that is much longer
    begins shortly before its change. `shift` columns of the text are out of sight on the left.
    """
    out: list[Row] = []
    old = new = 0
    lines = diff.splitlines()
    changes = _changes(lines) if width and not shift else {}
    room = width - _NUMBER - 4
    for at, text in enumerate(lines):
        hunk = _HUNK.match(text)
        if hunk is not None:
            old, new = int(hunk.group(1)), int(hunk.group(2))
            if out:
                out.append(Row(line(span(pad_left("⋮", _NUMBER), "dim"))))
            continue
        if old == new == 0:
            continue  # the two file names stand in the title
        sign, body = text[:1], text[1:].expandtabs(4)
        if sign == "\\":
            out.append(Row(line(span(" " * _NUMBER + "    " + text[2:], "dim"))))
            continue
        number = old if sign == "-" else new
        tone: Tone = {"-": "removed", "+": "added"}.get(sign, "plain")  # type: ignore[assignment]
        parts = _in_sight(body, room, changes[at]) if at in changes else [body[shift:]]
        for nth, part in enumerate(parts):
            head = f"  {sign or ' '} " if nth == 0 else "    "
            told = pad_left("" if nth else str(number), _NUMBER)
            out.append(Row(line(Toned(told, "dim"), span(f"{head}{part}", tone))))
        old, new = old + (sign != "+"), new + (sign != "-")
    return out


def _changes(lines: Sequence[str]) -> dict[int, int]:
    """Number of a removed or added line → where it begins to differ from the line of the same place that is most like
    it; 0 where all of it is new or gone.
    """
    found: dict[int, int] = {}
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end][:1] in ("-", "+"):
            end += 1
        block = range(at, end)
        for one in block:
            others = [lines[other][1:] for other in block if lines[other][0] != lines[one][0]]
            found[one] = max((_shared(lines[one][1:], other) for other in others), default=0)
        at = end + 1
    return found


def _shared(one: str, other: str) -> int:
    """Characters with which both begin."""
    return next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))  # noqa: B905


def _in_sight(text: str, room: int, change: int) -> list[str]:
    """A changed line in pieces of `room` columns; only the stretch around its change where it has very many."""
    if cells(text) > _PIECES * room and change > room // 2:
        begin = text.rfind(" ", change - room // 2, change) + 1 or change - room // 4
        return [cut(f"…{text[begin:]}", room)]
    if cells(text.rstrip(" \\")) < room:  # a line of its own for the sign that the line goes on says nothing
        return [cut(text, room)]
    pieces: list[str] = []
    while cells(text) > room and len(pieces) < _PIECES - 1:
        most = len(cut(text, room)) - 1
        end = text.rfind(" ", room // 2, most) + 1 or most
        pieces.append(text[:end])
        text = text[end:]
    return [*pieces, cut(text, room)]


def counts(diff: str) -> str:
    """Like "3 lines added, 1 removed"."""
    body = [text for text in diff.splitlines() if not text.startswith(("+++", "---"))]
    added = sum(text.startswith("+") for text in body)
    removed = sum(text.startswith("-") for text in body)
    return say_count(
        "{number} line added, {removed} removed", "{number} lines added, {removed} removed", added, removed=removed
    )


def preview_rows(preview: Preview | None, script: str, width: int, shift: int = 0) -> list[Row]:
    """Title, diff, proof; or why there is nothing to write."""
    if preview is None:
        return paragraph(say("making the change and reading it back …"), width)
    out: list[Row] = []
    if not script:
        out += paragraph(_nothing_to_write(preview, script), width, tone="strong")
    elif preview.refused:
        out += paragraph(say(_NOT_EXACT), width, tone="strong")
        out += paragraph(preview.refused, width, tone="warn")
    elif not preview.diff:
        out += paragraph(_nothing_to_write(preview, script), width, tone="strong")
    else:
        target = preview.destination.name if preview.destination else say("standard output")
        out += _file_rows(f"{preview.source or script} → {target}", preview.diff, width, shift)
        if preview.launch is not None:
            out += [BLANK, *_file_rows(f"{script} → {preview.launch.name}", preview.launch_diff, width, shift)]
    if preview.by_hand:
        out += [BLANK, *paragraph(say("To be done by hand:"), width, tone="title")]
        for step in preview.by_hand:
            out += paragraph(step, width, 2)
        if not preview.diff:
            out += [BLANK, *paragraph(say(_DO_IT), width)]
    if preview.proof:
        out += [BLANK, *paragraph(say("Verified: {proofs}", proofs=" · ".join(preview.proof)), width, tone="good")]
    destination = savable(preview)
    if destination is not None:
        both = preview.source not in ("", script)
        script = say("{one} and {other}", one=script, other=preview.source) if both else script
        names = {"file": str(destination), "report": destination.with_suffix(".md").name, "script": script}
        told = _ENTER_WRITES if preview.diff else _ENTER_REPORTS
        if preview.launch is not None:
            told, names["launch"] = _ENTER_WRITES_BOTH, str(preview.launch)
        out += [BLANK, *paragraph(say(told, **names), width)]
    return out


def _file_rows(title: str, diff: str, width: int, shift: int) -> list[Row]:
    """One file's changes under its names."""
    return [Row(line(span(title, "strong"), span(f"   {counts(diff)}", "dim"))), *diff_rows(diff, width, shift)]


def savable(preview: Preview | None) -> Path | None:
    """Where Enter would write: the script that fits, else the report alone; None where there is nothing to write."""
    if preview is None:
        return None
    return preview.destination if preview.diff else preview.report


def _nothing_to_write(preview: Preview, script: str) -> str:
    if not script:
        return say("No launch script was given, so there is nothing to write. The plan can be followed by hand.")
    if preview.by_hand:
        return say("{script} stays as it is: what is on is not the script's to change.", script=script)
    return say("The steps that are on change no file. Esc goes back to the plan.")


class DiffScreen(StageScreen):
    """Save, first half: look before anything is written."""

    STAGE = "save"
    TITLE_WORDS = mark("The diff")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_on", "write", tooltip="write script and report, as the last line says"),
        Binding("s", "elsewhere", "elsewhere …", tooltip="write it under another name"),
        Binding("left,h", "shift(-1)", "shift", key_display="← →", tooltip="move long lines sideways"),
        Binding("right,l", "shift(1)", show=False),
        Binding("c", "copy", "copy diff", show=False, tooltip="copy the diff, as git apply takes it"),
        Binding("escape", "back", "back", tooltip="the plan"),
    ]

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._shift = 0

    def main_rows(self, width: int) -> list[Row]:
        script = self.state.asked.script
        return preview_rows(self.ui.preview, script.name if script else "", width, self._shift)

    def action_go_on(self) -> None:
        destination = savable(self.ui.preview)
        if destination is not None:
            self.advisor.save(destination, force=False)

    def action_elsewhere(self) -> None:
        self.app.push_screen(SaveScreen(self.ui))

    def words(self) -> dict[str, str]:
        preview = self.ui.preview
        return {"go_on": say("write" if preview and preview.diff else "write the report")}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a diff there is nothing to save."""
        if action in ("go_on", "elsewhere"):
            return savable(self.ui.preview) is not None
        if action in ("shift", "copy"):
            return self.ui.preview is not None and bool(self.ui.preview.diff)
        return True

    def action_copy(self) -> None:
        if self.ui.preview is not None:
            preview = self.ui.preview
            self.advisor.copy(preview.diff + preview.launch_diff, mark("the diff"))

    def action_shift(self, by: int) -> None:
        self._shift = max(0, self._shift + by * SHIFT)
        self.reload()
