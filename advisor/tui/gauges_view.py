"""All gauges: one text line a GPU, the host, and who sits on the cards."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from advisor.machine.inventory import GpuProcess, Host, Machine
from advisor.tui.facts import gpu_words, host_words
from advisor.tui.frame import BACK, Reading
from advisor.tui.gauge_strip import filled, gib, host_use, live_numbers, percent, ratio
from advisor.tui.ui_text import BLANK, Row, Tone, cut, flow, heading, line, pad, pad_left, paragraph, span
from advisor.units import show_bytes

if TYPE_CHECKING:
    from advisor.machine.live import GaugeSnapshot, GpuGauge

SHM = "/dev/shm"  # noqa: S108 (a name to show, not a path to write)
_TOLD = {"described": "described by you", "log": "read in the log"}
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


def gpu_row(gauge: GpuGauge, width: int, plain_ascii: bool = False) -> Row:
    """`0 ▕█████▍    ▏ 18.9/40.0G  47 %  98%  61°  301W  ▁▁▃▆▆`; "|" in the bar is the most ever seen."""
    gpu = gauge.gpu
    peak = ratio(gauge.peak_bytes, gpu.total_bytes)
    bar_width = bar_columns(width)
    bar = filled(ratio(gpu.used_bytes, gpu.total_bytes), bar_width, plain_ascii, peak)
    memory = pad_left(f"{gib(gpu.used_bytes)}/{gib(gpu.total_bytes)}G", 12)
    share = pad_left(percent(ratio(gpu.used_bytes, gpu.total_bytes)), 5)
    numbers = " ".join(pad_left(number, 4) for number in live_numbers(gpu))
    left = f"{gpu.index:>2} {bar} {memory} {share}  {numbers}"
    room = width - len(left) - 3
    tail = gpu.problem or (history(gauge.history, gpu.total_bytes, min(room, 60), plain_ascii) if room > 4 else "")
    tone: Tone = "dim" if gauge.stale else "plain"
    return Row(line(span(left, tone), "  ", span(tail, "warn" if gpu.problem else tone)))


def host_rows(host: Host, peak: int | None, width: int, plain_ascii: bool = False) -> list[Row]:
    """RAM (or the limit that binds), swap and /dev/shm."""
    used, ceiling = host_use(host)
    limited = host.limit_bytes is not None and ceiling == host.limit_bytes
    note = f"limit: {host.limit_source}" if limited else (f"most seen {show_bytes(peak)}" if peak is not None else "")
    out = [_host_row("RAM", used, ceiling, note, width, plain_ascii)]
    if host.swap_total_bytes:
        out.append(_host_row("swap", host.swap_used_bytes, host.swap_total_bytes, "", width, plain_ascii))
    if host.shm_bytes is not None:
        out.append(_host_row("shm", host.shm_used_bytes, host.shm_bytes, SHM, width, plain_ascii))
    if host.oom_kills:
        out.append(Row(line(span(f"   the kernel has killed {host.oom_kills} times in this container", "warn"))))
    return out


def _host_row(label: str, used: int | None, total: int | None, note: str, width: int, plain_ascii: bool) -> Row:
    bar = filled(ratio(used, total), bar_columns(width), plain_ascii)
    numbers = f"{gib(used)}/{gib(total)}G"
    text = f"{pad(label, 5)} {bar} {pad_left(numbers, 12)} {pad_left(percent(ratio(used, total)), 5)}"
    return Row(line(text, "  ", span(cut(note, width - len(text) - 4), "dim")))


def process_rows(snapshot: GaugeSnapshot, now: float, width: int) -> list[Row]:
    """Who holds GPU memory: leftovers of a dead run are the quietest cause of the next one."""
    if not snapshot.gpus:
        return []
    columns = f"{pad('GPU', 4)}{pad('pid', 9)}{pad('user', 11)}{pad_left('GPU mem', 11)}{pad_left('host', 11)}"
    out = [heading(f"{columns}{pad_left('age', 7)}  command")]
    silent = [gauge.gpu.index for gauge in snapshot.gpus if gauge.gpu.processes is None]
    for gauge in snapshot.gpus:
        out += [_process_row(gauge.gpu.index, process, now, width) for process in gauge.gpu.processes or ()]
    if silent:
        which = ", ".join(map(str, silent))
        out += paragraph(
            f"GPU {which}: the driver does not say which processes (not permitted, or not supported).", width, 0, "dim"
        )
    elif len(out) == 1:
        out += paragraph("no process on the GPUs", width, 0, "dim")
    return out


def _process_row(index: int, process: GpuProcess, now: float, width: int) -> Row:
    age = _age(now - process.started) if process.started is not None else "?"
    text = (
        f"{pad(str(index), 4)}{pad(str(process.pid), 9)}{pad(process.user or '?', 10)} "
        f"{pad_left(show_bytes(process.used_bytes), 11)}"
        f"{pad_left(show_bytes(process.host_rss_bytes), 11)}{pad_left(age, 7)}  "
    )
    return Row(line(text, cut(process.command, max(8, width - len(text)))))


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(0, seconds):.0f}s"


def gauge_rows(
    snapshot: GaugeSnapshot | None, why_none: str, now: float, width: int, plain_ascii: bool = False
) -> list[Row]:
    """The whole view. Three empty states are told apart: not read yet, no GPU, and cards that cannot be read."""
    if snapshot is None:
        return paragraph(why_none or "reading the gauges …", width)
    out: list[Row] = [heading("GPUs", "memory, load, heat, power; | is the most seen", width)]
    out += [gpu_row(gauge, width, plain_ascii) for gauge in snapshot.gpus]
    if snapshot.problem:
        out += paragraph(snapshot.problem, width, 2, "warn")
    elif not snapshot.gpus:
        out += paragraph(
            "The driver answers, and shows no GPU to this process (CUDA_VISIBLE_DEVICES, or a container without GPUs).",
            width,
            2,
        )
    out += [BLANK, heading("Host"), *host_rows(snapshot.host, snapshot.host_peak_bytes, width, plain_ascii)]
    processes = process_rows(snapshot, now, width)
    return [*out, BLANK, *processes] if processes else out


def counted_rows(machine: Machine, width: int) -> list[Row]:
    """The machine that the diagnosis counts with, where it is not the one these gauges show."""
    told = [_TOLD[source] for name in ("gpus", "host.total") if (source := machine.sources.get(name)) in _TOLD]
    if not told:
        return []
    facts = [gpu_words(machine), host_words(machine)]
    out = [BLANK, heading("The machine the diagnosis counts with", ", ".join(dict.fromkeys(told)), width)]
    out += flow(facts, width, 2, gap=" · ")
    return [*out, *paragraph("The gauges show the box this program runs on.", width, 2, "dim")]


class GaugesView(Reading):
    """Gauges in full; they go on while it is open."""

    TITLE_WORDS = "All gauges"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "back", "back", show=False),
        Binding("g", "back", "back", show=False),
        BACK,
    ]

    def page_rows(self, width: int) -> list[Row]:
        """All gauges as last read."""
        sitting = self.sitting
        shown = gauge_rows(sitting.snapshot, sitting.no_gauges, time(), width, sitting.plain_ascii)
        return [*shown, *counted_rows(sitting.state.machine, width)] if sitting.state else shown

    def reload_strip(self) -> None:
        """Here the whole page is live."""
        self.reload()
