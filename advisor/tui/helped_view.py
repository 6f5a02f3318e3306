"""Asks once whether a fix that was written in this folder helped; a yes becomes a case of the user's own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.tui.screen import BaseScreen, Overlay
from advisor.tui.ui_text import BLANK, Row, paragraph

if TYPE_CHECKING:
    from advisor.saved_fix import SavedFix


class HelpedView(Overlay):
    """One question with two keys; Esc leaves it open and it is not asked again."""

    TITLE_WORDS = mark("Did it get past?")
    TYPES = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "helped(True)", "yes, past it", tooltip="it got past where it had died: kept as a case of yours"),
        Binding("n", "helped(False)", "no, not past it", tooltip="nothing is kept"),
        Binding("escape", "helped(None)", "not known", tooltip="not known; it is not asked again"),
    ]
    fix: SavedFix

    @classmethod
    def about(cls, fix: SavedFix, screen: BaseScreen) -> HelpedView:
        """The question about this fix, over a screen."""
        made = cls.over(screen)
        made.fix = fix
        return made

    def main_rows(self, width: int) -> list[Row]:
        fix = self.fix
        when = time.strftime("%Y-%m-%d", time.localtime(fix.when))
        told = say("On {day} {script} was written here, with:", day=when, script=clean_line(fix.script))
        asked = say("Did the run get past the place where it had died?")
        kept = say("If it did, the plan says so the next time something dies like this. Nothing is sent anywhere.")
        changes = (row for change in fix.changes for row in paragraph(clean_line(change), width, 2, "strong"))
        return [*paragraph(told, width), BLANK, *changes, BLANK, *paragraph(asked, width), *paragraph(kept, width)]

    def action_helped(self, helped: bool | None) -> None:
        from advisor.saved_fix import answer_fix

        file = answer_fix(self.fix, helped)
        if file is not None:
            self.ui.note = say("kept as a case of yours: {file}", file=clean_line(str(file)))
        self.dismiss()
