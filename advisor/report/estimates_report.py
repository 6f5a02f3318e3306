"""Tells the estimates of many launch files: one line each, annotations for GitHub, a table for a pull request, JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from advisor.exits import Exit
from advisor.hostile import clean_line
from advisor.language import Sayings, clauses, say
from advisor.memory.cells import Ledger, Place
from advisor.memory.fit import PLACES, FitVerdict, worst_of_each_place
from advisor.memory.fit_clause import finding_clause
from advisor.report.json_report import SCHEMA, estimate_json
from advisor.report.phrases import fit_sentence
from advisor.run.natives import native
from advisor.run_file import Sizing
from advisor.script.document import Span
from advisor.script.launch import Launch
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, sentence

Ending = Literal["fits", "may_not_fit", "does_not_fit", "cannot_be_said", "no_launch", "unreadable"]
ENDINGS: Sayings[Ending] = Sayings(
    {
        "fits": "fits",
        "may_not_fit": "may not fit",
        "does_not_fit": "does not fit",
        "cannot_be_said": "cannot be said",
        "no_launch": "starts no training",
        "unreadable": "cannot be read",
    }
)
_LEVELS: dict[Ending, str] = {"does_not_fit": "error", "unreadable": "error", "fits": "notice", "no_launch": "notice"}
_ESCAPED = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_ESCAPED_FIELD = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
"""As GitHub's workflow commands want them."""


class Estimated(Struct, frozen=True):
    """One launch file and what was found. `trouble`: why it could not be read; then there is nothing else."""

    file: str
    sizing: Sizing | None = None
    launch: Launch | None = None
    trouble: str = ""

    @property
    def ending(self) -> Ending:
        """How it ended, in one word."""
        if self.sizing is None:
            return "unreadable"
        verdict: FitVerdict = self.sizing.fit.verdict
        return "no_launch" if self.launch is None else verdict

    @property
    def line(self) -> int | None:
        """The line that decides: of a setting that alone would make it fit, else where the launch begins."""
        spans = [self._decisive[1]] if self._decisive is not None else []
        spans += [self.launch.span] if self.launch is not None else []
        own = Path(self.file)
        return next((span.line for span in spans if span is not None and Path(span.path) == own), None)

    @property
    def told(self) -> str:
        """Why, in a clause or two."""
        if self.sizing is None:
            return self.trouble
        if self.launch is None:
            return say("no command in it starts a training that is known")
        fit = self.sizing.fit
        if fit.verdict in ("may_not_fit", "does_not_fit"):
            why = clauses(map(finding_clause, worst_of_each_place(fit)))
            return "; ".join([why, *([self._decisive[0]] if self._decisive is not None else [])])
        if fit.verdict == "fits":
            return _fullest(self.sizing.ledger)
        return clauses(self.sizing.ledger.missing or map(finding_clause, worst_of_each_place(fit)))

    @property
    def _decisive(self) -> tuple[str, Span | None] | None:
        """(how far the setting goes, where it stands) of the first setting that alone would make it fit."""
        sizing = self.sizing
        if sizing is None or sizing.sizes is None or sizing.fit.verdict not in ("may_not_fit", "does_not_fit"):
            return None
        of_run = {native(setting.key): setting.span for setting in sizing.run.settings if setting.effective}
        for reach in sizing.sizes.reaches:
            if reach.most is not None and reach.most < reach.now:
                told = {"key": clean_line(reach.key, 80), "now": reach.now, "most": reach.most}
                return say("{key} is {now}; up to {most} it fits", **told), of_run.get(native(reach.key))
        return None


def _fullest(ledger: Ledger) -> str:
    """The fullest phase of each place."""
    peaks = [(place, peak) for place in PLACES if (peak := ledger.peak(place)) is not None]
    words: dict[Place, str] = {"gpu": say("each card"), "host": say("each node")}
    return clauses(
        say(
            "{size} of {place} in {phase}",
            size=show_bytes(peak.expected),
            place=words[place],
            phase=PHASE_TITLES[peak.phase],
        )
        for place, peak in peaks
    )


