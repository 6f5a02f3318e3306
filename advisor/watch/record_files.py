"""Names a record's folder and files, and makes what is made at once. `record` says what is in each."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

SAMPLES = "samples.jsonl"
OUTPUT = "output.log"
ERRORS = "errors.log"
RING = "ring.bin"
KERNEL = "kernel.log"
WORDS = "watch.log"
COMMAND = "command.sh"
RAY_LOGS = "ray-logs"
ATTEMPT = "attempt.json"
CASE = "case.yaml"
APPEND = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
"""How a file of a record is opened that grows."""
_RANKS = ("SLURM_PROCID", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Variables in which launchers tell a process which of many it is."""
STEP_COUNTERS = ("step", "done", "iteration")
LONGEST = "longest"
"""The counter of tokens in the longest answer of a step."""
"""Counters of the output that count steps, the most trusted first."""


def write_private(path: Path, data: bytes) -> None:
    """Write a file of a record, for its owner only, whoever may look into the folder. Raises OSError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)


def default_name() -> str:
    """The name of a record where none is given: the job's step under Slurm, else the time; and the rank of many."""
    job, step = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_STEP_ID", "")
    run = f"job{job}.{step}" if job else time.strftime("%Y%m%d-%H%M%S")
    return "-".join(["watch", run.rstrip("."), *rank()])


def rank() -> list[str]:
    """Which of many processes this one is, as a part of a name; [] where no launcher says so."""
    return [f"rank{value}" for name in _RANKS if (value := os.environ.get(name, "")).isdecimal()][:1]


def claim(folder: Path | None) -> tuple[Path, int]:
    """Make the record's folder, for its owner only, and open its samples: nobody else gets the same.

    `folder` None: a name of its own, here or in the temporary folder. A name that is taken gets a number.
    Raises OSError where none can be written.
    """
    import tempfile

    wanted = [folder] if folder is not None else [Path.cwd() / default_name()]
    with suppress(FileNotFoundError):  # not even there can anything be written
        wanted += [] if folder is not None else [Path(tempfile.gettempdir()) / default_name()]
    *others, last = wanted
    for each in others:
        with suppress(OSError):
            return _claimed(each)
    return _claimed(last)


def _claimed(folder: Path) -> tuple[Path, int]:
    ranked = "-".join([folder.name, *(each for each in rank() if not folder.name.endswith(each))])
    for name in chain(dict.fromkeys((folder.name, ranked)), (f"{ranked}-{number}" for number in count(2))):
        free = folder.with_name(name)
        with suppress(FileExistsError):
            free.mkdir(mode=0o700, parents=True, exist_ok=True)
            return free, os.open(free / SAMPLES, APPEND, 0o600)
    raise AssertionError  # the numbers do not end
