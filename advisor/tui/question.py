"""Asks the questions of the decision tree, answered already where there is evidence, and lists all answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from advisor.diagnosis.diagnosis import UNKNOWN, Choice, QuestionStep
from advisor.hostile import cells
from advisor.language import Sayings, clauses, mark, say, say_count
from advisor.line_breaks import cut
from advisor.tui.facts import briefly
from advisor.tui.page import Lines, Page
from advisor.tui.screen import READABLE, Overlay, StageScreen
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import (
    BLANK,
    Row,
    TonedLine,
    grouped,
    heading,
    labelled,
    line,
    pad,
    pad_left,
    paragraph,
    span,
    spread,
)

if TYPE_CHECKING:
    from advisor.state import State

LABEL = 18
"""Columns of the labels at the left."""
_ANSWERED = Sayings(
    {
        "log": "answered by the log",
        "script": "answered by the script",
        "machine": "answered by the machine",
        "user": "answered by you",
    }
)
_BY = Sayings({"log": "by the log", "script": "by the script", "machine": "by the machine", "user": "by you"})
"""The same, in a list where "answered" is clear."""


_EARLIER = "earlier "
"""Begins the key of an answer before this one; its number follows."""
_NOTHING_SIMPLE = mark("nothing simple settles it")


def offered(step: QuestionStep) -> tuple[Choice, ...]:
    """The answers to choose from; "I don't know" is always the last."""
    return (*(choice for choice in step.choices if choice.id != UNKNOWN), Choice(UNKNOWN, say("I don't know")))


def answered_by(state: State, step: QuestionStep, brief: bool = False) -> str:
    """Like "answered by the log, line 41 207", `brief`: "by the log, …"; "" for a question nobody answered."""
    if step.source == "unknown":
        return ""
    if step.guess:
        return say("a guess" if brief else "a guess: Enter agrees")
    lines = [state.crash.evidence[at].line for at in step.evidence if at < len(state.crash.evidence)]
    if step.source == "script" and state.script is None:
        return say("nothing was given")
    if step.source == "log" and lines:
        return say("by the log, line {line}" if brief else "answered by the log, line {line}", line=grouped(lines[0]))
    return (_BY if brief else _ANSWERED)[step.source]


def question_rows(state: State, step: QuestionStep, cursor: str | None, width: int) -> list[Row]:
    """The question, its answers (the cursor stands on them), and what the chosen one needs to be known."""
    out = [*paragraph(step.asks, width, tone="strong")]
    choices = offered(step)
    for number, choice in enumerate(choices, start=1):
        numbered = pad_left(str(number), len(str(len(choices))))
        out.append(Row(_choice_line(state, step, numbered, choice, width - 2), choice.id))
    if cursor == UNKNOWN or step.answer == UNKNOWN:
        out += [BLANK, *labelled(say("How to find out"), step.if_unknown or say(_NOTHING_SIMPLE), width, LABEL)]
    return out


def _choice_line(state: State, step: QuestionStep, number: str, choice: Choice, width: int) -> TonedLine:
    right: TonedLine = ()
    if choice.id == step.answer:
        right = line(span(answered_by(state, step) or say("chosen for now"), "good"))
    elif choice.id == step.suggested:
        right = line(span(say("what the evidence says"), "mark"))
    elif choice.id == UNKNOWN:
        right = line(span(say("how to find out …"), "dim"))
    mark = "●" if choice.id == step.answer else " "
    return spread(line(span(number, "mark"), f" {mark} {choice.title}"), right, width)


def because_rows(state: State, step: QuestionStep, width: int) -> list[Row]:
    """Why it matters, what answered it, what is less likely for it, and what was answered before."""
    out = labelled(say("Why this matters"), step.why, width, LABEL)
    if step.because:
        out += labelled(say("Answered by"), briefly(state, step.because), width, LABEL)
    for reason, titles in less_likely_for(state, step).items():
        own = bool(step.because) and step.because in reason  # the answer itself, and that stands above
        told = clauses(titles)
        if not own:
            told = say("{titles}: {reason}", titles=told, reason=briefly(state, reason))
        out += labelled(say("Less likely"), told, width, LABEL)
    return out


def less_likely_for(state: State, step: QuestionStep) -> dict[str, list[str]]:
    """Reason → the causes that this question's answer led away from."""
    found: dict[str, list[str]] = {}
    for ruled in state.diagnosis.less_likely:
        if ruled.question == step.question:
            found.setdefault(ruled.because, []).append(ruled.title)
    return found


