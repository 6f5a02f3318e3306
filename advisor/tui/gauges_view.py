"""Shows all gauges: one text line a GPU, the host, who uses the GPUs, and the nodes of a Ray cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from time import monotonic, time
from typing import TYPE_CHECKING

from msgspec import Struct
from textual.binding import Binding

from advisor.hostile import cells
from advisor.language import Sayings, clauses, listed, mark, say, say_count
from advisor.line_breaks import cut
from advisor.machine.inventory import Gpu, GpuProcess, Host, Machine
from advisor.tui import ui_text as words
from advisor.tui.cluster_rows import cluster_rows
from advisor.tui.facts import gpu_words, host_words
from advisor.tui.gauge_strip import NO_MARKS, filled, fullness, gib, host_use, percent, ratio
from advisor.tui.plot import AXIS, drawn, plot
from advisor.tui.screen import Overlay
from advisor.tui.ui_text import BLANK, Row, Tone, Toned, flow, heading, line, pad, pad_left, paragraph, span
from advisor.units import in_ranges, show_bytes

if TYPE_CHECKING:
    from advisor.machine.live import GaugeSnapshot, GpuGauge
    from advisor.machine.processes import HolderKind
    from advisor.state import State


_PEAK, _MARKS = mark("| most seen"), mark("| most seen, P predicted")
SHM = "/dev/shm"  # noqa: S108 (a name to show, not a path to write)
_TOLD: Sayings[str | None] = Sayings({"described": "as given", "log": "read in the log", "script": "by the script"})
_HOLDERS: Sayings[HolderKind] = Sayings(
    {"training": mark("training"), "engine": mark("engine"), "other": mark("other")}
)
_LEAST_HISTORY = 12
_LEAST_PLOT, _MOST_PLOT = 4, 12
"""Lines of a curve over time."""
FRAME = 4
"""Lines of the terminal around the page."""
_SAME = 0.1
"""Cards of one kind report sizes that differ by less."""


def bar_columns(width: int) -> int:
    """Columns of a bar: a third of what the numbers leave, the history gets the rest."""
    return max(10, min(48, (width - 42) // 3))


class Expected(Struct, frozen=True):
    """What the diagnosis expects of the run that these gauges may show. Bytes; None: nothing, or on other hardware."""

    gpu_peak: int | None = None
    gpu_capacity: int | None = None
    host_peak: int | None = None
    host_wall: int | None = None
    """Where Ray kills, if that is below the end of the RAM."""
    host_capacity: int | None = None


def expected_of(state: State) -> Expected:
    """The peaks after the chosen changes, and Ray's threshold."""
    ledger = state.plan.after or state.plan.before
    if ledger is None:
        return Expected()
    gpu, host = ledger.peak("gpu"), ledger.peak("host")
    room, others = state.machine.host.ceiling_bytes, state.machine.host.taken_bytes  # the bar shows what all hold
    wall = None if ledger.host_limit is None else ledger.host_limit + others
    return Expected(
        None if gpu is None else gpu.expected,
        ledger.gpu_capacity,
        None if host is None else host.expected + others,
        wall if wall is not None and room is not None and wall < room else None,
        room,
    )


def mark_at(size: int | None, of: int | None, here: int | None) -> float | None:
    """Where `size`, counted for a whole of `of`, stands in a bar of `here`; None where that is other hardware."""
    alike = of is not None and here is not None and abs(of - here) <= _SAME * of
    return ratio(size, here) if alike else None


def holder_words(gpu: Gpu) -> str:
    """Like "training 18.0 G  engine 12.1 G"; "" where the driver does not say."""
    from advisor.machine.processes import held_by

    return "  ".join(f"{_HOLDERS[kind]} {gib(size)} G" for kind, size in held_by(gpu).items())


