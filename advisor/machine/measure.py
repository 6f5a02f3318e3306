"""Measures this box: its GPUs, host memory and the libraries of the environment that trains."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.machine.cards import AllCards
from advisor.machine.host import read_host
from advisor.machine.inventory import Gpu, Machine, known_fields
from advisor.machine.libraries import read_libraries, training_environment
from advisor.machine.nvml import NvmlReader, Refused, Trouble
from advisor.machine.processes import SILENT_ABOUT, leftovers, unseen, with_details
from advisor.machine.tool import call_with_timeout
from advisor.units import in_ranges

PATIENCE = 30.0
"""Seconds for the driver to list the cards: it may wake eight of them first; one that hangs never answers."""
_WSL = mark(
    "This is WSL: the RAM is what Windows gives to it (`memory=` in .wslconfig raises that), and the driver does not "
    "show who holds the GPU's memory."
)
_HELD = mark("Processes hold GPU memory now (pid {pids}); if no run should be going, they were left behind.")


def measure(
    interpreter: str | None = None,
    nvml: Any = None,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
    *,
    patience: float = PATIENCE,
    whose: str = "",
) -> Machine:
    """This machine, measured. Whatever cannot be read is left unknown and named in `problems`; nothing is raised.

    `interpreter`: the Python (or program, such as torchrun) that the launch script names. `nvml`: stands in for pynvml.
    `patience`: seconds for the driver. `whose`: who names the interpreter, where that is not the script.
    """
    environ = os.environ if environ is None else environ
    timed_out: tuple[tuple[Gpu, ...], str, str] = ((), "", Refused(Trouble.TIMEOUT, "nvmlInit").says)
    cards = AllCards(NvmlReader(nvml, patience / 3), environ=environ, root=root)
    gpus, driver, trouble = call_with_timeout(patience, partial(_read_gpus, cards)) or timed_out
    hangs = trouble == timed_out[2] or cards.nvml.refused in (Trouble.VERSION_MISMATCH, Trouble.UNKNOWN)
    problems = [trouble] if trouble else []
    environment, sites = training_environment(
        interpreter, environ, lambda name: shutil.which(name, path=environ.get("PATH")), whose
    )
    if not environment:
        problems.append(say("No Python was found on PATH, so no library versions are known; give them with --lib."))
    machine = Machine(
        nodes=1,
        gpus=gpus,
        host=read_host(root),
        libraries=read_libraries(sites),
        environment=environment,
        driver=driver,
        mute=hangs and not gpus,
        name=clean_line(socket.gethostname(), 80),
    )
    problems += _gpu_problems(machine)
    with suppress(OSError):
        if "microsoft" in (root / "proc/sys/kernel/osrelease").read_text("ascii", "replace").lower():
            problems.append(say(_WSL))
    return replace(machine, sources=dict.fromkeys(known_fields(machine), "measured"), problems=tuple(problems))


def _read_gpus(cards: AllCards) -> tuple[tuple[Gpu, ...], str, str]:
    """The cards, the driver's version, and why there are none, or none of one vendor."""
    trouble = cards.open()
    if trouble is not None:
        return (), "", trouble
    gpus, driver, trouble = with_details(cards.snapshot()), cards.driver, " ".join(cards.troubles)
    cards.close()
    return gpus, driver, trouble


def _gpu_problems(machine: Machine) -> list[str]:
    """What is wrong with the cards, each thing once, with the numbers of all cards it is wrong with."""
    wrong: dict[str, list[int]] = {}
    for gpu in machine.gpus:
        if gpu.problem:
            wrong.setdefault(gpu.problem, []).append(gpu.index)
    said = [f"GPU {in_ranges(indices)}: {problem}" for problem, indices in wrong.items()]
    silent = [gpu.index for gpu in machine.gpus if gpu.processes is None and gpu.total_bytes is not None]
    said += [say(SILENT_ABOUT, gpus=in_ranges(silent))] if silent else []
    said += filter(None, (unseen(machine.gpus),))
    held = dict.fromkeys(left.process.pid for left in leftovers(machine.gpus, time.time()))
    if held:
        said.append(say(_HELD, pids=", ".join(map(str, list(held)[:6]))))
    return said
