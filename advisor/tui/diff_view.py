"""The exact change: a diff with signs and colours, and what was verified about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from advisor.language import mark, say, say_count
from advisor.tui.driver import Preview
from advisor.tui.frame import StageScreen
from advisor.tui.sitting import Copied, Sitting
from advisor.tui.ui_text import BLANK, THE_DIFF, Row, Span, Tone, line, pad_left, paragraph, span

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_NUMBER = 5
SHIFT = 16
"""Columns that one key moves long lines."""
_NOT_EXACT = mark("The change cannot be made exactly, so nothing would be written.")
_DO_IT = mark("Do it in the environment that trains, on every node, and start again.")
_ENTER_WRITES = mark("Enter writes the report that explains this; nothing else is written.")


def diff_rows(diff: str, shift: int = 0) -> list[Row]:
    """A unified diff as rows: line number, sign, text. Signs carry the meaning, colours repeat it.

    `shift` columns of the text are out of sight on the left.
    """
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
        out.append(
            Row(line(Span(pad_left(str(number), _NUMBER), "dim"), span(f"  {sign or ' '} {body[shift:]}", tone)))
        )
        old, new = old + (sign != "+"), new + (sign != "-")
    return out


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
        title = line(span(f"{script} → {target}", "strong"), span(f"   {counts(preview.diff)}", "dim"))
        out += [Row(title), *diff_rows(preview.diff, shift)]
    if preview.by_hand:
        out += [BLANK, *paragraph(say("To be done by hand:"), width, tone="title")]
        for step in preview.by_hand:
            out += paragraph(step, width, 2)
        if not preview.diff:
            out += [BLANK, *paragraph(say(_DO_IT), width)]
    if savable(preview) and not preview.diff:
        out += [BLANK, *paragraph(say(_ENTER_WRITES), width)]
    if preview.proof:
        out += [BLANK, *paragraph(say("Verified: {proofs}", proofs=" · ".join(preview.proof)), width, tone="good")]
    return out


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

    TITLE_WORDS = mark("The diff")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_on", "save …", tooltip="choose where to write it"),
        Binding("left,h", "shift(-1)", "shift", key_display="← →", tooltip="move long lines sideways"),
        Binding("right,l", "shift(1)", show=False),
        Binding("c", "copy", "copy diff", show=False, tooltip="copy the diff, as git apply takes it"),
        Binding("escape", "back", "back", tooltip="the plan"),
    ]

    def __init__(self, sitting: Sitting) -> None:
        super().__init__(sitting)
        self._shift = 0

    def panes(self) -> Iterable[Widget]:
        """One page."""
        yield self.page("main_rows", "main")

    def main_rows(self, width: int) -> list[Row]:
        """The preview."""
        script = self.state.asked.script
        return preview_rows(self.sitting.preview, script.name if script else "", width, self._shift)

    def words(self) -> dict[str, str]:
        """What Enter leads to."""
        preview = self.sitting.preview
        return {"go_on": say("save …" if preview and preview.diff else "save the report …")}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a diff there is nothing to save."""
        if action == "go_on":
            return savable(self.sitting.preview) is not None
        if action in ("shift", "copy"):
            return self.sitting.preview is not None and bool(self.sitting.preview.diff)
        return True

    def action_copy(self) -> None:
        """The diff as it is."""
        if self.sitting.preview is not None:
            self.post_message(Copied(self.sitting.preview.diff, THE_DIFF))

    def action_shift(self, by: int) -> None:
        """Move the text sideways."""
        self._shift = max(0, self._shift + by * SHIFT)
        self.reload()