def gpu_rows(
    gauge: GpuGauge,
    taken: float,
    width: int,
    plain_ascii: bool = False,
    expected: Expected | None = None,
    holders: int = 0,
) -> list[Row]:
    """`0 ▕█████▍    ▏ 18.9/40.0G  47 %  98%  61° 301/400W  ▁▁▃▆▆`, and a line below where something is unusual.

    "|" in the bar is the most ever seen, "P" what is predicted. `taken` is when the snapshot was, on its own clock.
    `holders`: columns for who holds the card, where there is room.
    """
    gpu = gauge.gpu
    peak = ratio(gauge.peak_bytes, gpu.total_bytes)
    run = expected or Expected()
    marks = {"P": mark_at(run.gpu_peak, run.gpu_capacity, gpu.total_bytes)}
    full = ratio(gpu.used_bytes, gpu.total_bytes)
    bar = filled(full, bar_columns(width), plain_ascii, peak, marks)
    memory = pad_left(f"{gib(gpu.used_bytes)}/{gib(gpu.total_bytes)}G", 12)
    share = pad_left(percent(ratio(gpu.used_bytes, gpu.total_bytes)), 5)
    numbers = f"{memory} {share} {load_words(gpu)}"
    room = width - cells(bar) - cells(numbers) - 7
    who = holder_words(gpu) if room > holders + _LEAST_HISTORY else ""
    name = f"{gpu.mig} " if gpu.mig and room > len(gpu.mig) + 4 else ""
    name += f"{pad(who, holders)}  " if holders and room > holders + _LEAST_HISTORY else ""
    seen = gauge.history[-max(1, room - cells(name)) :] if room > 4 and gpu.total_bytes else ()
    curve = drawn(seen, 1, gpu.total_bytes or 1, plain_ascii)[0].rjust(room - cells(name))
    tone: Tone = "dim" if gauge.stale else "plain"
    colour: Tone = "dim" if gauge.stale else fullness(full)
    first = Row(line(span(f"{gpu.index:>2} ", tone), Toned(bar, colour), span(f" {numbers}  {name}{curve}", tone)))
    return [first, *paragraph(" · ".join(unusual(gauge, taken)), width, 3, "warn")]


def column_heads(width: int) -> Row:
    """The titles of the columns of `gpu_rows`."""
    numbers = (
        (mark("memory"), 12), (mark("full"), 5), (mark("load"), 4), (mark("heat"), 4), (mark("power/cap"), 9)
    )  # fmt: skip
    told = " ".join(pad_left(say(word), size) for word, size in numbers)
    return Row(line(span(f"{'':{bar_columns(width) + 6}}{told}", "dim")))


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


def host_rows(
    host: Host, peak: int | None, width: int, plain_ascii: bool = False, expected: Expected | None = None
) -> list[Row]:
    """RAM (or the limit that binds), swap and /dev/shm."""
    used, ceiling = host_use(host)
    limited = host.limit_bytes is not None and ceiling == host.limit_bytes
    if limited:
        note = say("limit: {source}", source=host.limit_source)
    else:
        note = say("most seen {size}", size=show_bytes(peak)) if peak is not None else ""
    run = expected or Expected()
    marks = {
        "P": mark_at(run.host_peak, run.host_capacity, ceiling),
        "R": mark_at(run.host_wall, run.host_capacity, ceiling),
    }
    if marks["R"] is not None:
        note = clauses([note, say("R: Ray kills here")]) if note else say("R: Ray kills here")
    out = [_host_row(say("RAM"), used, ceiling, note, width, plain_ascii, marks)]
    if host.swap_total_bytes:
        out.append(_host_row(say("swap"), host.swap_used_bytes, host.swap_total_bytes, "", width, plain_ascii))
    if host.shm_bytes is not None:
        out.append(_host_row("shm", host.shm_used_bytes, host.shm_bytes, SHM, width, plain_ascii))
    if host.oom_kills:
        told = say("the kernel has killed {count} times in this container", count=host.oom_kills)
        out.append(Row(line(span(f"   {told}", "warn"))))
    return out


def _host_row(
    label: str,
    used: int | None,
    total: int | None,
    note: str,
    width: int,
    plain_ascii: bool,
    marks: Mapping[str, float | None] = NO_MARKS,
) -> Row:
    bar = filled(ratio(used, total), bar_columns(width), plain_ascii, marks=marks)
    text = f" {pad_left(f'{gib(used)}/{gib(total)}G', 12)} {pad_left(percent(ratio(used, total)), 5)}"
    room = width - cells(bar) - cells(text) - 10
    head = f"{pad(label, 5)} "
    return Row(line(head, Toned(bar, fullness(ratio(used, total))), text, "  ", span(cut(note, room), "dim")))


def left_behind(snapshot: GaugeSnapshot, now: float, ended: float | None) -> dict[int, str]:
    """pid → how much it holds, of training processes that began before the run of the log ended and are still there.

    `ended` (epoch seconds): when the log was last written; None: no run is known to have died here, and nothing is
    flagged. Of a process whose beginning the system does not tell, nobody knows that it was there.
    """
    from advisor.machine.processes import leftovers

    if ended is None:
        return {}
    cards = [gauge.gpu for gauge in snapshot.gpus]
    known = [left for left in leftovers(cards, now, ended) if left.age_seconds is not None]
    return {left.process.pid: show_bytes(left.process.used_bytes) for left in known}


