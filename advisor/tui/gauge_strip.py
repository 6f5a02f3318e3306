"""Draws one line of live gauges, and the bar of both gauge views. Scales run from 0 to all of it, always."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from advisor.language import say, say_count
from advisor.machine.inventory import Gpu, Host
from advisor.tui.ui_text import Tone, TonedLine, crop, line, span, width_of
from advisor.units import GIB

if TYPE_CHECKING:
    from advisor.machine.live import GaugeSnapshot, GpuGauge

NEARLY_FULL, FULL = 0.75, 0.92
NO_MARKS: Mapping[str, float | None] = {}
EIGHTHS = " ▏▎▍▌▋▊▉█"


def fullness(share: float | None) -> Tone:
    """The colour of how full something is."""
    return "plain" if share is None else "bad" if share >= FULL else "warn" if share >= NEARLY_FULL else "good"


def filled(
    share: float | None,
    width: int,
    plain_ascii: bool = False,
    peak: float | None = None,
    marks: Mapping[str, float | None] = NO_MARKS,
) -> str:
    """A bar of `width` columns between its two bounds, `share` (0…1) of it full; `peak` is marked by "|".

    `marks`: letters that stand at other shares, also where the bar is full.

    An unknown share is a row of "?"; it is never drawn as empty.
    """
    bounds = ("[", "]") if plain_ascii else ("▕", "▏")
    if share is None:
        return bounds[0] + "?" * width + bounds[1]
    share = min(max(share, 0.0), 1.0)
    eighths = round(share * width * 8)
    whole, rest = divmod(eighths, 8)
    tail = ("-" if rest >= 4 else "") if plain_ascii else EIGHTHS[rest].strip()
    drawn = (("#" if plain_ascii else "█") * whole + tail).ljust(width)
    if peak is not None and peak > share:
        at = min(width - 1, int(min(peak, 1.0) * width))
        drawn = drawn[:at] + "|" + drawn[at + 1 :] if at >= whole else drawn
    for letter, place in marks.items():
        if place is not None:
            at = min(width - 1, int(min(max(place, 0.0), 1.0) * width))
            drawn = drawn[:at] + letter + drawn[at + 1 :]
    return bounds[0] + drawn + bounds[1]


def ratio(used: int | None, total: int | None) -> float | None:
    """A share of the whole; None where either is unknown."""
    return used / total if used is not None and total else None


def percent(share: float | None) -> str:
    """Like "12 %", "?" for None."""
    return "?" if share is None else f"{share:.0%}".replace("%", " %")


def gib(count: int | None) -> str:
    """Like "18.9" in GiB, whole numbers from 100 on; "?" for None."""
    if count is None:
        return "?"
    return f"{count / GIB:.0f}" if count >= 100 * GIB else f"{count / GIB:.1f}"


def host_use(host: Host) -> tuple[int | None, int | None]:
    """(used, ceiling) of host memory: of the limit that binds, else of all RAM."""
    limited = host.limit_bytes is not None and host.limit_used_bytes is not None
    return (host.limit_used_bytes, host.limit_bytes) if limited else (host.used_bytes, host.total_bytes)


def strip(snapshot: GaugeSnapshot | None, why_none: str, width: int, plain_ascii: bool = False) -> TonedLine:
    """GPU 0's memory, load, heat and power, the host's RAM, and how many more GPUs there are."""
    if snapshot is None:
        return crop(line(span(why_none or say("gauges: reading …"), "dim")), width)
    parts: list[str] = []
    if snapshot.gpus:
        parts.append(_gpu(snapshot.gpus[0], 6 if width < 78 else min(40, 16 + (width - 78) // 2), plain_ascii))
    else:
        parts.append(say("no GPU readable" if snapshot.problem else "no GPU here"))
    parts.append(_ram(snapshot.host, 4 if width < 98 else 12, plain_ascii))
    more = len(snapshot.gpus) - 1
    if more > 0:
        parts.append(say_count("+{number} GPU: g", "+{number} GPUs: g", more))
    while len(parts) > 1 and width_of(line("  ".join(parts))) > width:
        parts.pop()
    return crop(line("  ".join(parts)), width)


def _gpu(gauge: GpuGauge, bar: int, plain_ascii: bool) -> str:
    gpu = gauge.gpu
    if gauge.stale:
        return say("GPU {index} does not answer", index=gpu.index)
    drawn = filled(ratio(gpu.used_bytes, gpu.total_bytes), bar, plain_ascii)
    memory = f"{gib(gpu.used_bytes)}/{gib(gpu.total_bytes)}G"
    return " ".join([f"{gpu.index} {drawn} {memory}", *live_numbers(gpu)])


def live_numbers(gpu: Gpu) -> list[str]:
    """Load, heat and power, where the driver says them."""
    out = []
    if gpu.utilisation is not None:
        out.append(f"{gpu.utilisation:>2}%")
    if gpu.temperature is not None:
        out.append(f"{gpu.temperature}°")
    if gpu.power_watts is not None:
        out.append(f"{gpu.power_watts:.0f}W")
    return out


def _ram(host: Host, bar: int, plain_ascii: bool) -> str:
    share = ratio(*host_use(host))
    return f"{say('RAM')} {filled(share, bar, plain_ascii)} {percent(share)}"
