"""Shows the verdict: what died, where and why, each claim beside the line that proves it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.worker import get_current_worker

from advisor.diagnosis.diagnosis import UNKNOWN
from advisor.diagnosis.remarks import pixels_unlimited
from advisor.hostile import cells
from advisor.language import mark, say
from advisor.line_breaks import cut_left
from advisor.report.phrases import looks_like, remarks
from advisor.tui.driver import expected_trouble
from advisor.tui.evidence_view import EvidenceView, opened_at, window_rows
from advisor.tui.explain import CaseView
from advisor.tui.facts import (
    deciding_settings,
    doubts_of_sums,
    gpu_words,
    host_words,
    library_words,
    short_name,
    where,
)
from advisor.tui.log_window import LogWindow
from advisor.tui.memory_bars import first_phase, fit_words, legend, phase_rows
from advisor.tui.page import Page
from advisor.tui.plan_rows import chosen_rows
from advisor.tui.proof import headline, ordered_evidence, proof_rows, titles_of
from advisor.tui.screen import StageScreen
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import (
    BLANK,
    BOX,
    Row,
    Toned,
    cut_key,
    flow,
    heading,
    labelled,
    lead,
    line,
    pad,
    paragraph,
    rows,
    span,
    width_of,
    wrap,
)
from advisor.words import BASIS_TITLES

if TYPE_CHECKING:
    from advisor.crash.evidence import Evidence
    from advisor.diagnosis.diagnosis import Advice
    from advisor.state import State

LINE_ROWS = 8
"""Rows of the chosen line that stand beside the facts; `o` shows the rest."""
FRAME = 3
"""Lines of the terminal above and below the panes."""
TALL = 30
"""Terminal lines from which more of everything is shown."""


_DIVIDED = "÷"
"""Stands in a sentence that is a sum."""
_LIKE = mark("{title}; {agree} of {of} facts agree")
_NO_SETTING = mark("No setting of the script bears on it.")


def verdict_rows(state: State, width: int) -> list[Row]:
    """The headline, and as much of the most important remark as two lines hold."""
    head, said = headline(state.crash, bool(state.asked.logs)), _beneath(state)
    first, rest = lead(said, 0)
    said = rest.lstrip() if first and first.rstrip(".。") in head else said
    top = paragraph(head, width, tone="strong")
    return [*top, *(paragraph(lead(said, 2 * width - 8)[0], width) if said else [])]


def _beneath(state: State) -> str:
    """The remark that the headline is followed by: the first without arithmetic, which is read with the reasons, and of
    the crash, not of what the sums count."""
    of_sums = pixels_unlimited()
    return next((remark for remark in _remarks(state) if _DIVIDED not in remark and remark != of_sums), "")


def _remarks(state: State) -> list[str]:
    """The remarks of the reports without what the sums leave in doubt: the memory view has that, beside the sums."""
    return [remark for remark in remarks(state) if remark not in doubts_of_sums(state)]


def script_rows(state: State, width: int, most: int = 3) -> list[Row]:
    """The settings that decide, each with the place where it is decided."""
    found, out = deciding_settings(state, most), [heading(say("What the script decides"))]
    if not found:
        missing = mark("No launch script was given.")
        if state.script is not None:
            unclear = state.crash.verdict == "unclear"
            missing = mark("Not known before it is known what ran out.") if unclear else _NO_SETTING
        return [*out, *paragraph(say(missing), width, 2, "dim")]
    unresolved = say("unresolved")
    values = [setting.text if setting.resolved else unresolved for setting in found]
    place_width = min(26, max(cells(where(setting)) for setting in found))
    longest = max(cells(setting.key) for setting in found)
    value_width = min(max(map(cells, values)), max(12, width - place_width - longest - 6))
    key_width = max(12, min(width - value_width - place_width - 6, longest))
    for setting, value in zip(found, values, strict=True):
        out += rows(
            line(
                f"  {pad(cut_key(setting.key, key_width), key_width)}  {pad(value, value_width)}  ",
                span(cut_left(where(setting), place_width), "dim"),
            )
        )
    return out


def box_rows(state: State, width: int) -> list[Row]:
    """What this box has, or the one that trained, in one or two lines."""
    asked = state.run.topology.asked
    here = state.machine.sources.get("gpus") == "measured"
    facts = [gpu_words(state.machine, asked), host_words(state.machine), *library_words(state.machine, state.run)]
    unread = [row for one in state.machine.problems if "--gpus" in one for row in paragraph(one, width, 2, "warn")]
    return [heading(say(BOX) if here else say("What the run had")), *flow(facts, width, 2, gap=" · "), *unread]


def cause_rows(state: State, width: int) -> list[Row]:
    """The likely cause, how sure, and the documented case that looks like it."""
    diagnosis = state.diagnosis
    label = say("Likely cause" if state.crash.evidence else "Best guess")
    out = labelled(
        label,
        say("{title} ({basis})", title=diagnosis.title, basis=BASIS_TITLES[diagnosis.basis]),
        width,
        tone="strong",
    )
    for doubt in [one for one in doubts_of_sums(state) if one in remarks(state)]:
        out += labelled(say("In doubt"), lead(doubt, 2 * width - 8)[0], width, tone="warn")
    for advice in diagnosis.advisories[:1]:
        out += labelled(say("Known fault"), _about(advice, advice.title), width, tone="warn")
    if (case := looks_like(state)) is not None:
        out += labelled(say("Looks like"), say(_LIKE, title=case.title, agree=case.agree, of=case.of), width)
    return [*out, *open_rows(state, width)]


def open_rows(state: State, width: int) -> list[Row]:
    """How many questions are answered, and how many are open."""
    path = state.diagnosis.path
    opened = sum(step.answer == UNKNOWN for step in path)
    told = say("{answered} answered, {opened} open: r shows them", answered=len(path) - opened, opened=opened)
    return labelled(say("Questions"), told, width) if path else []


def then_rows(state: State, width: int) -> list[Row]:
    """Memory of the phase that died, now and after the plan, and what is on in it; nothing where no ledger knows it."""
    phase = first_phase(state.plan, state.diagnosis.phase)
    bars = phase_rows(state.plan, phase, width) if phase is not None else []
    if phase is None or not bars:
        return []
    told = rows(line("  ", fit_words(state.plan)))
    changes = [row for step in state.plan.selected() for row in chosen_rows(step, width)]
    top = [heading(say("Memory, now and after the plan")), *bars]
    return [*top, *legend(state.plan, [phase], width), BLANK, heading(say("The plan")), *told, *changes]


def around_rows(state: State, evidence: Evidence, window: LogWindow, width: int, room: int) -> list[Row]:
    """The log around a piece of evidence in about `room` rows: its own line in full, the others cut."""
    shown = {at: row.line for at, row in enumerate(window_rows(state, evidence.file, window, width), window.first)}
    gutter = shown.get(evidence.line, line("  ", ""))[:-1]
    own = wrap(evidence.text, width - width_of(gutter))[:LINE_ROWS]
    left = max(0, room - len(own))
    after = min(left // 3, max(shown, default=0) - evidence.line)
    before = left - after
    out = [Row(shown[at]) for at in range(evidence.line - before, evidence.line) if at in shown]
    margin = Toned(" " * width_of(gutter))
    out += [Row((*((margin,) if at else gutter), span(text, "strong"))) for at, text in enumerate(own)]
    return out + [Row(shown[at]) for at in range(evidence.line + 1, evidence.line + after + 1) if at in shown]


def _about(advice: Advice, told: str) -> str:
    return say("{library} {version}: {told}", library=advice.library, version=advice.version, told=told)


def explanation_rows(state: State, width: int) -> list[Row]:
    """The cause explained in full, and the other sentences that belong to this crash."""
    diagnosis = state.diagnosis
    out = [heading(say("Why")), *paragraph(diagnosis.explains, width, 2)]
    said = _beneath(state)
    for remark in _remarks(state):
        remark = lead(remark, 2 * width - 8)[1] if remark == said else remark
        out += [BLANK, *paragraph(remark, width, 2)] if remark else []
    for advice in diagnosis.advisories:
        out += [BLANK, *paragraph(_about(advice, advice.says), width, 2)]
    if state.crash.verdict == "unclear":
        for way in state.crash.settle_by:
            out += [BLANK, *paragraph(say("This would settle it: {way}", way=way), width, 2)]
    return out


class VerdictScreen(StageScreen):
    """Crash: the first screen when a log is there."""

    STAGE = "crash"
    TITLE_WORDS = mark("The verdict")
    CLICKED_AGAIN = "open_line"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_on", "plan", tooltip="the plan; before it, the open questions that decide something"),
        Binding("up,down", "nothing", "evidence", key_display="↑↓", tooltip="choose a line of evidence"),
        Binding("o", "open_line", "open line", tooltip="the log around the chosen line"),
        Binding("d", "case", "case", show=False, tooltip="the documented case that looks like it"),
        Binding("c", "copy", "copy line", show=False, tooltip="copy the chosen line of the log"),
        Binding("escape", "back", "back", show=False, tooltip="the run, then the machine"),
    ]

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._around: dict[int, LogWindow] = {}

    def panes(self) -> Iterable[Widget]:
        yield self.page(self.main_rows, "main", self.ui.cursors.get("crash"))
        yield self.page(self.side_rows, "second")
        yield self.page(self.third_rows, "third")

    def main_rows(self, width: int) -> list[Row]:
        state = self.state
        short = self.app.size.height < TALL
        found = [
            *verdict_rows(state, width),
            BLANK,
            *proof_rows(state.crash, titles_of(state), width, 3 if short else 30),
        ]
        if self.columns > 1:
            found += self._line_in_full(width, len(found) + 2)
        else:
            settings = script_rows(state, width, 2 if short else 6)
            found += [*settings, *box_rows(state, width), BLANK, *cause_rows(state, width)]
            found += [BLANK, *explanation_rows(state, width)]
        return found

    @property
    def _chosen(self) -> int | None:
        """Which piece of evidence the cursor stands on."""
        pages = self.query("#main")
        known = ordered_evidence(self.state.crash)
        wanted = pages.first(Page).wanted if pages else None
        return next((at for at in known if f"evidence {at}" == wanted), next(iter(known), None))

    def _line_in_full(self, width: int, above: int) -> list[Row]:
        """The log around the chosen line, as far as there is room below `above` rows; it alone while that is read."""
        at = self._chosen
        if at is None:
            return []
        evidence, window = self.state.crash.evidence[at], self._around.get(at)
        place = f"{short_name(evidence.file)}:{evidence.line}"
        room = self.app.size.height - FRAME - above
        if window is not None and room > LINE_ROWS:
            around = around_rows(self.state, evidence, window, width, room)
            return [BLANK, heading(say("The log there"), cut_left(place, width // 2), width), *around]
        words = paragraph(evidence.text, width, 2)
        more = rows(line(span("  " + say("o opens the log there"), "dim"))) if len(words) > LINE_ROWS else []
        return [BLANK, heading(say("The chosen line"), place, width), *words[:LINE_ROWS], *more]

    def on_mount(self) -> None:
        super().on_mount()
        self._look()

    def read_on(self, before: State) -> None:
        self._around.clear()
        self._look()

    def _look(self) -> None:
        at = self._chosen
        if at is None or at in self._around or self.columns == 1:
            return
        state, evidence = self.state, self.state.crash.evidence[at]

        def read() -> None:
            worker = get_current_worker()
            with suppress(*expected_trouble()):
                windows = opened_at(state, evidence.file, evidence.line)
                window = windows.around(evidence.line, self.app.size.height, lambda: worker.is_cancelled)
                if not worker.is_cancelled:
                    self.call_later(self._show_around, at, window)

        self.run_worker(read, thread=True, exclusive=True, group="around")

    def _show_around(self, at: int, window: LogWindow) -> None:
        self._around[at] = window
        self.query_one("#main", Page).reload()

    def side_rows(self, width: int) -> list[Row]:
        state = self.state
        tall = self.app.size.height >= TALL
        then = [BLANK, *found] if tall and (found := then_rows(state, width)) else []
        settings = script_rows(state, width, 8 if tall and self.columns == 3 else 4)
        top = [*cause_rows(state, width), *then, BLANK, *settings, BLANK, *box_rows(state, width)]
        return top if self.columns == 3 else [*top, BLANK, *explanation_rows(state, width)]

    def third_rows(self, width: int) -> list[Row]:
        return explanation_rows(self.state, width)

    def words(self) -> dict[str, str]:
        return {"go_on": say("the open question" if self.ui.to_ask else "plan")}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without evidence there is no line to open, without a case none to read."""
        if action in ("open_line", "nothing", "copy"):
            return bool(self.state.crash.evidence)
        return action != "case" or looks_like(self.state) is not None

    def on_page_moved(self, message: Page.Moved) -> None:
        if message.page.id == "main":
            self.ui.cursors["crash"] = message.key
            if self.columns > 1:
                message.page.reload()
                self._look()

    def action_open_line(self) -> None:
        key = self.query_one("#main", Page).cursor
        if key is not None:
            self.app.push_screen(EvidenceView(self.ui, int(key.removeprefix("evidence "))))

    def action_case(self) -> None:
        case = looks_like(self.state)
        if case is not None:
            self.app.push_screen(CaseView(self.ui, case.id))

    def action_copy(self) -> None:
        key = self.query_one("#main", Page).cursor
        if key is not None:
            evidence = self.state.crash.evidence[int(key.removeprefix("evidence "))]
            self.advisor.copy(f"{evidence.file}:{evidence.line}: {evidence.text}\n", mark("the line"))
