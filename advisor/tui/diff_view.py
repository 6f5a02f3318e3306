"""The exact change: a diff with signs and colours, and what was verified about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from advisor.tui.driver import Preview
from advisor.tui.frame import StageScreen
from advisor.tui.ui_text import BLANK, Row, Span, Tone, counted, line, pad_left, paragraph, span

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_NUMBER = 5


def diff_rows(diff: str) -> list[Row]:
    """A unified diff as rows: line number, sign, text. Signs carry the meaning, colours repeat it."""
    out: list[Row] = []
    old = new = 0
    for text in diff.splitlines():
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
        out.append(Row(line(Span(pad_left(str(number), _NUMBER), "dim"), span(f"  {sign or ' '} {body}", tone))))
        old, new = old + (sign != "+"), new + (sign != "-")
    return out


def counts(diff: str) -> str:
    """Like "3 lines added, 1 removed"."""
    body = [text for text in diff.splitlines() if not text.startswith(("+++", "---"))]
    added = sum(text.startswith("+") for text in body)
    removed = sum(text.startswith("-") for text in body)
    return f"{counted(added, 'line')} added, {removed} removed"


def preview_rows(preview: Preview | None, script: str, width: int) -> list[Row]:
    """Title, diff, proof; or why there is nothing to write."""
    if preview is None:
        return paragraph("making the change and reading it back …", width)
    out: list[Row] = []
    if preview.refused:
        out += paragraph("The change cannot be made exactly, so nothing would be written.", width, tone="strong")
        out += paragraph(preview.refused, width, tone="warn")
    elif not preview.diff:
        out += paragraph(_nothing_to_write(preview, script), width, tone="strong")
    else:
        target = preview.destination.name if preview.destination else "standard output"
        title = line(span(f"{script} → {target}", "strong"), span(f"   {counts(preview.diff)}", "dim"))
        out += [Row(title), *diff_rows(preview.diff)]
    if preview.by_hand:
        out += [BLANK, *paragraph("To be done by hand:", width, tone="title")]
        for step in preview.by_hand:
            out += paragraph(step, width, 2)
    if preview.proof:
        out += [BLANK, *paragraph("Verified: " + " · ".join(preview.proof), width, tone="good")]
    return out


def _nothing_to_write(preview: Preview, script: str) -> str:
    if preview.destination is None and not script:
        return "No launch script was given, so there is nothing to write. The plan can be followed by hand."
    return "The steps that are on change no file. Esc goes back to the plan."


class DiffScreen(StageScreen):
    """Save, first half: look before anything is written."""

    TITLE_WORDS = "The diff"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_on", "save …", tooltip="choose where to write it"),
        Binding("escape", "back", "back", tooltip="the plan"),
    ]

    def panes(self) -> Iterable[Widget]:
        """One page."""
        yield self.page("main_rows", "main")

    def main_rows(self, width: int) -> list[Row]:
        """The preview."""
        script = self.state.asked.script
        return preview_rows(self.sitting.preview, script.name if script else "", width)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a diff there is nothing to save."""
        if action == "go_on":
            preview = self.sitting.preview
            return preview is not None and bool(preview.diff) and preview.destination is not None
        return True
