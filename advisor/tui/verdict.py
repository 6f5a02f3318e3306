"""The verdict: what died, where and why, each claim beside the line that proves it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from advisor.crash.evidence import Crash, Evidence, EvidenceRole
from advisor.session import State
from advisor.tui.evidence_view import EvidenceView, letter_of
from advisor.tui.facts import (
    deciding_settings,
    gpu_words,
    holder_words,
    host_words,
    lead,
    library_words,
    short_name,
    where,
)
from advisor.tui.frame import StageScreen
from advisor.tui.page import Page
from advisor.tui.ui_text import (
    BLANK,
    Row,
    Tone,
    cut,
    cut_left,
    flow,
    grouped,
    heading,
    labelled,
    line,
    pad,
    paragraph,
    rows,
    span,
    spread,
)
from advisor.units import show_bytes
from advisor.words import MEMORY_TITLES, when

_RANK: dict[EvidenceRole, int] = {"cause": 0, "telemetry": 1, "progress": 2}
TOP_USERS = "ray-top-users"
"""Signature of Ray's table of memory users."""
LINE_ROWS = 8
"""Rows of the chosen line that stand beside the facts; `o` shows the rest."""
TALL = 30
"""Terminal lines from which more of everything is shown."""


def headline(crash: Crash, logs: bool = True) -> str:
    """The first line of the first screen: which memory ran out, and during what. `logs`: some were given."""
    during = f" {when(crash.phase)}" if crash.phase != "unknown" else ""
    if crash.verdict == "oom":
        gpu = crash.evidence[0].fields.get("gpu") if crash.evidence and crash.memory == "gpu" else None
        return f"{MEMORY_TITLES[crash.memory]} ran out{f' on GPU {gpu}' if gpu is not None else ''}{during}."
    if crash.verdict == "not_oom":
        return f"This was not a shortage of memory{during}."
    if not logs:
        return "No log was given, so nothing is proved about a crash."
    if not crash.lines_read:
        return "The log is empty, so nothing is proved about a crash."
    return f"The log does not prove what ran out{during}: {crash.unclear_because or 'no decisive line was found'}."


def evidence_words(state: State, evidence: Evidence) -> str:
    """What the line printed in numbers, and what it means; the line itself where it printed none."""
    signature = next((s for s in state.knowledge.signatures.signatures if s.id == evidence.signature), None)
    if evidence.signature == TOP_USERS and state.crash.top_users:
        return holder_words(state.crash.top_users)
    numbers = ", ".join(_numbers(evidence.fields))
    again = f" (× {evidence.repeats + 1})" if evidence.repeats else ""
    if not numbers or evidence.role not in ("cause", "echo"):
        return f"{evidence.text}{again}"
    return f"{numbers}{again}: {signature.title if signature else evidence.text}"


def _numbers(fields: Mapping[str, int | float | str]) -> list[str]:
    out = []
    if "tried_bytes" in fields:
        out.append(f"asked {_shown(fields['tried_bytes'])}")
    for part, whole, word in (("free_bytes", "total_bytes", "free"), ("node_used_bytes", "node_total_bytes", "in use")):
        if part in fields:
            of = f" of {_shown(fields[whole])}" if whole in fields else ""
            out.append(f"{_shown(fields[part])}{of} {word}")
    if "threshold" in fields:
        out.append(f"threshold {fields['threshold']}")
    return out


def _shown(value: int | float | str) -> str:
    return show_bytes(value) if isinstance(value, int) else str(value)


def ordered_evidence(crash: Crash) -> list[int]:
    """Indices of evidence, most telling first: the first cause, who held the memory, the last reading, the last phase
    mark, then the others. What a line says besides is left out: the line is there once."""
    if not crash.evidence:
        return []
    telling = [0]
    telling += [at for at, one in enumerate(crash.evidence) if crash.top_users and one.signature == TOP_USERS][:1]
    for role in ("telemetry", "progress"):
        of_role = [at for at, one in enumerate(crash.evidence) if one.role == role]
        telling += sorted(of_role, key=lambda at: crash.evidence[at].line)[-1:]
    others = sorted(range(len(crash.evidence)), key=lambda at: (_RANK.get(crash.evidence[at].role, 3), at))
    found: dict[tuple[str, int], int] = {}
    for at in (*telling, *others):
        found.setdefault((crash.evidence[at].file, crash.evidence[at].line), at)
    return list(found.values())


