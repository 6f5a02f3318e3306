"""Shows all gauges: one text line a GPU, the host, who uses the GPUs, and the nodes of a Ray cluster."""

from __future__ import annotations

from time import monotonic, time
from typing import TYPE_CHECKING

from textual.binding import Binding

from advisor.hostile import cells
from advisor.language import Sayings, listed, mark, say, say_count, sentences
from advisor.machine.inventory import Gpu, GpuProcess, Host, Machine
from advisor.machine.nodes import join_nodes, some_of
from advisor.tui import ui_text as words
from advisor.tui.facts import gpu_words, host_words
from advisor.tui.gauge_strip import filled, gib, host_use, percent, ratio
from advisor.tui.screen import Overlay
from advisor.tui.ui_text import BLANK, Row, Tone, cut, flow, heading, line, pad, pad_left, paragraph, span
from advisor.units import GIB, in_ranges, show_bytes

if TYPE_CHECKING:
    from advisor.machine.cluster.live import ClusterSnapshot, NodeGauge
    from advisor.machine.live import GaugeSnapshot, GpuGauge


_SILENT_ABOUT = mark("GPU {gpus}: the driver does not say which processes (not permitted, or not supported).")
SHM = "/dev/shm"  # noqa: S108 (a name to show, not a path to write)
_TOLD: Sayings[str | None] = Sayings({"described": "described by you", "log": "read in the log"})
HEIGHTS = "▁▂▃▄▅▆▇█"
ASCII_HEIGHTS = ".:-=+*%#"


