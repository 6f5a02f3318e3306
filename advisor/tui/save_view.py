"""Saving: where to, the question before overwriting, and the one command that comes next."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from advisor.language import mark, say
from advisor.tui.diff_view import savable
from advisor.tui.driver import Saved
from advisor.tui.frame import BACK, Frame, Overlay, StageScreen
from advisor.tui.keys import Hint
from advisor.tui.page import Page
from advisor.tui.sitting import Copied, SaveAsked, Sitting
from advisor.tui.ui_text import BLANK, THE_COMMAND, Row, labelled, pad, paragraph

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


def overwrite_rows(destination: Path, width: int) -> list[Row]:
    """The question before a file is replaced."""
    return [
        *paragraph(say("{file} exists already.", file=destination), width, tone="strong"),
        *paragraph(say("y replaces it · n or Esc goes back to choose another name"), width),
    ]


def saved_rows(saved: Saved, width: int) -> list[Row]:
    """Done: what to run next, and where to read why."""
    out = [*paragraph(say("Written."), width, tone="good"), BLANK]
    if saved.path != saved.report:
        out += labelled(say("Script"), str(saved.path), width)
    out += [*labelled(say("Report"), str(saved.report), width), BLANK]
    for note in saved.notes:
        out += paragraph(note, width)
    for number, step in enumerate(saved.by_hand):
        out += labelled("" if number else say("By hand first"), step, width, tone="warn")
    if saved.next_command:
        out += labelled(say("Next"), saved.next_command, width, tone="strong")
    return [*out, BLANK, *paragraph(say(_ENDS), width, tone="dim")]


def last_words(saved: Saved) -> str:
    """What stays in the terminal after the app has gone."""
    told = [(say("written"), str(saved.path))] if saved.path != saved.report else []
    told += [(say("report"), str(saved.report)), *((say("by hand"), step) for step in saved.by_hand)]
    told += [(say("next"), saved.next_command)] if saved.next_command else []
    return "\n".join(f"{pad(label, 8)} {what}" for label, what in told)


class SaveScreen(Frame):
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
        """What will be written, and the field."""
        destination = savable(self.sitting.preview)
        yield self.page("main_rows", "main")
        field = Input(str(destination or ""), id="destination", compact=True, select_on_focus=False)
        field.cursor_blink = False
        yield field

    def main_rows(self, width: int) -> list[Row]:
        """What will be written where."""
        name = self.state.asked.script.name if self.state.asked.script else say("the script")
        preview, fields = self.sitting.preview, self.query(Input)
        if preview is not None and not preview.diff:
            return report_rows(name, width)
        return save_rows(fields.first().value if fields else "", name, width)

    def shared_hints(self) -> list[Hint]:
        """No single letters: they are typed."""
        return []

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
            self.post_message(SaveAsked(Path(value).expanduser(), force=False))

    def action_back(self) -> None:
        """Return to the diff."""
        self.dismiss()


class OverwriteScreen(Overlay):
    """The question before a file is replaced; nothing is the default."""

    TITLE_WORDS = mark("Overwriting")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "overwrite", "replace it", tooltip="replace the file"),
        Binding("n,enter", "back", "keep it", key_display="n", tooltip="go back and choose another name"),
        BACK,
    ]

    def __init__(self, sitting: Sitting, destination: Path) -> None:
        super().__init__(sitting)
        self._destination = destination

    def panes(self) -> Iterable[Widget]:
        """The question."""
        yield self.page("main_rows", "main")

    def main_rows(self, width: int) -> list[Row]:
        """The question."""
        return overwrite_rows(self._destination, width)

    def action_overwrite(self) -> None:
        """Write over it."""
        self.dismiss()
        self.app.post_message(SaveAsked(self._destination, force=True))


class SavedScreen(StageScreen):
    """Done."""

    TITLE_WORDS = mark("Written")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "app.leave", "done", tooltip="end; the next command is printed again"),
        Binding("c", "copy", "copy command", tooltip="copy the next command"),
        Binding("escape", "back", "back", tooltip="the plan, to try another set of changes"),
    ]

    def panes(self) -> Iterable[Widget]:
        """What was written."""
        yield self.page("main_rows", "main")

    def main_rows(self, width: int) -> list[Row]:
        """What was written."""
        saved = self.sitting.saved
        return saved_rows(saved, width) if saved else []

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Where there is no next command there is none to copy."""
        return action != "copy" or bool(self.sitting.saved and self.sitting.saved.next_command)

    def action_copy(self) -> None:
        """The next command."""
        if self.sitting.saved is not None:
            self.post_message(Copied(f"{self.sitting.saved.next_command}\n", THE_COMMAND))
