"""Shows the plan: steps that are switched on and off, memory bars that follow, and what a change changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from advisor.hostile import cells
from advisor.language import Sayings, clauses, mark, say, say_count
from advisor.memory.cells import Place
from advisor.plan.plan import Change, Plan, PlanStep
from advisor.report.phrases import change_line
from advisor.tui.explain import ArithmeticView, CaseView, Explanation, case_of_step, step_rows
from advisor.tui.facts import short_name
from advisor.tui.memory_bars import (
    PLACE_WORDS,
    doubt_rows,
    first_phase,
    fit_words,
    fullest_after,
    legend,
    phase_rows,
    phases_of,
    tightest_words,
    unexplained,
)
from advisor.tui.page import POINTER, Page
from advisor.tui.screen import StageScreen
from advisor.tui.ui_state import Copied, Toggled, UiState
from advisor.tui.ui_text import (
    BLANK,
    Row,
    Tone,
    Toned,
    TonedLine,
    cut,
    cut_left,
    line,
    pad,
    pad_left,
    paragraph,
    rows,
    span,
)
from advisor.units import GIB, show_bytes
from advisor.words import BASIS_TITLES, Phase, Results

if TYPE_CHECKING:
    from advisor.session import State


_RESULTS, _SAVES, _BASIS = 8, 13, 10
_DOCUMENTED = mark("documented: {value}   d shows the case")
NARROW = 28
"""Columns a name needs; with fewer, the numbers go on a line of their own."""
FLAT, TALL, LINES_A_PHASE = 20, 30, 6
"""Terminal lines below which only the memory that ran out is drawn; from which more phases are, and what each takes."""
RESULT_WORDS: Sayings[Results] = Sayings({"unchanged": "same", "changed": "CHANGES"})


def best_saving(step: PlanStep, phase: Phase | None) -> tuple[int, Place] | None:
    """(bytes, place) that a step saves: in `phase`, else where it saves most; None where unknown."""
    if step.place == "none" or not step.saves:
        return None
    place: Place = "gpu" if step.place == "gpu" else "host"
    if phase is not None and step.saves.get(phase, 0) > 0:
        return step.saves[phase], place
    return step.saves[step.headline or phase or "unknown"], place


def saving_words(step: PlanStep, phase: Phase | None) -> str:
    """Like "−61 GB host"; a plus where the step costs memory; "" where it is not known."""
    found = best_saving(step, phase)
    if found is None or not found[0]:
        return ""
    saved, place = found
    sign = "−" if saved > 0 else "+"
    amount = abs(saved)
    shown = (
        f"{amount / GIB:.0f} GB"
        if amount >= 10 * GIB
        else (f"{amount / GIB:.1f} GB" if amount >= GIB // 10 else show_bytes(amount))
    )
    return f"{sign}{shown} {PLACE_WORDS[place]}"


def change_words(change: Change) -> str:
    """Like "true → false"; "unset" and "removed" where a side is missing."""
    old = change.old_words or say("unset")
    new = change.new if change.new is not None else say("removed")
    return f"{old} → {new}"


def place_words(change: Change) -> str:
    """Like "run.sh:9 (added as an override)"."""
    if not change.file:
        return change.how
    at = f"{short_name(change.file)}:{change.line}" if change.line is not None else short_name(change.file)
    return say("{place} ({how})", place=at, how=change.how) if change.how else at


def column_titles(width: int) -> Row:
    """The head of the table of steps."""
    room = _name_width(width - POINTER)
    if room < NARROW:
        return Row(line(span("      " + say("change; results, saves, basis"), "title")))
    columns = f"{pad(say('change'), room)} {pad(say('results'), _RESULTS)} {pad_left(say('saves'), _SAVES)}"
    head = f"      {columns}  {say('basis')}"
    return Row(line(span(head, "title")))


def _name_width(width: int) -> int:
    return width - len("[x] ") - _RESULTS - _SAVES - _BASIS - 4


def plan_rows(state: State, phase: Phase | None, width: int, marked: str | None = None) -> list[Row]:
    """The steps, two lines or more each; the cursor stands on steps. `marked`: the one that says why, too."""
    plan, doubts = state.plan, doubt_rows(state.run, width, brief=True)
    if not plan.steps:
        return [
            *doubts,
            *paragraph(say("There is nothing to propose for this cause."), width, tone="strong"),
            *_why_nothing(state, width),
        ]
    out = [*doubts, column_titles(width)]
    group = ""
    for step in plan.steps:
        if step.group and step.group == group:
            out.append(Row(line(span("    " + say("or instead of it:"), "dim"))))
        group = step.group
        out += _step(step, plan, phase, width - POINTER, marked == step.id)
    if plan.shortfall:
        out += [BLANK, *paragraph(plan.shortfall, width, tone="warn")]
    return out


def _why_nothing(state: State, width: int) -> list[Row]:
    out: list[Row] = []
    for one in state.plan.not_proposed[:4]:
        out += paragraph(say("{title}: {because}", title=one.title, because=one.because), width, 2)
    if state.diagnosis.record_next_time:
        told = say("Next time record: {what}", what=state.diagnosis.record_next_time)
        out += [BLANK, *paragraph(told, width)]
    return out


def _step(step: PlanStep, plan: Plan, phase: Phase | None, width: int, in_full: bool) -> list[Row]:
    first = step.changes[0] if step.changes else None
    own_key = first is not None and step.kind in ("setting", "environment")
    name = first.key if first and own_key else step.title
    shorten = cut_left if own_key else cut
    out = [Row(one, step.id) for one in _head(step, name, shorten, saving_words(step, phase), width)]
    for number, change in enumerate(step.changes):
        words = change_words(change) if number == 0 and own_key else f"{change.key}  {change_words(change)}"
        out.append(Row(line("      ", words, span(f"   {place_words(change)}", "dim")), step.id))
    clash = _clash(step, plan)
    if clash:
        out.append(Row(line("      ", span(cut(clash, width - 6), "warn")), step.id))
    told: list[tuple[str, Tone]] = [
        (step.why, "plain"),
        (step.caveats[0] if step.caveats else "", "dim"),
        (say(_DOCUMENTED, value=step.documented) if step.documented else "", "dim"),
    ]
    told = [(step.title, "strong"), *told] if own_key else told
    for text, tone in told if in_full else ():
        out += [Row(row.line, step.id) for row in paragraph(text, width, 6, tone)] if text else []
    return out


def _head(step: PlanStep, name: str, shorten: Callable[[str, int], str], saves: str, width: int) -> list[TonedLine]:
    """Switch, name, and the three columns; under the name where there is no room beside it."""
    box = Toned("[x]" if step.selected else "[ ]", "mark" if step.selected else "plain")
    results = Toned(RESULT_WORDS[step.results], "warn" if step.results == "changed" else "plain")
    basis = span(f"  {BASIS_TITLES[step.basis]}", "dim")
    room = _name_width(width)
    if room < NARROW:
        numbers = line("      ", results, f"  {saves}" if saves else "", basis)
        return [line(box, f" {shorten(name, width - 4)}"), numbers]
    gap = " " * (_RESULTS - cells(results.text) + 1)
    numbers = line(results, f"{gap}{pad_left(saves, _SAVES)}", basis)
    return [line(box, f" {pad(shorten(name, room), room)} ", *numbers)]


def _clash(step: PlanStep, plan: Plan) -> str:
    """Why this step cannot be on together with what is on; "" where nothing stands against it."""
    against = [other.title for other in plan.selected() if other.id in step.conflicts or step.id in other.conflicts]
    return say("not together with: {steps}", steps=clauses(against)) if against and not step.selected else ""


def bar_rows(state: State, phase: Phase | None, width: int, height: int) -> list[Row]:
    """Bars of one phase, more of them where the terminal is `height` enough, the verdict on the fit, the legend."""
    plan = state.plan
    if phase is None or not phase_rows(plan, phase, width):
        return [*unexplained(plan, width), Row(line(fit_words(plan)))]
    if height < FLAT:
        died_of: Place = "host" if state.diagnosis.memory == "host" else "gpu"
        out = phase_rows(plan, phase, width, (died_of,)) or phase_rows(plan, phase, width)
    else:
        out = phase_rows(plan, phase, width)
    out[0] = Row((*out[0].line, Toned("   "), fit_words(plan)))
    others = _more_phases(plan, phase, (height - TALL) // LINES_A_PHASE)
    found = fullest_after(plan, phase)
    for other in others:
        title, *bars = phase_rows(plan, other, width)
        mark = span("   " + say("the fullest after") if found and found[0] == other else "", "dim")
        out += [BLANK, Row((*title.line, mark)), *bars]
    tightest = () if others else tightest_words(plan, phase)
    letters = legend(plan, [phase, *others], width)[: 0 if height < FLAT else 2 - bool(tightest)]
    return [*out, *(rows(tightest) if tightest else ()), *letters]  # the help has all letters


def _more_phases(plan: Plan, shown: Phase, most: int) -> list[Phase]:
    """The phases to show below the chosen one: the fullest after, then the others in their order."""
    fullest = fullest_after(plan, shown)
    order = dict.fromkeys([*([fullest[0]] if fullest else []), *phases_of(plan)])
    return [phase for phase in order if phase != shown][: max(0, most)]


class PlanScreen(StageScreen):
    """Plan: space switches a step, the bars follow."""

    STAGE = "plan"
    TITLE_WORDS = mark("The plan")
    STACKED = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "switch", "toggle", tooltip="switch the marked step on or off"),
        Binding("enter", "go_on", "diff", tooltip="see the exact change to the script"),
        Binding("e", "explain", "explain", tooltip="the marked step in full: why, cost, sources"),
        Binding("a", "arithmetic", "arithmetic", tooltip="how each number of the bars was computed"),
        Binding("c", "copy", "copy", show=False, tooltip="copy the marked change"),
        Binding("left,h", "phase(-1)", "phase", key_display="← →", tooltip="bars of another phase"),
        Binding("right,l", "phase(1)", show=False),
        Binding("d", "case", "case", tooltip="the documented case behind the marked step"),
        Binding("f", "fullest", "fullest", show=False, tooltip="bars of the phase that is fullest after; again: back"),
        Binding("escape", "back", "back", tooltip="the last question"),
    ]

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._phase: Phase | None = None

    @property
    def phase(self) -> Phase | None:
        """The phase the bars show: the chosen one, else the one that died or is fullest."""
        plan = self.state.plan
        return self._phase if self._phase in phases_of(plan) else first_phase(plan, self.state.diagnosis.phase)

    def panes(self) -> Iterable[Widget]:
        """Steps; the marked step explained beside them; bars below."""
        yield self.page(self.main_rows, "main", self.ui.cursors.get("plan"))
        yield self.page(self.third_rows, "third")
        yield self.page(self.bar_rows, "second")

    def main_rows(self, width: int) -> list[Row]:
        """The steps."""
        return plan_rows(self.state, self.phase, width, self.chosen.id if self.chosen and self.columns < 3 else None)

    def bar_rows(self, width: int) -> list[Row]:
        """The bars, over the whole width below the steps."""
        return bar_rows(self.state, self.phase, width, self.app.size.height)

    def third_rows(self, width: int) -> list[Row]:
        """The marked step in full."""
        step = self.chosen
        return step_rows(self.state, step, width) if step else []

    @property
    def chosen(self) -> PlanStep | None:
        """The step the cursor stands on."""
        pages = self.query("#main")
        key = pages.first(Page).wanted if pages else None
        steps = self.state.plan.steps
        return next((step for step in steps if step.id == key), steps[0] if steps else None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing to toggle or explain in an empty plan; no arithmetic without a ledger."""
        if action in ("switch", "explain", "copy"):
            return bool(self.state.plan.steps)
        if action == "case":
            return bool(self.state.diagnosis.cases)
        if action in ("arithmetic", "phase", "fullest"):
            return self.phase is not None
        return True

    def on_page_moved(self, message: Page.Moved) -> None:
        """The explanation follows the cursor."""
        if message.page.id == "main":
            self.ui.cursors["plan"] = message.key
            self.query_one("#third" if self.columns == 3 else "#main", Page).reload()

    def action_switch(self) -> None:
        """Switch the marked step."""
        if self.chosen is not None:
            self.post_message(Toggled(self.chosen.id))

    def action_explain(self) -> None:
        """The marked step in full."""
        if self.chosen is not None:
            self.app.push_screen(Explanation(self.ui, self.chosen.id))

    def action_case(self) -> None:
        """The documented case that used this step's value, else the one most like this run."""
        found = case_of_step(self.state, self.chosen.documented if self.chosen else "")
        if found is not None:
            self.app.push_screen(CaseView(self.ui, found.id))

    def action_copy(self) -> None:
        """The marked step's changes, one a line."""
        if self.chosen is not None:
            changes = "".join(f"{change_line(change)}\n" for change in self.chosen.changes)
            self.post_message(Copied(changes or f"{self.chosen.title}\n", mark("the change")))

    def action_arithmetic(self) -> None:
        """The formulas behind the bars."""
        if self.phase is not None:
            self.app.push_screen(ArithmeticView(self.ui, self.phase))

    def action_phase(self, by: int) -> None:
        """Bars of the neighbouring phase."""
        known = phases_of(self.state.plan)
        if self.phase in known:
            self._phase = known[(known.index(self.phase) + by) % len(known)]
            self.reload()

    def action_fullest(self) -> None:
        """Bars of the fullest phase; from there, of the one that died."""
        died = first_phase(self.state.plan, self.state.diagnosis.phase)
        found = fullest_after(self.state.plan, self.phase)
        self._phase = found[0] if found and found[0] != self.phase else died
        self.reload()