def history(readings: tuple[int | None, ...], total: int | None, width: int, plain_ascii: bool = False) -> str:
    """The last `width` readings on the fixed scale 0…total: a flat line stays flat. A missing reading is a gap."""
    if not total:
        return ""
    heights = ASCII_HEIGHTS if plain_ascii else HEIGHTS
    drawn = [
        " " if used is None else heights[min(len(heights) - 1, max(0, used) * len(heights) // total)]
        for used in readings[-width:]
    ]
    return "".join(drawn).rjust(width)


def bar_columns(width: int) -> int:
    """Columns of a bar: a third of what the numbers leave, the history gets the rest."""
    return max(10, min(48, (width - 42) // 3))


def gpu_rows(gauge: GpuGauge, taken: float, width: int, plain_ascii: bool = False) -> list[Row]:
    """`0 ▕█████▍    ▏ 18.9/40.0G  47 %  98%  61° 301/400W  ▁▁▃▆▆`, and a line below where something is unusual.

    "|" in the bar is the most ever seen. `taken` is when the snapshot was, on its own clock.
    """
    gpu = gauge.gpu
    peak = ratio(gauge.peak_bytes, gpu.total_bytes)
    bar = filled(ratio(gpu.used_bytes, gpu.total_bytes), bar_columns(width), plain_ascii, peak)
    memory = pad_left(f"{gib(gpu.used_bytes)}/{gib(gpu.total_bytes)}G", 12)
    share = pad_left(percent(ratio(gpu.used_bytes, gpu.total_bytes)), 5)
    left = f"{gpu.index:>2} {bar} {memory} {share} {load_words(gpu)}"
    room = width - cells(left) - 3
    name = f"{gpu.mig} " if gpu.mig and room > len(gpu.mig) + 4 else ""
    drawn = history(gauge.history, gpu.total_bytes, min(room - len(name), 60), plain_ascii) if room > 4 else ""
    tone: Tone = "dim" if gauge.stale else "plain"
    first = Row(line(span(left, tone), "  ", span(name + drawn, tone)))
    return [first, *paragraph(" · ".join(unusual(gauge, taken)), width, 3, "warn")]


def load_words(gpu: Gpu) -> str:
    """Load, heat, and power beside its cap, each in columns of its own; blank where the driver does not say."""
    load = f"{gpu.utilisation}%" if gpu.utilisation is not None else ""
    heat = f"{gpu.temperature}°" if gpu.temperature is not None else ""
    power = f"{gpu.power_watts:.0f}" if gpu.power_watts is not None else ""
    if power:
        power += f"/{gpu.power_limit_watts:.0f}W" if gpu.power_limit_watts is not None else "W"
    return f"{load:>4} {heat:>4} {power:>9}"


def unusual(gauge: GpuGauge, taken: float) -> list[str]:
    """What is wrong with a card, and what holds it back."""
    gpu, out = gauge.gpu, []
    if gauge.stale:
        age = gauge.age(taken)
        never = [] if gpu.problem else [say("does not answer")]
        out += never if age is None else [say("does not answer; last read {age} ago", age=_age(age))]
    if gpu.problem:
        out.append(gpu.problem)
    if gpu.throttle:
        out.append(say("held back by: {reasons}", reasons=listed(gpu.throttle)))
    if gpu.ecc_errors:
        out.append(
            say_count(
                "{number} uncorrected memory error (ECC)", "{number} uncorrected memory errors (ECC)", gpu.ecc_errors
            )
        )
    return out


def host_rows(host: Host, peak: int | None, width: int, plain_ascii: bool = False) -> list[Row]:
    """RAM (or the limit that binds), swap and /dev/shm."""
    used, ceiling = host_use(host)
    limited = host.limit_bytes is not None and ceiling == host.limit_bytes
    if limited:
        note = say("limit: {source}", source=host.limit_source)
    else:
        note = say("most seen {size}", size=show_bytes(peak)) if peak is not None else ""
    out = [_host_row(say("RAM"), used, ceiling, note, width, plain_ascii)]
    if host.swap_total_bytes:
        out.append(_host_row(say("swap"), host.swap_used_bytes, host.swap_total_bytes, "", width, plain_ascii))
    if host.shm_bytes is not None:
        out.append(_host_row("shm", host.shm_used_bytes, host.shm_bytes, SHM, width, plain_ascii))
    if host.oom_kills:
        told = say("the kernel has killed {count} times in this container", count=host.oom_kills)
        out.append(Row(line(span(f"   {told}", "warn"))))
    return out


def _host_row(label: str, used: int | None, total: int | None, note: str, width: int, plain_ascii: bool) -> Row:
    bar = filled(ratio(used, total), bar_columns(width), plain_ascii)
    numbers = f"{gib(used)}/{gib(total)}G"
    text = f"{pad(label, 5)} {bar} {pad_left(numbers, 12)} {pad_left(percent(ratio(used, total)), 5)}"
    return Row(line(text, "  ", span(cut(note, width - cells(text) - 4), "dim")))


def left_behind(snapshot: GaugeSnapshot, now: float, ended: float | None) -> dict[int, str]:
    """pid → how much it holds, of training processes that began before the run of the log ended and are still there.

    `ended` (epoch seconds): when the log was last written; None: no run is known to have died, and nothing is flagged.
    """
    from advisor.machine.processes import leftovers

    if ended is None:
        return {}
    cards = [gauge.gpu for gauge in snapshot.gpus]
    return {left.process.pid: show_bytes(left.process.used_bytes) for left in leftovers(cards, now, ended)}


def process_rows(snapshot: GaugeSnapshot, now: float, width: int, ended: float | None = None) -> list[Row]:
    """Who holds GPU memory; leftovers of a dead run, the quietest cause of the next one, are marked with "!"."""
    if not snapshot.gpus:
        return []
    left = left_behind(snapshot, now, ended)
    columns = f"{pad('GPU', 4)}{pad('pid', 9)}{pad(say('user'), 11)}{pad_left(say('GPU mem'), 11)}"
    columns += f"{pad_left(say('host'), 11)}{pad_left(say('age'), 7)}  {say('command')}"
    out = paragraph(words.leftovers(sorted(left.items())), width, 0, "bad") if left else []
    out.append(heading(columns))
    before = len(out)
    silent = [gauge.gpu.index for gauge in snapshot.gpus if gauge.gpu.processes is None and not gauge.stale]
    for gauge in snapshot.gpus:
        found = sorted(gauge.gpu.processes or (), key=lambda one: -(one.used_bytes or 0))
        out += [_process_row(gauge.gpu.index, one, now, width, one.pid in left) for one in found]
    if silent:
        out += paragraph(say(_SILENT_ABOUT, gpus=in_ranges(silent)), width, 0, "dim")
    elif len(out) == before:
        out += paragraph(say("no process on the GPUs"), width, 0, "dim")
    return [*out, *_unseen(snapshot, width)]


def _unseen(snapshot: GaugeSnapshot, width: int) -> list[Row]:
    """Memory on cards that no process of the list accounts for."""
    from advisor.machine.processes import unseen_bytes

    held = {gauge.gpu.index: unseen_bytes(gauge.gpu) or 0 for gauge in snapshot.gpus if not gauge.stale}
    held = {index: size for index, size in held.items() if size > GIB}
    return paragraph(words.unseen(list(held), show_bytes(max(held.values()))), width, 0, "warn") if held else []


def _process_row(index: int, process: GpuProcess, now: float, width: int, is_left: bool) -> Row:
    from advisor.machine.processes import UNKNOWN_PROCESS

    age = _age(now - process.started) if process.started is not None else "?"
    text = (
        f"{pad(('!' if is_left else '') + str(index), 4)}{pad(str(process.pid), 9)}{pad(process.user or '?', 10)} "
        f"{pad_left(show_bytes(process.used_bytes), 11)}"
        f"{pad_left(show_bytes(process.host_rss_bytes), 11)}{pad_left(age, 7)}  "
    )
    command = say(UNKNOWN_PROCESS) if process.command == UNKNOWN_PROCESS else process.command
    return Row(line(span(text, "bad" if is_left else "plain"), cut(command, max(8, width - cells(text)))))


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(0, seconds):.0f}s"


def gauge_rows(
    snapshot: GaugeSnapshot | None,
    why_none: str,
    now: float,
    width: int,
    plain_ascii: bool = False,
    ended: float | None = None,
) -> list[Row]:
    """The whole view. Three empty states are told apart: not read yet, no GPU, and cards that cannot be read."""
    if snapshot is None:
        return paragraph(why_none or say("reading the gauges …"), width)
    out: list[Row] = [heading(say("GPUs"), say("memory, load, heat, power/cap; | is the most seen"), width)]
    out += [row for gauge in snapshot.gpus for row in gpu_rows(gauge, snapshot.taken, width, plain_ascii)]
    if snapshot.problem:
        out += paragraph(snapshot.problem, width, 2, "warn")
    elif not snapshot.gpus:
        out += paragraph(say(words.NO_GPU_SHOWN), width, 2)
    out += [BLANK, heading(say("Host")), *host_rows(snapshot.host, snapshot.host_peak_bytes, width, plain_ascii)]
    processes = process_rows(snapshot, now, width, ended)
    return [*out, BLANK, *processes] if processes else out


def counted_rows(machine: Machine, width: int) -> list[Row]:
    """The machine that the diagnosis counts with, where it is not the one these gauges show."""
    told = [_TOLD[source] for name in ("gpus", "host.total") if (source := machine.sources.get(name)) in _TOLD]
    if not told:
        return []
    if machine.members:
        told = [say("told by the nodes")]
    facts = [gpu_words(machine), host_words(machine)]
    out = [BLANK, heading(say("The machine the diagnosis counts with"), listed(dict.fromkeys(told)), width)]
    out += flow(facts, width, 2, gap=" · ")
    return [*out, *paragraph(say("The gauges show the box this program runs on."), width, 2, "dim")]


class GaugesView(Overlay):
    """Gauges in full; they go on while it is open."""

    OPENED_BY = Binding("g", "gauges", "gauges", tooltip="all GPUs, the host, and who sits on them")
    RANK = 30
    NEEDS_STATE = False
    TITLE_WORDS = mark("All gauges")
    ENTER_CLOSES = True

    def main_rows(self, width: int) -> list[Row]:
        """All gauges as last read."""
        ui = self.ui
        ended = ui.run_ended
        shown = gauge_rows(ui.snapshot, ui.no_gauges, time(), width, ui.plain_ascii, ended)
        if ui.cluster is not None:
            nodes = cluster_rows(ui.cluster.look(), monotonic(), width, ui.plain_ascii)
            shown = [*nodes, BLANK, heading(say("This box")), *shown]
        return [*shown, *counted_rows(ui.state.machine, width)] if ui.state else shown

    def reload_strip(self) -> None:
        """Here the whole page is live."""
        self.reload()


_NARROW = 75
"""Columns below which names and cards get less room, and the load gets none."""
_OLD = 15.0
"""Seconds after which a reading is no longer taken for the present one."""


def cluster_rows(snapshot: ClusterSnapshot, now: float, width: int, plain_ascii: bool = False) -> list[Row]:
    """All nodes, by name; `now` on the clock of their readings."""
    name, cards, load = _columns(width)
    titles = f"{pad_left(say('fullest card'), 18)}{pad_left(say('load'), 6) if load else ''}{pad_left(say('RAM'), 18)}"
    out = [heading(pad(cut(say("Nodes of the Ray cluster"), name + cards), name + 1 + cards) + titles)]
    out += [_node_row(node, now, width, plain_ascii) for node in snapshot.nodes]
    if snapshot.problem:
        out += paragraph(snapshot.problem, width, 2, "warn")
    elif not snapshot.nodes:
        waiting = say("no node") if snapshot.asked_before else say("asking the cluster …")
        out += paragraph(waiting, width, 2, "dim")
    elif (age := now - max(node.read_at or 0.0 for node in snapshot.nodes)) > _OLD and snapshot.asked_before:
        out += paragraph(say("Ray has told nothing for {count} seconds.", count=round(age)), width, 2, "warn")
    return [*out, *_silent_rows(snapshot, now, width), *_told_rows(snapshot, width)]


def _columns(width: int) -> tuple[int, int, bool]:
    """Columns of a node's name and of its cards, a sign each; whether there is room for the load."""
    return (16, 16, True) if width >= _NARROW else (12, 9, False)


def gpu_heights(gpus: tuple[Gpu, ...], room: int, plain_ascii: bool = False) -> str:
    """A sign a card, as high as it is full; "?" where that is not known, "+" after the last that has room."""
    signs = ASCII_HEIGHTS if plain_ascii else HEIGHTS
    drawn = ""
    for gpu in gpus:
        share = ratio(gpu.used_bytes, gpu.total_bytes)
        drawn += "?" if share is None else signs[max(0, min(round(share * 8), 8) - 1)]
    return drawn if len(drawn) < room else drawn[: room - 2] + "+"


def _node_row(node: NodeGauge, now: float, width: int, plain_ascii: bool) -> Row:
    room, cards, load = _columns(width)
    name = pad(cut(node.name, room - 1), room)
    if node.machine is None:
        return Row(line(name, span(say("has not answered yet") if not node.problem else "?", "dim")))
    old = node.problem or node.read_at is None or now - node.read_at > _OLD
    tone: Tone = "dim" if old else "plain"
    drawn = gpu_heights(node.machine.gpus, cards, plain_ascii)
    text = f"{name} {pad(drawn, cards)}{_numbers(node.machine, load)}"
    return Row(line(span(cut(text, width), tone)))


def _numbers(machine: Machine, with_load: bool) -> str:
    fullest = max(machine.gpus, key=lambda gpu: ratio(gpu.used_bytes, gpu.total_bytes) or 0.0, default=None)
    loads = [gpu.utilisation for gpu in machine.gpus if gpu.utilisation is not None]
    used, ceiling = host_use(machine.host)
    card = say("no GPU") if fullest is None else _of(fullest.used_bytes, fullest.total_bytes)
    load = pad_left(f"{max(loads)}%" if loads else "", 6) if with_load else ""
    return f"{pad_left(card, 18)}{load}{pad_left(_of(used, ceiling), 18)}"


def _of(used: int | None, total: int | None) -> str:
    return f"{gib(used)}/{gib(total)}G {percent(ratio(used, total)):>5}"


def _silent_rows(snapshot: ClusterSnapshot, now: float, width: int) -> list[Row]:
    """Who does not answer, each reason once."""
    who: dict[str, list[NodeGauge]] = {}
    for node in snapshot.nodes:
        if node.problem:
            who.setdefault(node.problem, []).append(node)
    out: list[Row] = []
    for why, nodes in who.items():
        names = some_of([node.name for node in nodes])
        told = [say("{nodes}: {problem}.", nodes=names, problem=why.rstrip(".。"))]
        read = [node.read_at for node in nodes if node.read_at is not None]
        if read:
            age = round(now - max(read))
            told.append(say_count("Last read {number} second ago.", "Last read {number} seconds ago.", age))
        out += paragraph(sentences(told), width, 2, "warn")
    return out


def _told_rows(snapshot: ClusterSnapshot, width: int) -> list[Row]:
    """What the nodes complain of, and where they differ."""
    members = [node.machine for node in snapshot.nodes if node.machine is not None]
    if not members:
        return []
    problems = join_nodes(members).problems
    return [row for problem in problems for row in paragraph(problem, width, 2, "warn")] + [BLANK]
