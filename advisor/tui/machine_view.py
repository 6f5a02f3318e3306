"""Shows what the machine has and what the run is, each fact with where it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from advisor.hostile import cells
from advisor.language import Sayings, mark, say, say_count
from advisor.line_breaks import cut, cut_left
from advisor.machine.inventory import Machine
from advisor.run.run import Knob, Run, Topology
from advisor.tui.facts import gpu_words, where
from advisor.tui.field_view import FIND, FindingScreen
from advisor.tui.gauges_view import SHM
from advisor.tui.screen import BACK, StageScreen
from advisor.tui.ui_state import nothing_given
from advisor.tui.ui_text import BLANK, BOX, Row, TonedLine, heading, labelled, line, pad, paragraph, rows, span, spread
from advisor.units import show_bytes, show_params
from advisor.words import Source

if TYPE_CHECKING:
    from advisor.state import State

SOURCE_WORDS: Sayings[Source] = Sayings(
    {"measured": "measured here", "described": "as given", "log": "read in the log", "script": "by the script"}
)
_KNOB_WORDS = Sayings(
    {
        "script": "the script",
        "environment": "the environment",
        "log": "the log",
        "default": "framework default",
        "user": "you",
        "derived": "derived",
        "assumed": "assumed",
    }
)


_LOOK_HERE = mark("No files at hand? d shows a bundled crash.")
_LOOK = mark("No files at hand? rl-oom-advisor --demo shows a bundled crash.")


_LEAST_SOURCE = 12
"""Columns below which the beginning of a source says nothing."""


def fact(label: str, value: str, source: str, width: int) -> Row:
    """`label  value                     source`; the source in what room the value leaves."""
    room = width - 16 - cells(value) - 2
    told = cut(source, room) if room >= min(_LEAST_SOURCE, cells(source)) else ""
    return Row(spread(line(span(pad(label, 16), "title"), value), line(span(told, "dim")), width))


def source_of_field(machine: Machine, *fields: str) -> str:
    """Who says the first of these fields that anybody says, in words."""
    found = next((machine.sources[name] for name in fields if name in machine.sources), None)
    if found == "described" and machine.members:
        return say("told by the nodes")
    return SOURCE_WORDS[found] if found else ""


def nodes_of(machine: Machine, topology: Topology) -> tuple[str, str]:
    """How many nodes, and who says so: the machine, else the launch."""
    if machine.nodes is not None:
        return str(machine.nodes), source_of_field(machine, "nodes")
    return (str(topology.nodes), say("the launch")) if topology.known else (say("unknown"), "")


def machine_rows(machine: Machine, topology: Topology, width: int) -> list[Row]:
    """The box, fact by fact."""
    host, unknown = machine.host, say("unknown")
    out = [
        fact(say("GPUs"), gpu_words(machine), source_of_field(machine, "gpus"), width),
        fact(say("nodes"), *nodes_of(machine, topology), width),
        fact(say("GPU driver"), machine.driver or unknown, "", width),
        fact(say("host RAM"), show_bytes(host.total_bytes), source_of_field(machine, "host.total", "host"), width),
    ]
    limit = show_bytes(host.limit_bytes) if host.limit_bytes is not None else unknown
    if host.limit_bytes is None and machine.sources.get("host.total") == "measured":
        limit = say("none found")
    out.append(
        fact(
            say("memory limit"), limit, cut_left(host.limit_source, 40) or source_of_field(machine, "host.limit"), width
        )
    )
    if host.oom_kills:
        killed = say("the kernel has killed {count} times in this container", count=host.oom_kills)
        out.append(fact("", killed, "cgroup", width))
    out.append(fact(say("swap"), show_bytes(host.swap_total_bytes), source_of_field(machine, "host.swap"), width))
    out.append(fact(SHM, show_bytes(host.shm_bytes), source_of_field(machine, "shm", "host.shm"), width))
    for problem in machine.problems:
        out += labelled("", problem, width, 16, "warn")
    return out


def start_rows(demo: bool, width: int) -> list[Row]:
    """For somebody who gave nothing: what to give."""
    look = say(_LOOK_HERE if demo else _LOOK)
    return [
        *paragraph(say("Give the launch script and the log of the run that died, or either of them:"), width),
        *paragraph("rl-oom-advisor run.sh --log train.log", width, 2, "strong"),
        *paragraph(look, width),
        BLANK,
    ]


def library_rows(machine: Machine, run: Run, width: int) -> list[Row]:
    known = {**machine.libraries, **run.libraries}
    title = say("Libraries that train")
    out = [heading(title, cut_left(machine.environment, width - cells(title) - 2), width)]
    if not known:
        return [*out, *paragraph(say("none found; give them with --lib deepspeed=0.16.3"), width, 2, "dim")]
    for name in sorted(known):
        source = source_of_field(machine, f"libraries.{name}", "libraries")
        out.append(Row(spread(line(f"  {pad(name, 18)} {known[name]}"), line(span(source, "dim")), width)))
    return out


def gpu_rows(machine: Machine, width: int) -> list[Row]:
    out = []
    for gpu in machine.gpus:
        memory = show_bytes(gpu.total_bytes)
        if gpu.used_bytes is not None:
            memory = say("{used} used of {total}", used=show_bytes(gpu.used_bytes), total=memory)
        out += rows(line(cut(f"  {gpu.index}  {gpu.name}  {memory}  {gpu.problem}", width)))
    return out


def framework_words(run: Run) -> str:
    """Like "verl v0.6"."""
    return say("unknown") if run.framework == "unknown" else f"{run.title or run.framework} {run.era}".strip()


def run_rows(state: State, width: int) -> list[Row]:
    """The run: framework, model, topology, and how each was told."""
    run = state.run
    model = run.model
    shape = run.model_name or say("unknown")
    if model:
        shape = say("{model}, {size}", model=shape, size=show_params(model.parameters))
    topology = run.topology
    out = [
        fact(say("framework"), framework_words(run), run.recognised_by, width),
        fact(say("algorithm"), run.recipe.title if run.algorithm != "unknown" else say("unknown"), "", width),
        fact(say("model"), shape, model.note if model else "", width),
        fact(
            say("GPUs"),
            say_count(
                "{total} in {number} node: actor {actor}, rollout {rollout} (TP {tensor_parallel})",
                "{total} in {number} nodes: actor {actor}, rollout {rollout} (TP {tensor_parallel})",
                topology.nodes,
                total=topology.nodes * topology.gpus_per_node,
                actor=topology.actor_gpus,
                rollout=topology.rollout_gpus,
                tensor_parallel=topology.tensor_parallel,
            ),
            "" if topology.known else say("assumed"),
            width,
        ),
    ]
    for note in run.notes:
        out += labelled("", note, width, 16, "warn")
    if state.script is None:
        out += [BLANK, *paragraph(say(NO_SCRIPT), width, tone="warn")]
    return out


NO_SCRIPT = mark(
    "No launch script was given. The log alone says what died; with the script the advisor also computes who held the "
    "memory and writes the script that fits: rl-oom-advisor run.sh --log train.log"
)


def knob_rows(run: Run, width: int) -> list[Row]:
    """The knobs of memory: value, native key and source."""
    known = [knob for knob in run.knobs.values() if knob.value is not None or knob.key]
    if run.framework == "unknown":  # habits of no framework are no news
        known = [knob for knob in known if knob.source not in ("default", "derived", "assumed")]
    if not known:
        return []
    out = [heading(say("Knobs of memory"), say("native setting"), width)]
    places = {setting.key: where(setting) for setting in run.settings if setting.effective}
    ordered = sorted(known, key=lambda knob: (knob.source in ("default", "assumed"), knob.name))
    return [*out, *(Row(_knob_line(knob, places, width)) for knob in ordered)]


def _knob_line(knob: Knob, places: dict[str, str], width: int) -> TonedLine:
    place = places.get(knob.key, "") if knob.source in ("script", "environment") else ""
    source = place or _KNOB_WORDS[knob.source]
    value = say("unresolved") if knob.value is None else str(knob.value)
    note = f" = {knob.note}" if knob.note else ""
    left = line(f"  {pad(knob.name, 28)} {value}", span(note, "dim"))
    right = f"{knob.key}  {source}" if width >= 100 and knob.key else source
    return spread(left, line(span(cut_left(right, max(20, width // 2 - 4)), "dim")), width)


class MachineScreen(StageScreen):
    """Machine: the first screen when no log was given."""

    STAGE = "machine"
    TITLE_WORDS = mark("The machine")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_on", "the run", tooltip="go on to what the script runs"),
        Binding("d", "demo", "demo", tooltip="look at a bundled crash instead"),
    ]

    def panes(self) -> Iterable[Widget]:
        yield self.page(self.main_rows, "main")
        yield self.page(self.side_rows, "second")
        yield self.page(self.third_rows, "third")

    def main_rows(self, width: int) -> list[Row]:
        state = self.state
        top = start_rows(self.ui.offers.demo is not None, width) if nothing_given(state) else []
        title = say("What the nodes have; of each thing, the least") if state.machine.members else say(BOX)
        top += [
            *paragraph(title, width, tone="strong"),
            *machine_rows(state.machine, state.run.topology, width),
        ]
        if self.columns == 1:
            top += [BLANK, *library_rows(state.machine, state.run, width), *gpu_rows(state.machine, width)]
        return top

    def side_rows(self, width: int) -> list[Row]:
        state = self.state
        top = library_rows(state.machine, state.run, width)
        return top if self.columns == 3 else [*top, BLANK, *gpu_rows(state.machine, width)]

    def third_rows(self, width: int) -> list[Row]:
        return [heading(say("Cards")), *gpu_rows(self.state.machine, width)]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The bundled crash is for those who gave nothing."""
        return action != "demo" or (self.ui.offers.demo is not None and nothing_given(self.state))

    def action_demo(self) -> None:
        self.advisor.open_demo()

    def action_back(self) -> None:
        """Nothing lies before the machine."""


class RunScreen(FindingScreen, StageScreen):
    """Run: what the script runs, and how each fact is known."""

    STAGE = "run"
    TITLE_WORDS = mark("The run")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_on", "the crash", tooltip="go on to the verdict"),
        BACK,
        FIND,
    ]

    def panes(self) -> Iterable[Widget]:
        yield self.page(self.main_rows, "main")
        yield self.page(self.side_rows, "second")
        yield self.finder()

    def main_rows(self, width: int) -> list[Row]:
        state = self.state
        top = [*paragraph(say("What the script runs"), width, tone="strong"), *run_rows(state, width)]
        return [*top, BLANK, *knob_rows(state.run, width)] if self.columns == 1 else top

    def side_rows(self, width: int) -> list[Row]:
        return knob_rows(self.state.run, width)