def verdict_rows(state: State, width: int) -> list[Row]:
    """The headline, and as much of the most important remark as two lines hold."""
    top = paragraph(headline(state.crash, bool(state.asked.logs)), width, tone="strong")
    if state.diagnosis.remarks:
        top += paragraph(lead(state.diagnosis.remarks[0], 2 * width - 8)[0], width)
    return top


def proof_rows(state: State, width: int, most: int = 6) -> list[Row]:
    """What the log proves; the cursor stands on these."""
    if not state.crash.evidence:
        return []
    ordered = ordered_evidence(state.crash)
    total = len(ordered)
    out = [heading(f"What the log proves{f' ({most} of {total})' if total > most else ''}", "line", width)]
    many = len({evidence.file for evidence in state.crash.evidence}) > 1
    for at in ordered[:most]:
        evidence = state.crash.evidence[at]
        letter = "M" if evidence.signature == TOP_USERS else letter_of(evidence.role)
        number = grouped(evidence.line)
        if many:
            number = f"{cut_left(evidence.file, 14)} {number}"
        words = cut(evidence_words(state, evidence), width - 5 - len(number) - 2)
        tone: Tone = "bad" if letter == "E" else "plain"
        row = spread(line(span(letter, tone), f" {words}"), line(span(number, "dim")), width - 2)
        out.append(Row(row, f"evidence {at}"))
    return out


def script_rows(state: State, width: int, most: int = 3) -> list[Row]:
    """The settings that decide, each with the place where it is decided."""
    found = deciding_settings(state, most)
    if not found:
        missing = "No launch script was given." if state.script is None else "No setting of the script bears on it."
        return [heading("What the script decides"), *paragraph(missing, width, 2, "dim")]
    out = [heading("What the script decides")]
    value_width = min(12, max(len(setting.text) if setting.resolved else 10 for setting in found))
    place_width = min(26, max(len(where(setting)) for setting in found))
    key_width = max(12, min(width - value_width - place_width - 6, max(len(s.key) for s in found)))
    for setting in found:
        value = setting.text if setting.resolved else "unresolved"
        out += rows(
            line(
                f"  {pad(cut_left(setting.key, key_width), key_width)}  {pad(value, value_width)}  ",
                span(cut_left(where(setting), place_width), "dim"),
            )
        )
    return out


def box_rows(state: State, width: int) -> list[Row]:
    """What this box has, in one or two lines."""
    facts = [gpu_words(state.machine), host_words(state.machine), *library_words(state.machine, state.run)]
    return [heading("What this box has"), *flow(facts, width, 2, gap=" · ")]


def cause_rows(state: State, width: int) -> list[Row]:
    """The likely cause, how sure, and the documented case that looks like it."""
    diagnosis = state.diagnosis
    label = "Likely cause" if state.crash.evidence else "Best guess"
    out = labelled(label, f"{diagnosis.title} ({diagnosis.basis})", width, tone="strong")
    for advice in diagnosis.advisories[:1]:
        out += labelled("Known fault", f"{advice.library} {advice.version}: {advice.title}", width, tone="warn")
    for case in diagnosis.cases[:1]:
        out += labelled("Looks like", f"{case.title}; {case.agree} of {case.of} facts agree", width)
    return out