def process_rows(snapshot: GaugeSnapshot, now: float, width: int, ended: float | None = None) -> list[Row]:
    """Who holds GPU memory; leftovers of a dead run, the quietest cause of the next one, are marked with "!"."""
    from advisor.machine.processes import SILENT_ABOUT, unseen

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
        out += paragraph(say(SILENT_ABOUT, gpus=in_ranges(silent)), width, 0, "dim")
    elif len(out) == before:
        out += paragraph(say("no process on the GPUs"), width, 0, "dim")
    not_seen = unseen([gauge.gpu for gauge in snapshot.gpus if not gauge.stale])
    return [*out, *(paragraph(not_seen, width, 0, "warn") if not_seen else [])]


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
    expected: Expected | None = None,
) -> list[Row]:
    """The whole view. Three empty states are told apart: not read yet, no GPU, and cards that cannot be read."""
    if snapshot is None:
        return paragraph(why_none or say("reading the gauges …"), width)
    predicted = expected is not None and expected.gpu_peak is not None
    out: list[Row] = [heading(cards_words(snapshot), say(_MARKS if predicted else _PEAK), width)]
    out += [column_heads(width)] if snapshot.gpus else []
    holders = max((cells(holder_words(gauge.gpu)) for gauge in snapshot.gpus), default=0)
    for gauge in snapshot.gpus:
        out += gpu_rows(gauge, snapshot.taken, width, plain_ascii, expected, holders)
    if snapshot.problem:
        out += paragraph(snapshot.problem, width, 2, "warn")
    elif not snapshot.gpus:
        out += paragraph(say(words.NO_GPU_SHOWN), width, 2)
    out += [
        BLANK,
        heading(say("Host")),
        *host_rows(snapshot.host, snapshot.host_peak_bytes, width, plain_ascii, expected),
    ]
    processes = process_rows(snapshot, now, width, ended)
    return [*out, BLANK, *processes] if processes else out


def cards_words(snapshot: GaugeSnapshot) -> str:
    """Like "GPUs: 8 × A100-SXM4-40GB"; each kind once."""
    known = (one.gpu for one in snapshot.gpus if one.gpu.name not in ("", f"GPU {one.gpu.index}"))
    names = Counter(gpu.name.removeprefix("NVIDIA ") for gpu in known)
    told = listed(f"{count} × {cut(name, 40)}" for name, count in names.items())
    return say("GPUs: {cards}", cards=told) if told else say("GPUs")


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


def timeline_rows(snapshot: GaugeSnapshot, width: int, height: int, plain_ascii: bool = False) -> list[Row]:
    """The fullest card, and where there is room the host and the other cards, over the readings so far, in at most
    `height` lines; [] where that is too little room, or where nothing was read twice."""
    read = [one for one in snapshot.gpus if one.gpu.total_bytes and one.peak_bytes]
    read.sort(key=lambda one: -(ratio(one.peak_bytes, one.gpu.total_bytes) or 0.0))
    curves: list[tuple[str, tuple[int | None, ...], int | None]] = []
    for at, one in enumerate(read):
        name = say("GPU {index}", index=one.gpu.index) if at else say("GPU {index}, the fullest", index=one.gpu.index)
        curves.append((name if len(read) > 1 else say("GPU"), one.history, one.gpu.total_bytes))
    used, ceiling = host_use(snapshot.host)
    curves.insert(1, (say("Host"), snapshot.host_history, ceiling if used is not None else None))
    known = [(name, values, total) for name, values, total in curves if total and len(values) > 1]
    known = known[: height // (_LEAST_PLOT + 1)]
    out: list[Row] = []
    for name, values, total in known:
        lines = min(_MOST_PLOT, height // len(known) - 1)
        shown = values[-(width - AXIS) :]
        most = show_bytes(max((value for value in shown if value is not None), default=None))
        told = say("{what}: the last {seconds} readings, GiB; most {most}", what=name, seconds=len(shown), most=most)
        now = next((value for value in reversed(shown) if value is not None), None)
        out += plot(told, shown, total, total or 1, (lines, width), plain_ascii, fullness(ratio(now, total)))
    return out


class GaugesView(Overlay):
    """Gauges in full; they go on while it is open."""

    OPENED_BY = Binding("g", "gauges", "gauges", tooltip="all GPUs, the host, and who sits on them")
    RANK = 30
    NEEDS_STATE = False
    TITLE_WORDS = mark("All gauges")
    ENTER_CLOSES = True

    def main_rows(self, width: int) -> list[Row]:
        ui = self.ui
        ended = ui.run_ended
        expected = expected_of(ui.state) if ui.state is not None else None
        shown = gauge_rows(ui.snapshot, ui.no_gauges, time(), width, ui.plain_ascii, ended, expected)
        if ui.cluster is not None:
            nodes = cluster_rows(ui.cluster.look(), monotonic(), width, ui.plain_ascii)
            shown = [*nodes, BLANK, heading(say("This box")), *shown]
        shown += counted_rows(ui.state.machine, width) if ui.state else []
        room = self.app.size.height - FRAME - len(shown) - 1
        timeline = timeline_rows(ui.snapshot, width, room, ui.plain_ascii) if ui.snapshot is not None else []
        return [*shown, BLANK, *timeline] if timeline else shown

    def reload_strip(self) -> None:
        self.reload()
