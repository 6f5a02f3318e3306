"""Shows what the sums count with, each fact with its source, and takes it otherwise: what a command line can say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from advisor.given import FORMS, READ_AS, GivenName, text_of
from advisor.hostile import cells
from advisor.language import Sayings, clauses, mark, say
from advisor.line_breaks import cut
from advisor.machine.inventory import Machine
from advisor.tui.facts import doubts_of_sums, gpu_words
from advisor.tui.field_view import FieldView, text_field
from advisor.tui.gauges_view import SHM
from advisor.tui.machine_view import SOURCE_WORDS, nodes_of, source_of_field
from advisor.tui.memory_bars import fit_words
from advisor.tui.page import Page
from advisor.tui.plan_rows import after_answer
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import BLANK, Row, heading, line, pad, paragraph, span, spread
from advisor.units import show_bytes, show_params

if TYPE_CHECKING:
    from advisor.state import State

TITLES: Sayings[GivenName] = Sayings(
    {
        "gpus": "GPUs per node",
        "nodes": "nodes",
        "host_ram": "host RAM per node",
        "shm": SHM,
        "framework": "framework",
        "version": "its version",
        "libraries": "libraries",
        "was": "it fitted with",
        "model": "model",
        "script": "launch script",
        "launch": "which launch of it",
        "logs": "logs",
        "max_row": "longest row",
        "margin": "margin",
    }
)
_EMPTY = mark("empty: it counts again what is measured, read or assumed")
COMPLETED: frozenset[GivenName] = frozenset({"gpus", "framework", "model", "script", "logs"})
LABEL = 20


def fact_of(state: State, name: GivenName) -> tuple[str, str]:
    """(what counts now, where it comes from), in words."""
    machine, run, asked, unknown = state.machine, state.run, state.asked, say("unknown")
    given = bool(text_of(asked, name))
    you = SOURCE_WORDS["described"]
    if name == "gpus":
        return gpu_words(machine, run.topology.asked), source_of_field(machine, "gpus")
    if name == "nodes":
        return nodes_of(machine, run.topology)
    if name == "host_ram":
        return show_bytes(machine.host.total_bytes), source_of_field(machine, "host.total", "host")
    if name == "shm":
        return show_bytes(machine.host.shm_bytes), source_of_field(machine, "shm", "host.shm")
    if name == "framework":
        return say("unknown") if run.framework == "unknown" else run.title or run.framework, run.recognised_by
    if name == "version":
        return run.era or unknown, say("assumed") if run.era and run.era_guessed else ""
    if name == "libraries":
        return _libraries(state) or unknown, you if given else ""
    if name == "was":
        return clauses(asked.was) or say("not given"), you if given else ""
    if name == "model":
        size = f", {show_params(run.model.parameters)}" if run.model is not None else ""
        return (run.model_name or unknown) + size, you if given else run.model.note if run.model is not None else ""
    if name == "script":
        return str(asked.script or say("none")), ""
    if name == "launch":
        count = len(state.script.launches) if state.script is not None else 0
        return say("{number} of {count}", number=state.launch_index + 1, count=count) if count else say("none"), ""
    if name == "logs":
        return clauses(map(str, asked.logs)) or say("none"), ""
    if name == "max_row":
        rows = asked.max_row or say("not given")
        return (say("every row at its cap") if rows == "cap" else rows), you if given else ""
    kept = f"{state.plan.margin:.0%}"
    if state.plan.margin > asked.margin:
        told = say("{kept}, not {asked}: the log prints no size of what failed", kept=kept, asked=f"{asked.margin:.0%}")
        return told, say("left free of every memory")
    return kept, say("left free of every memory")


def _is_local(machine: Machine, library: str) -> bool:
    """Whether only this computer has it, and nothing else of the run was read on this computer."""
    sources = machine.sources
    here = any(source == "measured" for name, source in sources.items() if not name.startswith("libraries"))
    return sources.get(f"libraries.{library}") == "measured" and not here


def _libraries(state: State) -> str:
    """The versions of the run, and apart from them what only this computer has, where the run was elsewhere."""
    machine, run = state.machine, state.run
    known = {**machine.libraries, **run.libraries}
    local = {one for one in machine.libraries if one not in run.libraries and _is_local(machine, one)}
    here = clauses(f"{one} {known[one]}" for one in sorted(local))
    told = [f"{one} {known[one]}" for one in sorted(known) if one not in local]
    return clauses(
        [*told, say("on this computer, not known of the run: {libraries}", libraries=here)] if here else told
    )


def known_words(state: State, name: GivenName) -> Sequence[str]:
    """What may be written there: cards, frameworks and models that are known, files beside the script and the logs."""
    knowledge, asked = state.knowledge, state.asked
    if name == "gpus":
        return [
            f"{front}{one.name}" for front in ("", *(f"{count}x" for count in range(1, 17))) for one in knowledge.gpus
        ]
    if name == "framework":
        return [one.framework for one in knowledge.frameworks]
    if name == "model":
        return [one.name for one in knowledge.models]
    folders = {one.parent for one in (asked.script, *asked.logs) if one is not None} if name in COMPLETED else ()
    with suppress(OSError):
        return sorted(str(one) for folder in folders for one in folder.iterdir() if str(one).isprintable())
    return ()


def given_rows(state: State, width: int, written: GivenName | None = None) -> list[Row]:
    """Every fact on a line; the cursor stands on them. `written`: the one that is being written says how."""
    out = [heading(say("What the sums count with"), say("where from"), width)]
    for name in FORMS:
        value, source = fact_of(state, name)
        room = max(12, (width - LABEL - 4) // 3, width - LABEL - 4 - cells(value))
        right = line(span(cut(source, room), "dim"))
        out.append(Row(spread(line(span(pad(TITLES[name], LABEL), "title"), span(value)), right, width - 2), name))
        if name == written:
            like = say("like {form}", form=FORMS[name])
            like = clauses([like, *([say("tab completes")] if name in COMPLETED else [])])
            told = clauses([like, *([say(READ_AS[name])] if name in READ_AS else []), say(_EMPTY)])
            out += paragraph(told, width - 2, 2, "mark", name)
    return out


def after_said(before: State, after: State, name: GivenName) -> str:
    """Like "nodes: 2 now; …": what counts now, and what follows from it."""
    now = say("{title}: {value} now", title=TITLES[name], value=fact_of(after, name)[0])
    fits = [fit_words(after.plan).text] if before.plan.fits != after.plan.fits else []
    against = [one.rstrip(".。") for one in doubts_of_sums(after) if one not in doubts_of_sums(before)]
    return clauses([now, *fits, *(against or [after_answer(before, after)])])


def rests_rows(state: State, width: int) -> list[Row]:
    """What the sums rest on besides: what was assumed, and what is missing."""
    ledger = state.plan.before or state.ledger
    told = [*ledger.missing, *state.run.doubts, *ledger.assumed]
    out = [heading(say("What the sums assume"))]
    if not told:
        return [*out, *paragraph(say("nothing beyond what stands in the list"), width, 2, "dim")]
    return [*out, *(row for one in dict.fromkeys(told) for row in paragraph(one, width, 2))]


class GivenView(FieldView):
    """What a command line says, said in the app; the ledger follows."""

    OPENED_BY = Binding(
        "i", "given", "facts", tooltip="what the sums count with and from where, and to say it otherwise"
    )
    RANK = 15
    TITLE_WORDS = mark("The facts")
    CLICKED_AGAIN = TAKES = "change"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "change", "say it otherwise", tooltip="write the marked fact; empty takes it back"),
        Binding("up,down", "nothing", "fact", key_display="↑↓", tooltip="choose a fact"),
    ]

    def __init__(self, ui: UiState) -> None:
        super().__init__(ui)
        self._written: dict[str, str] = {}

    NEEDS_RUN = True

    @classmethod
    def can_show(cls, ui: UiState) -> bool:
        """Not before all is read: what is said meanwhile would be lost."""
        return super().can_show(ui) and not ui.known.crash.preliminary

    def panes(self) -> Iterable[Widget]:
        """The facts; what else the sums assume; the field that Enter opens."""
        yield self.page(self.main_rows, "main")
        yield self.page(self.side_rows, "second")
        yield text_field("fact", closed=True)

    def main_rows(self, width: int) -> list[Row]:
        top = given_rows(self.state, width, self.marked if self.typing else None)
        return [*top, BLANK, *rests_rows(self.state, width)] if self.columns == 1 else top

    def side_rows(self, width: int) -> list[Row]:
        return rests_rows(self.state, width)

    @property
    def marked(self) -> GivenName:
        """The fact the cursor stands on."""
        key = self.query_one("#main", Page).wanted
        return next((name for name in FORMS if name == key), "gpus")

    def words(self) -> dict[str, str]:
        return {"change": say("take it"), "back": say("leave it as it was")} if self.typing else {}

    def action_change(self) -> None:
        name = self.marked
        hint = say("like {form}", form=FORMS[name])
        self.query_one(Input).suggester = SuggestFromList(known_words(self.state, name), case_sensitive=False)
        self.open_field(self._written.get(name, text_of(self.state.asked, name)), hint)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        name = self.marked
        self._written[name] = event.value
        self.close_field()
        self.advisor.say_otherwise(name, event.value)

    def reload(self) -> None:
        if self.ui.state is not None:
            asked = self.ui.state.asked
            self._written = {
                n: t for n, t in self._written.items() if any(n == f and t != text_of(asked, f) for f in FORMS)
            }
        super().reload()
