"""Compares two sets of changes in two columns, keeps the present one under a name, and takes another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import get_current_worker

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.line_breaks import cut
from advisor.memory.fit import PLACES
from advisor.plan.plan import Plan
from advisor.tui.driver import expected_trouble
from advisor.tui.field_view import FieldView, text_field
from advisor.tui.memory_bars import PLACE_WORDS, fit_words, fullness, phases_of
from advisor.tui.page import POINTER, Page
from advisor.tui.plan_rows import RESULT_WORDS
from advisor.tui.screen import READABLE
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import (
    BLANK,
    Row,
    Toned,
    TonedLine,
    crop,
    cut_key,
    heading,
    line,
    pad,
    paragraph,
    plain,
    span,
    width_of,
)
from advisor.words import PHASE_TITLES

if TYPE_CHECKING:
    from advisor.session import ChosenSet
    from advisor.state import State

PRESENT, PROPOSED, NAMED = "present", "proposed", "named "
"""Keys of the rows; behind the last one stands the name."""
LONGEST_NAME, LEAST_COLUMN, LONGEST_COLUMN, GAP = 32, 17, 36, 2
_NOTHING_YET = mark("n keeps what is on under a name; then it can be compared with what you switch next.")


def title_of(key: str) -> str:
    """What a set is called."""
    if key == PRESENT:
        return say("as it is on")
    return say("as proposed") if key == PROPOSED else key.removeprefix(NAMED)


def set_rows(plans: Mapping[str, Plan], keys: Iterable[str], width: int) -> list[Row]:
    """One line a set: its name, and whether the run fits with it."""
    out = [heading(say("Sets of changes"))]
    for key in keys:
        plan = plans.get(key)
        told = fit_words(plan) if plan is not None else span(say("counting …"), "dim")
        room = max(12, width - POINTER - width_of((told,)) - GAP)
        out.append(Row(crop(line(pad(title_of(key), min(room, LONGEST_NAME)), " " * GAP, told), width - POINTER), key))
    return out


def compared_rows(left: Plan, right: Plan, names: tuple[str, str], width: int) -> list[Row]:
    """What two sets change and where that leads, side by side; what is alike is dim."""
    column = max(LEAST_COLUMN, min(LONGEST_COLUMN, (width - 24) // 2 - GAP))
    room = max(8, width - 2 * (column + GAP))
    head = line(
        pad("", room), *(part for name in names for part in (" " * GAP, span(" " + pad(name, column - 1), "title")))
    )
    out = [Row(head)]
    for key, both in _changes(left, right).items():
        out.append(
            _beside(cut_key(key, room), [(Toned(f" {cut(one or '–', column - 1)}"),) for one in both], room, column)
        )
    results = [_results(plan) for plan in (left, right)]
    out.append(_beside(say("training results"), [(Toned(f" {one.text}", one.tone),) for one in results], room, column))
    for phase in dict.fromkeys([*phases_of(left), *phases_of(right)]):
        for place in PLACES:
            cells = [fullness(plan, place, phase) for plan in (left, right)]
            label = f"{pad(PLACE_WORDS[place], 5)}{PHASE_TITLES[phase]}"
            out += [_beside(label, cells, room, column)] if any(cells) else []
    return out


def _changes(left: Plan, right: Plan) -> dict[str, tuple[str, str]]:
    """Key, or title of a step by hand → its new value in each set; "" where it is left as it is."""
    of_each = [
        {
            change.key: change.new if change.new is not None else say("removed")
            for step in plan.selected()
            for change in step.changes
        }
        | {step.title: say("by hand") for step in plan.selected() if not step.changes}
        for plan in (left, right)
    ]
    return {key: (of_each[0].get(key, ""), of_each[1].get(key, "")) for key in {**of_each[0], **of_each[1]}}


def _results(plan: Plan) -> Toned:
    changed = any(step.results == "changed" for step in plan.selected())
    return Toned(RESULT_WORDS["changed" if changed else "unchanged"], "warn" if changed else "plain")


def _beside(label: str, cells: list[TonedLine], room: int, column: int) -> Row:
    """A line of the table; alike cells are dim."""
    shown = [crop(cell, column) for cell in cells]
    alike = plain(shown[0]) == plain(shown[1])
    out = [span(pad(label, room), "dim" if alike else "plain")]
    for cell in shown:
        out += [Toned(" " * GAP), *(Toned(part.text, "dim" if alike else part.tone) for part in cell)]
        out.append(Toned(" " * (column - width_of(cell))))
    return Row(tuple(out))


def after_set(before: State, after: State) -> str:
    """What taking a set led to, in one clause."""
    return fit_words(after.plan).text if before.plan is not after.plan else ""


class SetsView(FieldView):
    """Sets of changes: the present one beside the marked one."""

    TITLE_WORDS = mark("Sets of changes")
    WIDEST = READABLE
    CLICKED_AGAIN = TAKES = "take"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter", "take", "switch to it", tooltip="switch the plan to the marked set; u on the plan takes it back"
        ),
        Binding("n", "name", "keep as …", tooltip="keep what is on under a name"),
        Binding("x", "forget", "forget", tooltip="forget the marked set"),
        Binding("up,down", "nothing", "set", key_display="↑↓", tooltip="choose the set to compare with"),
        Binding("s", "back", "back", show=False),
    ]

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._known: dict[str, tuple[ChosenSet, Plan]] = {}
        self._for: State | None = None

    def panes(self) -> Iterable[Widget]:
        yield self.page(self.main_rows, "main", PROPOSED)
        yield text_field("name", longest=LONGEST_NAME, closed=True)

    def main_rows(self, width: int) -> list[Row]:
        plans = {key: plan for key, (_, plan) in self._known.items()} | {PRESENT: self.state.plan}
        out = set_rows(plans, self._sets, width)
        marked = plans.get(self.marked)
        if self.marked != PRESENT and marked is not None:
            names = title_of(PRESENT), title_of(self.marked)
            out += [BLANK, *compared_rows(self.state.plan, marked, names, width)]
        return out if self.ui.sets else [*out, BLANK, *paragraph(say(_NOTHING_YET), width, tone="dim")]

    @property
    def _sets(self) -> list[str]:
        return [PRESENT, PROPOSED, *(f"{NAMED}{name}" for name in self.ui.sets)]

    @property
    def marked(self) -> str:
        """The set the cursor stands on."""
        pages = self.query("#main")
        wanted = pages.first(Page).wanted if pages else None
        return wanted if wanted in self._sets else PRESENT

    def words(self) -> dict[str, str]:
        return {"take": say("keep it"), "back": say("leave it")} if self.typing else {}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is on needs no taking; only what the user named is forgotten."""
        if not self.typing and action == "take":
            return self.marked in self._known
        return super().check_action(action, parameters) and (action != "forget" or self.marked.startswith(NAMED))

    def on_mount(self) -> None:
        super().on_mount()
        self._count()

    def reload(self) -> None:
        """Another plan, or another set: count what is not counted yet."""
        super().reload()
        if self.is_mounted and self._for is not self.ui.state:
            self._known.clear()
            self._count()

    def _count(self) -> None:
        driver, state, sets = self.ui.driver(), self.ui.known, dict(self.ui.sets)
        self._for = state

        def count() -> None:
            worker = get_current_worker()
            with suppress(*expected_trouble()):
                chosen = {PROPOSED: driver.proposed_set(state)} | {f"{NAMED}{name}": one for name, one in sets.items()}
                for key, one in chosen.items():
                    plan = driver.with_set(state, one).plan
                    if worker.is_cancelled:
                        return
                    self.call_later(self._counted, key, one, plan)

        self.run_worker(count, thread=True, exclusive=True, group="sets")

    def _counted(self, key: str, chosen: ChosenSet, plan: Plan) -> None:
        self._known[key] = chosen, plan
        self.reload()

    def on_page_moved(self, message: Page.Moved) -> None:
        if message.page.id == "main":
            self.reload()

    def action_take(self) -> None:
        counted = self._known.get(self.marked)
        if counted is not None:
            self.dismiss()
            self.advisor.take_set(counted[0], self._known[PROPOSED][0])

    def action_name(self) -> None:
        self.open_field("", say("a name for what is on, such as no offload"))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        name = clean_line(event.value).strip()
        self.close_field()
        if name:
            self._for = None  # the new set is to be counted, too
            self.advisor.name_set(name)

    def action_forget(self) -> None:
        self.advisor.forget_set(self.marked.removeprefix(NAMED))
