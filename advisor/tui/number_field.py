"""Holds the number that is being written for a step of the plan: what it leads to, and which numbers would fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from advisor.language import mark, say
from advisor.tui.ui_text import Row, Toned, TonedLine, line, paragraph, span

if TYPE_CHECKING:
    from advisor.plan.own_number import Fitting
    from advisor.plan.plan import PlanStep
    from advisor.state import State

MOST = 12
"""Characters of a number."""
ALLOWED = frozenset("0123456789.")


@dataclass
class NumberField:
    """A number as it is typed, over the plan as it stands."""

    step: PlanStep
    text: str
    draft: State | None = None
    """The session with that number; None while it is computed, or where it is refused."""
    refused: str = ""
    fitting: Fitting | None = None
    """None while it is computed."""
    fresh: bool = True
    """Nothing was typed yet: the first digit replaces what stands there."""
    asked: int = field(default=0)
    """How often the session was asked: only the answer to the last question counts."""

    @property
    def untouched(self) -> bool:
        """It stands as the plan has it."""
        return self.text == self.step.number

    def typed(self, characters: str) -> bool:
        """Add what belongs to a number; whether anything did."""
        kept = "".join(one for one in characters if one in ALLOWED)
        if kept:
            self.text = (kept if self.fresh else self.text + kept)[:MOST]
            self.fresh = False
        return bool(kept)

    def rubbed(self) -> None:
        """Without its last character."""
        self.text, self.fresh = self.text[:-1], False

    def moved(self, by: int) -> bool:
        """To the next number on this side that the framework allows; whether there is one."""
        values = [(one.value, one.text) for one in self.fitting.tried] if self.fitting is not None else []
        try:
            here = float(self.text)
        except ValueError:
            here = values[0][0] if values else 0.0
        further = [text for value, text in values if (value > here if by > 0 else value < here)]
        if further:
            self.text, self.fresh = further[0 if by > 0 else -1], True
        return bool(further)

    def words(self, old: str) -> TonedLine:
        return line(span(old), " → ", Toned(f"{self.text}▌" if not self.fresh else f"[{self.text}]", "mark"))

    def rows(self, width: int, indent: int) -> list[Row]:
        """Why the number cannot be, and the numbers that fit."""
        out = paragraph(self.refused, width, indent, "bad") if self.refused else []
        return [*out, *paragraph(self.bounds(), width, indent, "mark")]

    def bounds(self) -> str:
        """Like "fits from 0.1 to 0.5; 0.55 does not"."""
        if self.fitting is None:
            return say("… which numbers fit")
        tried = self.fitting.tried
        if not tried:
            return say("the framework allows no other number here")
        unsaid, said = [one for one in tried if one.fits is None], [one for one in tried if one.fits is not None]
        if unsaid and not any(one.fits for one in tried):
            if said and unsaid[-1].value < said[0].value:
                doubt = mark("beside what is on it does not fit from {least} on; below that it cannot be said")
                return say(doubt, least=said[0].text)
            return say("which numbers fit cannot be computed here")
        value = float(self.step.number or 0)
        below, fitting, above = self.fitting.around(value)
        if not fitting:
            return say(
                "beside what is on no number from {least} to {most} fits", least=tried[0].text, most=tried[-1].text
            )
        told = {"least": fitting[0].text, "most": fitting[-1].text}
        if below is None and above is None:
            return say("beside what is on every number from {least} to {most} fits", **told)
        if above is None:
            return say("fits from {least} on; {below} does not", **told, below=below.text if below else "")
        if below is None:
            return say("fits up to {most}; {above} does not", **told, above=above.text)
        both = {"below": below.text, "above": above.text}
        return say("fits from {least} to {most}; {below} and {above} do not", **told, **both)
