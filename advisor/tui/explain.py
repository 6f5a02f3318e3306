"""Explains what stands behind the plan: a step in full, the arithmetic of a phase, the why-nots, a documented case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from advisor.diagnosis.diagnosis import CaseMatch, RuledOut
from advisor.hostile import cells
from advisor.language import clauses, listed, mark, say
from advisor.memory.cells import OWNERS, TITLES, Cell, Ledger, PhaseSum, Place
from advisor.plan.plan import NotProposed, PlanStep
from advisor.report.explain_report import UnknownIdError, explain_report
from advisor.report.phrases import by_reason, looks_like
from advisor.report.step_words import savings
from advisor.tui.facts import briefly
from advisor.tui.memory_bars import phases_of
from advisor.tui.plan_rows import change_words, place_words
from advisor.tui.screen import READABLE, Overlay
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import (
    BLANK,
    Row,
    Toned,
    heading,
    labelled,
    line,
    one_place,
    pad,
    pad_left,
    paragraph,
    rows,
    span,
)
from advisor.units import show_bytes
from advisor.words import BASIS_TITLES, PHASE_TITLES, Phase

if TYPE_CHECKING:
    from advisor.state import State


GPU: Place = "gpu"
HOST: Place = "host"
_ASKED_FOR = mark("{tensor} {shape}: {formula} = {size}, is what the log asked for")
_NOT_ASKED_FOR = mark("{tensor} {shape}: {formula} = {size}, is not what the log asked for")
_LIKE = mark("{title}: {agree} of {of} facts agree")
_LIKE_BUT = mark("{title}: {agree} of {of} facts agree; differs in {differs}")
_ALIKE = mark("{agree} of {of} facts agree with this run")
_ALIKE_BUT = mark("{agree} of {of} facts agree with this run; it differs in {differs}")
_GONE = mark("This step is no longer in the plan.")


def step_rows(state: State, step: PlanStep, width: int) -> list[Row]:
    """One step in full: what changes where, why, what it saves in each phase, its cost, how sure and from where."""
    out = paragraph(step.title, width, tone="strong")
    for change in step.changes:
        out += labelled(say("change"), f"{change.key}: {change_words(change)}", width)
        out += labelled("", place_words(change), width, tone="dim") if change.file else []
    out += [BLANK, *labelled(say("why"), step.why, width)]
    out += [row for one in savings(step) for row in labelled(say("memory"), one, width)]
    out += labelled(say("costs"), step.costs or say("nothing known"), width)
    changes = say("training results change" if step.results == "changed" else "training results stay the same")
    out += labelled(say("results"), changes, width, tone="warn" if step.results == "changed" else "plain")
    out += labelled(say("how sure"), BASIS_TITLES[step.basis], width)
    for caveat in step.caveats:
        out += labelled(say("mind"), caveat, width)
    if step.documented:
        out += labelled(say("documented"), step.documented, width)
    titles = {other.id: other.title for other in state.plan.steps}
    if step.conflicts:
        out += labelled(say("not with"), clauses(titles.get(other, other) for other in step.conflicts), width)
    for source in step.sources:
        out += labelled(say("source"), source, width, tone="dim")
    return out


def arithmetic_rows(state: State, phase: Phase, width: int) -> list[Row]:
    """Each cell of one phase, GPU then host, with its formula; after the selected steps where they changed it."""
    before, after = state.plan.before or state.ledger, state.plan.after
    out = [Row(line(span(say("The arithmetic of {phase}", phase=PHASE_TITLES[phase]), "strong")))]
    for place, capacity in (GPU, before.gpu_capacity), (HOST, before.host_limit):
        room = show_bytes(capacity) if capacity is not None else ""
        out += _place_rows(before, after, place, phase, one_place(place, room), width)
    for guess in before.assumed:
        out += labelled(say("assumed"), guess, width)
    for match in state.attribution:
        if match.phase == phase:
            text = say(
                _ASKED_FOR if match.matches else _NOT_ASKED_FOR,
                tensor=match.tensor,
                shape=match.shape,
                formula=match.formula,
                size=show_bytes(match.bytes),
            )
            out += labelled(say("asked for"), text, width)
    return out


def _place_rows(before: Ledger, after: Ledger | None, place: Place, phase: Phase, title: str, width: int) -> list[Row]:
    now = before.phase(place, phase)
    then = after.phase(place, phase) if after else None
    if now is None:
        return []
    out = [BLANK, heading(title, say("expected (low – high)"), width)]
    changed = _named(then) if then else {}
    for name, cell in _named(now).items():
        out += _cell_rows(cell, width)
        new = changed.pop(name, None)
        if new is not None and new.expected != cell.expected:
            out += _cell_rows(new, width, say("after"))
        elif new is None and then is not None:
            out += rows(line(span("    " + say("after: none"), "mark")))
    for cell in changed.values():
        out += [*_cell_rows(cell, width), *rows(line(span("    " + say("only after"), "mark")))]
    return [*out, *_sum_rows(now, then, width)]


def _named(of: PhaseSum) -> dict[tuple[str, int], Cell]:
    """Cells by owner and which one of that owner: an owner may hold several things."""
    found: dict[tuple[str, int], Cell] = {}
    for cell in of.cells:
        number = sum(owner == cell.owner for owner, _ in found)
        found[cell.owner, number] = cell
    return found


def _cell_rows(cell: Cell, width: int, word: str = "") -> list[Row]:
    spread = f" ({show_bytes(cell.low)} – {show_bytes(cell.high)})" if cell.low != cell.high else ""
    number = f"{show_bytes(cell.expected)}{spread}"
    name = f"{OWNERS[cell.owner].letter} {TITLES[cell.owner]}" if not word else f"  {word}"
    room = max(12, width - cells(number) - 1)
    head = Row(line(Toned(pad(name, room) + " ", "mark" if word else "plain"), span(number)))
    return [
        head,
        *paragraph(say("{formula} ({basis})", formula=cell.formula, basis=BASIS_TITLES[cell.basis]), width, 4, "dim"),
    ]


def _sum_rows(now: PhaseSum, then: PhaseSum | None, width: int) -> list[Row]:
    words = f"{show_bytes(now.expected)}"
    if then is not None and then.expected != now.expected:
        words += f" → {show_bytes(then.expected)}"
    return rows(line(span(pad_left(f"{say('sum')}  {words}", width), "strong")))


def why_not_rows(state: State, width: int) -> list[Row]:
    """Causes ruled out or less likely, and remedies that people try and the plan does not propose, with the reasons."""
    out = [heading(say("Causes that were ruled out"))]
    out += _reason_rows(state, state.diagnosis.ruled_out, width)
    if not state.diagnosis.ruled_out:
        out += paragraph(say("none: nothing in the log or the script excludes another cause"), width, 2)
    if state.diagnosis.less_likely:
        out += [BLANK, heading(say("Less likely"))]
    out += _reason_rows(state, state.diagnosis.less_likely, width)
    out += [BLANK, heading(say("What the plan does not propose"))]
    out += _reason_rows(state, state.plan.not_proposed, width)
    if not state.plan.not_proposed:
        out += paragraph(say("nothing that is often tried was held back"), width, 2)
    named = looks_like(state)
    others = [case for case in state.diagnosis.cases if case is not named]
    if others:
        out += [BLANK, heading(say("Documented cases that share some of its facts"))]
    for case in others:
        told = say(
            _LIKE_BUT if case.differs else _LIKE,
            title=case.title,
            agree=case.agree,
            of=case.of,
            differs=listed(case.differs),
        )
        out += paragraph(told, width, 2)
    return out


def _reason_rows(state: State, refused: Sequence[NotProposed | RuledOut], width: int) -> list[Row]:
    """Each reason once: below what it speaks against, above several such."""
    out: list[Row] = []
    for because, titles in by_reason(refused).items():
        told = briefly(state, because)
        if len(titles) > 1:
            out += paragraph(say("{reason}:", reason=told.rstrip(".。")), width, 2)
            out += [row for title in titles for row in paragraph(title, width, 4, "strong")]
        else:
            out += [*paragraph(titles[0], width, 2, "strong"), *paragraph(told, width, 4)]
    return out


class Explanation(Overlay):
    TITLE_WORDS = mark("A step explained")
    ENTER_CLOSES = True
    BINDINGS: ClassVar[list[BindingType]] = [Binding("e", "back", "back", show=False)]

    def __init__(self, ui: UiState, step_id: str) -> None:
        super().__init__(ui)
        self._step_id = step_id

    def main_rows(self, width: int) -> list[Row]:
        step = next((step for step in self.state.plan.steps if step.id == self._step_id), None)
        return step_rows(self.state, step, width) if step else paragraph(say(_GONE), width)


class ArithmeticView(Overlay):
    """The formulas of one phase; left and right change the phase."""

    TITLE_WORDS = mark("The arithmetic")
    ENTER_CLOSES = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "phase(-1)", "phase", key_display="← →", tooltip="another phase"),
        Binding("right,l", "phase(1)", show=False),
        Binding("a", "back", "back", show=False),
    ]

    def __init__(self, ui: UiState, phase: Phase) -> None:
        super().__init__(ui)
        self._phase = phase

    def main_rows(self, width: int) -> list[Row]:
        return arithmetic_rows(self.state, self._phase, width)

    def action_phase(self, by: int) -> None:
        known = phases_of(self.state.plan)
        if self._phase in known:
            self._phase = known[(known.index(self._phase) + by) % len(known)]
            self.reload()


class WhyNot(Overlay):
    """Ruled-out causes and remedies that were not proposed."""

    OPENED_BY = Binding("w", "why_not", "why not", tooltip="causes that were ruled out, remedies that are not proposed")
    RANK = 10
    TITLE_WORDS = mark("Why not …")
    NEEDS_RUN = True
    WIDEST = READABLE
    ENTER_CLOSES = True

    def main_rows(self, width: int) -> list[Row]:
        return why_not_rows(self.state, width)


def case_of_step(state: State, documented: str) -> CaseMatch | None:
    """The matched case that a step's documented value comes from ("logic-rl-8: 4"), else the best one."""
    name = re.split(r"[\s:(]", documented, maxsplit=1)[0]
    cases = state.diagnosis.cases
    return next((case for case in cases if case.id == name), next(iter(cases), None))


def case_rows(state: State, case_id: str, width: int) -> list[Row]:
    """How far this run is like it, then the case as `explain` tells it."""
    out: list[Row] = []
    for match in state.diagnosis.cases:
        if match.id == case_id:
            counts = {"agree": match.agree, "of": match.of, "differs": listed(match.differs)}
            out += [*paragraph(say(_ALIKE_BUT if match.differs else _ALIKE, **counts), width, tone="mark"), BLANK]
    try:
        text = explain_report(state.knowledge, case_id)
    except UnknownIdError:
        return [*out, *paragraph(say("The knowledge has no more of this case."), width)]
    for told in text.splitlines():
        indent = len(told) - len(told.lstrip())
        out += paragraph(told.strip(), width, indent) if told.strip() else rows(line(span("")))
    return out


class CaseView(Overlay):
    TITLE_WORDS = mark("A documented case")
    ENTER_CLOSES = True
    BINDINGS: ClassVar[list[BindingType]] = [Binding("d", "back", "back", show=False)]

    def __init__(self, ui: UiState, case_id: str) -> None:
        super().__init__(ui)
        self._case_id = case_id

    def main_rows(self, width: int) -> list[Row]:
        return case_rows(self.state, self._case_id, width)
