"""Reads Ascend NPUs from the table that `npu-smi info` prints, of drivers 23 to 26, one chip a card."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from advisor.hostile import clean_line
from advisor.language import Sayings, mark, say
from advisor.machine.inventory import Gpu, GpuProcess
from advisor.machine.tool import RunTool, ToolReader, run_tool
from advisor.regex import regex
from advisor.units import GIB

MIB = 1 << 20
TORCH_SEES = {65536 * MIB: int(60.96 * GIB), 32768 * MIB: int(29.49 * GIB)}
"""Memory of a chip → what torch prints as "total capacity": the driver keeps the rest (vllm-project/vllm-ascend issue
1670, a 910B; 29.49 of a 910B4 in logs of vllm-ascend). Of other sizes it is not known."""
TROUBLES: Sayings[str] = Sayings(
    {
        "missing": (
            "NPUs are here (/dev/davinci*), but npu-smi is not found: pass the driver into the container "
            "(/usr/local/Ascend/driver, /usr/local/bin/npu-smi)."
        ),
        "hangs": "npu-smi did not answer in time; the driver may hang, look for errors in `dmesg` and the plog.",
        "-8005": (
            "npu-smi: the driver is not loaded, or this container cannot reach it (dcmi -8005): check /dev/davinci* "
            "and /dev/davinci_manager in the container, after a driver update reboot the node."
        ),
        "-8020": (
            "npu-smi: another container has the same NPUs (dcmi -8020); stop it, or mount other cards into this one."
        ),
        "unread": "npu-smi answered nothing that lists a card; `npu-smi info` may say more.",
    }
)
"""Return codes as npu-smi prints them (dcmi module initialize failed. ret is …)."""
_HEALTH = mark("npu-smi tells its health as {health}; `npu-smi info -t health -i {npu}` says more.")
_PAIR = regex(r"(\d+)\s*/\s*(\d+)")
_VERSION = regex(r"\bnpu-smi\s+(\S+)\s+Version: (\S+)")


class _Listing(NamedTuple):
    """One answer of npu-smi. Cards are in the order of their lines, which is that of torch's devices."""

    gpus: tuple[Gpu, ...]
    version: str


def npu_reader(run: RunTool = run_tool, clock: Callable[[], float] = time.monotonic) -> ToolReader:
    """Reads the NPUs."""
    return ToolReader(("npu-smi", "info"), read_table, TROUBLES, run, clock)


def read_table(text: str) -> _Listing:
    """The cards of `npu-smi info`: a line for the NPU, one for its chip below, then the processes by NPU and chip."""
    gpus: dict[tuple[int, int], Gpu] = {}
    held: dict[tuple[int, int], list[GpuProcess]] = {}
    above: tuple[int, Gpu] | None = None
    for line in text.splitlines():
        cells = [cell.split() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
        if len(cells) == 3 and len(cells[0]) >= 2 and cells[0][0].isdecimal() and not cells[0][1].isdecimal():
            above = int(cells[0][0]), _named(cells, len(gpus))
        elif len(cells) == 3 and above is not None and cells[0] and all(word.isdecimal() for word in cells[0]):
            key = above[0], int(cells[0][0])
            gpus[key], above = _with_chip(above[1], line.split("|")[3]), None
        elif len(cells) >= 4 and len(cells[0]) == 2 and all(word.isdecimal() for word in cells[0]):
            process = _process(cells)
            if process is not None:
                held.setdefault((int(cells[0][0]), int(cells[0][1])), []).append(process)
    version = _VERSION.search(text)
    listed = tuple(replace(gpu, processes=tuple(held.get(key, ()))) for key, gpu in gpus.items())
    return _Listing(listed, clean_line(version[2], 40) if version is not None else "")


def _named(cells: list[list[str]], index: int) -> Gpu:
    """The card of an NPU's line: "0 910B3 | OK | 93.2 37 0 / 0"."""
    name = clean_line(" ".join(cells[0][1:]), 60)
    health, readings = " ".join(cells[1]), cells[2]
    told = "" if health in ("OK", "") else say(_HEALTH, health=clean_line(health, 40), npu=cells[0][0])
    return Gpu(
        index,
        name if name.lower().startswith("ascend") else f"Ascend {name}",
        None,
        power_watts=_number(readings[0]) if readings else None,
        temperature=int(heat) if len(readings) > 1 and (heat := _number(readings[1])) is not None else None,
        problem=told,
        vendor="ascend",
    )


def _with_chip(gpu: Gpu, cell: str) -> Gpu:
    """With load and memory of the chip's line: "0 0 / 0 3372 / 65536". Where there is HBM, it stands last."""
    pairs = [(int(used), int(total)) for used, total in _PAIR.findall(cell)]
    used, total = next((pair for pair in reversed(pairs) if pair[1]), (None, None))
    load = _number(cell.split()[0]) if cell.split() else None
    size = None if total is None else total * MIB
    seen = TORCH_SEES.get(size or 0)
    return replace(
        gpu,
        total_bytes=size,
        used_bytes=None if used is None else used * MIB,
        reserved_bytes=None if seen is None or size is None else size - seen,
        utilisation=None if load is None else int(load),
    )


def _process(cells: list[list[str]]) -> GpuProcess | None:
    """A line of the lower table: NPU and chip, process id, name, memory and, from 26 on, the id in the container."""
    inside = cells[4][0] if len(cells) > 4 and cells[4] else ""
    pid = inside if inside.isdecimal() else cells[1][0] if cells[1] else ""
    size = cells[3][0] if cells[3] else ""
    return GpuProcess(int(pid), int(size) * MIB if size.isdecimal() else None) if pid.isdecimal() else None


def _number(word: str) -> float | None:
    return float(word) if word.replace(".", "", 1).isdecimal() else None