def earlier_rows(state: State, at: int, width: int) -> list[Row]:
    """The answers before this one, one a line; the cursor may stand on them, and Enter goes there."""
    out = []
    for number, step in enumerate(state.diagnosis.path[:at]):
        label = say("Before this") if number == 0 else ""
        by, answer = answered_by(state, step, brief=True), cut(answer_title(step), width // 3)
        room = width - LABEL - cells(answer) - cells(by) - 5
        left = line(span(pad(label, LABEL - 2), "title"), cut(step.asks, room), " ", span(answer, "strong"))
        out.append(Row(spread(left, line(span(by, "dim")), width - 2), f"{_EARLIER}{number}"))
    return out


def answer_title(step: QuestionStep) -> str:
    """The chosen answer in words."""
    return next((choice.title for choice in offered(step) if choice.id == step.answer), step.answer)


def path_rows(state: State, at: int, width: int) -> list[Row]:
    """The whole path as a list, for terminals with room: where we are and what follows."""
    out = [heading(say("The path"))]
    for number, step in enumerate(state.diagnosis.path):
        mark = "●" if number == at else ("✓" if number < at else "·")
        text = f"{mark} {step.asks}  {answer_title(step)}"
        out += paragraph(text, width, 1, "strong" if number == at else "plain")
    return [*out, BLANK, *labelled(say("Likely cause"), state.diagnosis.title, width)]


class QuestionScreen(StageScreen):
    """One question; digits choose, Enter agrees and goes on."""

    STAGE = "questions"
    TITLE_WORDS = mark("A question")
    CLICKED_AGAIN = "go_on"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_on", "agree", tooltip="take the marked answer and go on"),
        Binding("1", "choose(1)", "choose", key_display="1-9", tooltip="choose an answer and see what it changes"),
        Binding("up,down", "nothing", "move", key_display="↑↓", tooltip="move between answers"),
        Binding("u", "undo", "my answer back", tooltip="take your own answer back: the evidence answers again"),
        Binding("escape", "back", "back", tooltip="the question before"),
        *(Binding(str(digit), f"choose({digit})", show=False) for digit in range(2, 10)),
    ]

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._at = ui.question
        self._taken_back = False

    def reload(self) -> None:
        """An answer that was taken back takes the cursor with it: Enter would give it again."""
        step = self.step
        if self._taken_back and step is not None and step.source != "user":
            self._taken_back = False
            for page in self.query("#main").results(Page):
                page.wanted = step.answer
        super().reload()

    @property
    def step(self) -> QuestionStep | None:
        """The question; None where the path became shorter."""
        path = self.state.diagnosis.path
        return path[self._at] if self._at < len(path) else None

    def panes(self) -> Iterable[Widget]:
        step = self.step
        yield self.page(self.main_rows, "main", step.answer if step else None)
        yield self.page(self.side_rows, "second")
        yield self.page(self.third_rows, "third")

    def main_rows(self, width: int) -> list[Row]:
        step = self.step
        if step is None:
            return paragraph(say("Nothing more to ask: Enter goes on to the plan."), width)
        found = self.query("#main")
        cursor = found.first(Page).wanted if found else step.answer
        out = question_rows(self.state, step, cursor, width)
        if self.columns == 1:
            out += [BLANK, *because_rows(self.state, step, width), *earlier_rows(self.state, self._at, width)]
        return out

    def side_rows(self, width: int) -> list[Row]:
        step = self.step
        if step is None:
            return []
        out = because_rows(self.state, step, width)
        return out if self.columns == 3 else [*out, BLANK, *path_rows(self.state, self._at, width)]

    def third_rows(self, width: int) -> list[Row]:
        return path_rows(self.state, self._at, width)

    def words(self) -> dict[str, str]:
        step = self.step
        last = not any(question != self.ui.question_id for question in self.ui.to_ask)
        if self._on_earlier():
            return {"go_on": say("change this answer")}
        count = say_count("{number} answer", "{number} answers", len(offered(step))) if step else say("choose")
        return {"go_on": say("agree, then the plan" if last else "agree"), "choose(1)": count}

    def _on_earlier(self) -> bool:
        found = self.query("#main")
        cursor = found.first(Page).cursor if found else None
        return cursor is not None and cursor.startswith(_EARLIER)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only an answer of the user's own can be taken back."""
        if action == "undo":
            step = self.step
            return step is not None and step.source == "user"
        return True

    def on_page_moved(self, message: Page.Moved) -> None:
        """The way to find out follows the cursor, and so does what Enter does."""
        for name in ("#main", "#keys"):
            self.query_one(name, Lines).reload()

    def action_go_on(self) -> None:
        step, cursor = self.step, self.query_one("#main", Page).cursor
        if cursor is not None and cursor.startswith(_EARLIER):
            self.advisor.action_question(int(cursor.removeprefix(_EARLIER)))
        elif step is None or cursor is None or cursor == step.answer:
            super().action_go_on()
        else:
            self.advisor.answer(step.question, cursor, then_on=True)

    def action_choose(self, number: int) -> None:
        step = self.step
        if step is None or number > len(offered(step)):
            return
        choice = offered(step)[number - 1].id
        self.query_one("#main", Page).move_to(choice)
        if choice != step.answer:
            self.advisor.answer(step.question, choice, then_on=False)

    def action_undo(self) -> None:
        step = self.step
        if step is not None and step.source == "user":
            self._taken_back = True
            self.advisor.answer(step.question, None, then_on=False)


def answer_rows(state: State, width: int) -> list[Row]:
    """Two lines a question: what is asked; the answer, and what answered it."""
    out: list[Row] = []
    for number, step in enumerate(state.diagnosis.path):
        by = answered_by(state, step, brief=True)
        answer = cut(answer_title(step), width - cells(by) - 7)
        given = spread(line("    ", span(answer, "strong")), line(span(by, "dim")), width - 2)
        out += [Row(line(cut(step.asks, width - 2)), str(number)), Row(given)]
    return out


class AnswersView(Overlay):
    """All answers; the plan rests on them."""

    OPENED_BY = Binding("r", "answers", "answers", show=False, tooltip="every question, its answer and who gave it")
    RANK = 16
    TITLE_WORDS = mark("The answers")
    NEEDS_RUN = True
    WIDEST = READABLE
    CLICKED_AGAIN = "change"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "change", "change", tooltip="answer it otherwise")]

    def main_rows(self, width: int) -> list[Row]:
        cause = labelled(say("Likely cause"), self.state.diagnosis.title, width)
        return [*answer_rows(self.state, width), BLANK, *cause]

    def action_change(self) -> None:
        chosen = self.query_one("#main", Page).cursor
        self.dismiss()
        if chosen is not None:
            self.advisor.action_question(int(chosen))