def exit_of(endings: Collection[Ending], strict: bool) -> Exit:
    """The code of the worst ending: does not fit, cannot be read, and with `strict` may not fit and cannot be said."""
    if {*endings} & ({"does_not_fit", "may_not_fit"} if strict else {"does_not_fit"}):
        return Exit.DOES_NOT_FIT
    if "unreadable" in endings:
        return Exit.UNUSABLE
    return Exit.CANNOT_BE_SAID if strict and "cannot_be_said" in endings else Exit.DONE


def estimate_lines(found: Sequence[Estimated]) -> str:
    """One line a file, as compilers write them: file, line, verdict, why."""
    return "".join(f"{_place(one)}: {ENDINGS[one.ending]}: {one.told}\n" for one in found)


def _place(one: Estimated) -> str:
    name = str(Path(one.file))
    return clean_line(name if one.line is None else f"{name}:{one.line}")


def estimate_annotations(found: Sequence[Estimated]) -> str:
    """One workflow command of GitHub a file, on the line that decides."""
    out = []
    for one in found:
        level = _LEVELS.get(one.ending, "warning")
        where = f"file={clean_line(str(Path(one.file))).translate(_ESCAPED_FIELD)}" + (
            f",line={one.line}" if one.line else ""
        )
        title = ENDINGS[one.ending].translate(_ESCAPED_FIELD)
        out.append(f"::{level} {where},title={title}::{clean_line(sentence(one.told)).translate(_ESCAPED)}\n")
    return "".join(out)


def estimate_table(found: Sequence[Estimated]) -> str:
    """Markdown: a row a file, and below it the memory of each phase of what was counted."""
    out = [f"| {say('launch')} | {say('verdict')} | {say('why')} |", "|---|---|---|"]
    out += [f"| `{_cell(_place(one))}` | {ENDINGS[one.ending]} | {_cell(one.told)} |" for one in found]
    for one in found:
        if one.sizing is None or one.launch is None or one.sizing.ledger.missing:
            continue
        out += ["", f"<details><summary>{say('memory of {file} by phase', file=_html(one.file))}</summary>", ""]
        out += [_html(fit_sentence(one.sizing.fit, one.sizing.ledger, one.sizing.margin)), ""]
        out += [*_phases(one.sizing.ledger), "", "</details>"]
    return "\n".join(out) + "\n"


def _phases(ledger: Ledger) -> list[str]:
    """A row a phase: expected bytes, and between which they may lie, on each place."""
    out = [f"| {say('phase')} | {say('each card')} | {say('each node')} |", "|---|---:|---:|"]
    for phase in dict.fromkeys(of.phase for of in (*ledger.gpu, *ledger.host)):
        cells = []
        for place in PLACES:
            of = ledger.phase(place, phase)
            cells.append(
                "–" if of is None else f"{show_bytes(of.expected)} ({show_bytes(of.low)} – {show_bytes(of.high)})"
            )
        out.append(f"| {PHASE_TITLES[phase]} | {' | '.join(cells)} |")
    return out


def _cell(text: str) -> str:
    """Text that stays in its cell: nothing of it is Markdown or HTML."""
    return _html(text).replace("|", "\\|").replace("`", "'")


def _html(text: str) -> str:
    return clean_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def estimates_json(found: Sequence[Estimated]) -> dict[str, Any]:
    """`estimate --format json` of several files: each as of one, with its file, its line and its verdict."""
    return {
        "schema": SCHEMA,
        "estimates": [
            {
                "file": one.file,
                "line": one.line,
                "ending": one.ending,
                "why": one.told,
                "estimate": estimate_json(one.sizing) if one.sizing is not None else None,
            }
            for one in found
        ],
    }