def explanation_rows(state: State, width: int) -> list[Row]:
    """The cause explained in full, and the other sentences that belong to this crash."""
    diagnosis = state.diagnosis
    out = [heading("Why"), *paragraph(diagnosis.explains, width, 2)]
    first = lead(diagnosis.remarks[0], 2 * width - 8)[1] if diagnosis.remarks else ""
    for remark in (first, *diagnosis.remarks[1:]):
        out += [BLANK, *paragraph(remark, width, 2)] if remark else []
    for advice in diagnosis.advisories:
        out += [BLANK, *paragraph(f"{advice.library} {advice.version}: {advice.says}", width, 2)]
    if state.crash.verdict == "unclear":
        for way in state.crash.settle_by:
            out += [BLANK, *paragraph(f"This would settle it: {way}", width, 2)]
    return out


class VerdictScreen(StageScreen):
    """Crash: the first screen when a log is there."""

    TITLE_WORDS = "The verdict"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_on", "questions", tooltip="go through the questions; most are answered already"),
        Binding("up,down", "nothing", "evidence", key_display="↑↓", tooltip="choose a line of evidence"),
        Binding("o", "open_line", "open line", tooltip="the log around the chosen line"),
        Binding("escape", "back", "back", show=False, tooltip="the run, then the machine"),
    ]

    def panes(self) -> Iterable[Widget]:
        """Verdict and proof; then cause and facts; then the explanation."""
        yield self.page("main_rows", "main", self.sitting.cursors.get("crash"))
        yield self.page("side_rows", "second")
        yield self.page("third_rows", "third")

    def main_rows(self, width: int) -> list[Row]:
        """Everything in one column, or what was proved beside the rest."""
        state = self.state
        short = self.app.size.height < TALL
        found = [*verdict_rows(state, width), BLANK, *proof_rows(state, width, 3 if short else 30)]
        if self.columns > 1:
            found += self._line_in_full(width)
        else:
            settings = script_rows(state, width, 2 if short else 6)
            found += [*settings, *box_rows(state, width), BLANK, *cause_rows(state, width)]
            found += [BLANK, *explanation_rows(state, width)]
        return found

    def _line_in_full(self, width: int) -> list[Row]:
        """The chosen line as the log has it; there is room beside the facts."""
        pages = self.query("#main")
        known = ordered_evidence(self.state.crash)
        wanted = pages.first(Page).wanted if pages else None
        at = next((at for at in known if f"evidence {at}" == wanted), next(iter(known), None))
        if at is None:
            return []
        evidence = self.state.crash.evidence[at]
        place = f"{short_name(evidence.file)}:{evidence.line}"
        words = paragraph(evidence.text, width, 2)
        more = rows(line(span("  o opens the log there", "dim"))) if len(words) > LINE_ROWS else []
        return [BLANK, heading("The chosen line", place, width), *words[:LINE_ROWS], *more]

    def side_rows(self, width: int) -> list[Row]:
        """Cause and facts."""
        state = self.state
        most = 4 if self.app.size.height < TALL else 8
        top = [*cause_rows(state, width), BLANK, *script_rows(state, width, most), BLANK, *box_rows(state, width)]
        return top if self.columns == 3 else [*top, BLANK, *explanation_rows(state, width)]

    def third_rows(self, width: int) -> list[Row]:
        """The explanation."""
        return explanation_rows(self.state, width)

    def words(self) -> dict[str, str]:
        """Where Enter leads."""
        return {"go_on": "questions" if self.state.diagnosis.path else "plan"}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without evidence there is no line to open."""
        if action in ("open_line", "nothing"):
            return bool(self.state.crash.evidence)
        return True

    def on_page_moved(self, message: Page.Moved) -> None:
        """Coming back finds the cursor where it was."""
        if message.page.id == "main":
            self.sitting.cursors["crash"] = message.key
            if self.columns > 1:
                message.page.reload()

    def action_open_line(self) -> None:
        """The log around the chosen evidence."""
        key = self.query_one("#main", Page).cursor
        if key is not None:
            self.app.push_screen(EvidenceView(self.sitting, int(key.removeprefix("evidence "))))

    def action_nothing(self) -> None:
        """The page itself moves the cursor; this stands in the help."""