def after_answer(before: State, after: State) -> str:
    """Like "cause changed from … to …; 2 steps are new, 1 is gone"; says so where nothing follows from the answer."""
    parts = []
    if before.diagnosis.cause != after.diagnosis.cause:
        old_title, new_title = before.diagnosis.title, after.diagnosis.title
        parts.append(say("cause changed from “{before}” to “{after}”", before=old_title, after=new_title))
    old, new = ({step.id for step in state.plan.steps} for state in (before, after))
    if new - old:
        parts.append(say_count("{number} step new in the plan", "{number} steps new in the plan", len(new - old)))
    if old - new:
        parts.append(say_count("{number} step gone from it", "{number} steps gone from it", len(old - new)))
    if not parts and [s.id for s in before.plan.steps] != [s.id for s in after.plan.steps]:
        parts.append(say("the order of the plan changed"))
    was, now = before.ledger.peak("gpu"), after.ledger.peak("gpu")
    if was is not None and now is not None and was.expected != now.expected:
        sizes = {"before": show_bytes(was.expected), "after": show_bytes(now.expected)}
        parts.append(say("at its fullest a GPU needs {after}, not {before}", **sizes))
    return clauses(parts) or say("nothing else changed: same cause, same plan")


def after_toggle(before: State, after: State) -> str:
    """Like "also switched: …" where a conflict switched others; "" where only the asked one moved."""
    was = {step.id: step.selected for step in before.plan.steps}
    moved = [step for step in after.plan.steps if was.get(step.id) != step.selected]
    others = [say("{step} on" if step.selected else "{step} off", step=step.title) for step in moved[1:]]
    parts = [say("also switched: {steps}", steps=clauses(others))] if others else []
    if before.plan.fits != after.plan.fits:
        parts.append(fit_words(after.plan).text)
    return clauses(parts)
