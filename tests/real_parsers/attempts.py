"""Makes every script that the program would write for an upstream script: its recommended plan, and each step alone."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor import session
from advisor.plan.patch import WRITABLE, make_patch
from advisor.plan.plan import Change, Plan

GPUS, HOST_RAM = "8xA100-80GB", "1000GB"
CRASHES = (
    *(("gpu", phase) for phase in ("actor_update", "log_prob", "rollout_init", "weight_sync")),
    *(("host", phase) for phase in ("actor_update", "weight_sync")),
)
"""Which memory ran out, and in which phase: what the user answers."""
LOGS = {
    "gpu": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB. GPU 0 has a total capacity of 79.14 "
        "GiB of which 3.1 GiB is free. Process 12345 has 76.04 GiB memory in use. Of the allocated memory 74.23 GiB is "
        "allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated.\n"
    ),
    "host": (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.0.0.1, ID: aa) where the task (actor ID: bb, name=WorkerDict.__init__, pid=99, "
        "memory used=210.00GB) was running was 953.31GB / 1000.00GB (0.953), which exceeds the memory usage threshold "
        "of 0.95.\n"
    ),
}
MODES = ("told", "checkout", "alone")
"""How the version is known: by --lib with the script alone; from the tree around it; not at all."""


class Attempt(Struct, frozen=True):
    """One script as the program writes it."""

    mode: str
    crash: str
    steps: tuple[str, ...]
    recommended: bool
    changes: tuple[Change, ...]
    environment: tuple[Change, ...]
    text: bytes


def attempts(script: Path, library: str, modes: tuple[str, ...] = MODES) -> Iterator[Attempt]:
    """Different scripts that would be written for `script`, each once a mode. `library`: "verl=0.6.1"."""
    with tempfile.TemporaryDirectory() as folder:
        lonely = Path(folder, script.name)
        shutil.copy(script, lonely)
        logs = {place: Path(folder, f"{place}.log") for place in LOGS}
        for place, file in logs.items():
            file.write_text(LOGS[place])
        for mode in modes:
            seen: set[tuple[bytes, bool]] = set()
            for place, phase in CRASHES:
                of_tree = mode == "checkout" or script.suffix != ".sh"  # its defaults lie beside it
                asked = session.SessionRequest(
                    script=script if of_tree else lonely,
                    logs=(logs[place],),
                    gpus=GPUS,
                    host_ram=HOST_RAM,
                    libraries=(library,) if mode == "told" else (),
                    answers={"phase": phase},
                )
                state = session.open_session(asked)
                for recommended, plan in _plans(state.plan):
                    patch = make_patch(plan, state.script, state.launch_index)
                    if patch.refused or not patch.rewrites:
                        continue
                    new = patch.rewrites[0]
                    if new.document.path.name != script.name or (new.new, recommended) in seen:
                        continue
                    seen.add((new.new, recommended))
                    taken = [step for step in plan.selected() if step.kind in WRITABLE]
                    told = {c.key: c for step in taken for c in step.changes}
                    variables = {c.key for step in taken if step.kind == "environment" for c in step.changes}
                    yield Attempt(
                        mode,
                        f"{place} in {phase}",
                        tuple(step.id for step in taken),
                        recommended,
                        tuple(c for key, c in told.items() if key not in variables),
                        tuple(c for key, c in told.items() if key in variables),
                        new.new,
                    )


def _plans(plan: Plan) -> Iterator[tuple[bool, Plan]]:
    """The plan as it is recommended, then with each of its steps alone."""
    yield True, plan
    for one in plan.steps:
        if not one.no_place:
            steps = tuple(replace(step, selected=step.id == one.id) for step in plan.steps)
            yield False, replace(plan, steps=steps)
