"""Tells the estimates of many launch files: one line each, annotations for GitHub, a table for a pull request, JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from advisor.exits import Exit
from advisor.hostile import clean_line
from advisor.language import Sayings, clauses, listed, say, say_count
from advisor.layouts import Layout, Layouts, suffices
from advisor.memory.cells import Ledger, Place
from advisor.memory.fit import PLACES, FitVerdict, worst_of_each_place
from advisor.memory.squeeze import finding_clause
from advisor.report import phrases
from advisor.report.json_report import SCHEMA, estimate_json, step_json
from advisor.report.layout import join, section, table, wrap, wrap_each
from advisor.report.memory_section import memory_section
from advisor.report.phrases import fit_sentence
from advisor.run.natives import native
from advisor.run_file import Sizing, sizing_of
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
OVER: tuple[FitVerdict, ...] = ("may_not_fit", "does_not_fit")
"""Verdicts beside which how far a setting goes is told."""
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
        if fit.verdict in OVER:
            why = clauses(map(finding_clause, worst_of_each_place(fit.findings)))
            return "; ".join([why, *([self._decisive[0]] if self._decisive is not None else [])])
        if fit.verdict == "fits":
            return _fullest(self.sizing.ledger)
        return clauses(self.sizing.ledger.missing or map(finding_clause, worst_of_each_place(fit.findings)))

    @property
    def _decisive(self) -> tuple[str, Span | None] | None:
        """(how far the setting goes, where it stands) of the first setting that alone would make it fit."""
        sizing = self.sizing
        if sizing is None or sizing.sizes is None or sizing.fit.verdict not in OVER:
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


_NUMBERS = frozenset({1})
MOST_CHANGES = 6
"""Changes told one by one; each is in the script below."""


def layouts_report(found: Layouts) -> str:
    """The answer in a sentence, every layout tried, what changes on the smallest, its memory and its script."""
    smallest = found.smallest
    shown = smallest or found.tried[-1]
    trial = sizing_of(shown.state, ()).trial
    titles = [say("GPUs"), say("fullest, GiB"), say("as it stands"), say("with changes that keep results")]
    told = {"start": shown.state.run.title, "version": found.start.version, "source": found.start.source}
    script = [
        line
        for name, text in shown.files.items()
        for line in ("", f"# {name}, {told['start']} {told['version']}", *text.rstrip("\n").split("\n"))
    ]
    return join(
        [
            *wrap(headline(found)),
            *wrap(say("Counted for the starting script that {start} {version} documents: {source}.", **told)),
            *wrap(phrases.subject(shown.state.run), 2, 4),
            *section(say("Layouts tried"), table([titles, *(_row(one) for one in found.tried)], right=_NUMBERS)),
            *section(say("Changes on {cards}", cards=_cards(shown, found.card)), _changes(shown)),
            *memory_section(shown.state),
            *_host(shown),
            *section(say("To see the worst batch first"), wrap(trial.sentence, 2) if trial is not None else []),
            *section(say("The script, with these changes") if shown.changes else say("The script"), script[1:]),
        ]
    )


def headline(found: Layouts) -> str:
    """The fewest cards, and the fewest for the script as it stands."""
    model, smallest, plain = found.tried[0].state.run.model_name, found.smallest, found.smallest_as_written
    if smallest is None:
        most = _cards(found.tried[-1], found.card)
        return say("{model} does not fit {cards} with this method, nor with fewer.", model=model, cards=most)
    if smallest is plain:
        return say(
            "{model} fits {cards} with this script as it stands.", model=model, cards=_cards(smallest, found.card)
        )
    with_changes = say_count(
        "{model} fits {cards} with {number} change of this script that leaves training results alone",
        "{model} fits {cards} with {number} changes of this script that leave training results alone",
        len(smallest.changes),
        model=model,
        cards=_cards(smallest, found.card),
    )
    if plain is None:
        return say("{told}.", told=with_changes)
    return say("{told}; as it stands it needs {cards}.", told=with_changes, cards=_cards(plain, found.card))


def _cards(layout: Layout, card: str) -> str:
    """Like "16 × H100-80GB (2 nodes)"."""
    of = f"{layout.gpus} × {card}"
    return say("{cards} ({nodes} nodes)", cards=of, nodes=layout.nodes) if layout.nodes > 1 else of


def _row(layout: Layout) -> list[str]:
    crowded = layout.state.ledger.crowded("gpu")
    full = "?" if crowded is None else f"{crowded.expected / 2**30:.1f}"
    where = "" if crowded is None else PHASE_TITLES[crowded.phase]
    count = str(layout.gpus) if layout.nodes == 1 else f"{layout.nodes} × {layout.gpus_per_node}"
    if suffices(layout.as_written):
        return [count, full, say("fits"), ""]
    if layout.fits:
        return [count, full, where, listed(step.id for step in layout.changes)]
    near = any(fit.doubted and fit.verdict != "does_not_fit" for fit in (layout.as_written, layout.state.plan.fit))
    return [count, full, where, say("may fit, not certain") if near else say("does not fit")]


def _changes(layout: Layout) -> list[str]:
    lines: list[str] = []
    for step in layout.changes[:MOST_CHANGES]:
        lines += wrap(say("{step} ({facts})", step=step.title, facts=phrases.saves_word(step) or step.id), 2, 4)
        lines += wrap_each((phrases.change_line(change) for change in step.changes), 4, 6)
    if not layout.fits:
        worst = worst_of_each_place(layout.state.plan.fit.findings)
        lines += wrap(say("It still does not fit: {why}.", why=clauses(map(finding_clause, worst))), 2, 4)
    return lines


def _host(layout: Layout) -> list[str]:
    """The RAM that each node needs, with the changes."""
    ledger = layout.state.plan.after if layout.changes and layout.state.plan.after is not None else layout.state.ledger
    crowded = ledger.crowded("host")
    if crowded is None:
        return []
    told = {"size": show_bytes(crowded.expected), "phase": PHASE_TITLES[crowded.phase]}
    return ["", *wrap(say("Host RAM of each node: {size}, in {phase}.", **told))]


def layouts_json(found: Layouts) -> dict[str, Any]:
    """`estimate --framework … --format json`: the smallest layout, its script, and all that was tried."""
    shown = found.smallest or found.tried[-1]
    start = found.start
    return {
        **estimate_json(sizing_of(shown.state)),
        "schema": SCHEMA,
        "start": {"id": start.id, "version": start.version, "source": start.source, "files": dict(shown.files)},
        "layouts": [
            {
                "nodes": one.nodes,
                "gpus_per_node": one.gpus_per_node,
                "fits": one.fits,
                "fits_as_written": suffices(one.as_written),
                "changes": [step_json(step) for step in one.changes],
            }
            for one in found.tried
        ],
    }
