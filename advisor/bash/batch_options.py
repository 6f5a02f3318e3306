"""Reads what a script asks of Slurm in its #SBATCH lines, a task of SkyPilot or Kubernetes, and the memory limit
under which a script starts a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from msgspec import Struct

from advisor.regex import regex

_COUNT = regex(r"(?:gpu:)?(?:([A-Za-z][\w.-]*):)?(\d{1,4})(?:\([^)]*\))?")
"""4, gpu:4, gpu:a100:4 and a100:4 (sbatch(1), --gres and --gpus-per-node)."""
_SHORT = {"-a": "--array", "-N": "--nodes", "-c": "--cpus-per-task", "-n": "--ntasks", "-G": "--gpus"}
_VARIABLES = {
    "--nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SKYPILOT_NUM_NODES"),
    "--ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "--cpus-per-task": ("SLURM_CPUS_PER_TASK",),
    "--gpus-per-node": ("SLURM_GPUS_PER_NODE",),
    "--gpus": ("SLURM_GPUS",),
    "--array": ("SLURM_ARRAY_TASK_ID",),
}
"""Options and the variables that hold what they were given (sbatch(1), output environment variables; SkyPilot's docs,
environment variables)."""
_TASK = regex(r"#?[\s-]*(accelerators|num_nodes|nvidia\.com/gpu):[ {\"]*([\w.-]+(?:: ?\d+)?)")


def batch_options(script: str) -> Iterator[tuple[str, str, int]]:
    """(name, value, line) in the lines before the first command: Slurm reads no others. Those of a task anywhere."""
    for number, line in enumerate(script.splitlines(), 1):
        if (task := _TASK.match(line)) is not None:
            yield "--nodes" if task[1] == "num_nodes" else "--gpus-per-node", task[2].replace(" ", ""), number
    for number, line in enumerate(script.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            return
        if not re.match(r"#SBATCH\s", line):
            continue
        try:
            words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
        except ValueError:
            continue
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word.startswith("--"):
                name, is_joined, value = word.partition("=")
                yield name, value if is_joined else following, number
            elif word[:2] in _SHORT:
                yield _SHORT[word[:2]], word[2:] or following, number


def batch_variables(script: str) -> dict[bytes, bytes]:
    """Variables whose numbers the script's own lines decide."""
    asked = {name: value for name, value, _ in batch_options(script)}
    told = {name: asked[option] for option, names in _VARIABLES.items() if option in asked for name in names}
    if gpus := gpus_of_node(asked):
        told |= dict.fromkeys(("SLURM_GPUS_ON_NODE", "SKYPILOT_NUM_GPUS_PER_NODE"), str(gpus))
    return {name.encode(): value.encode() for name, value in told.items() if value.isdecimal()}


def gpus_of_node(asked: dict[str, str]) -> int | None:
    """GPUs of a node."""
    return counted(_asked_gpus(asked))


def cards_of_node(script: str) -> str:
    """The GPUs of a node as a description gives them: "8xa100", "8" where no kind is named, "" where none are asked."""
    found = _COUNT.fullmatch(_asked_gpus({name: value for name, value, _ in batch_options(script)}) or "")
    return "" if found is None else f"{found[2]}x{found[1]}" if found[1] and found[1] != "gpu" else found[2]


def _asked_gpus(asked: dict[str, str]) -> str | None:
    of_one_node = asked.get("--gpus") if asked.get("--nodes", "1") == "1" else None
    return asked.get("--gpus-per-node") or asked.get("--gres") or of_one_node


def counted(told: str | None) -> int | None:
    """The number of "4", "gpu:4" and "gpu:a100:4"."""
    found = _COUNT.fullmatch(told) if told else None
    return int(found[2]) if found else None


_STARTS: tuple[tuple[str, re.Pattern[bytes], re.Pattern[bytes], str], ...] = (
    (
        "docker run",
        re.compile(rb"\b(?:docker|podman|nerdctl|nvidia-docker)\s+(?:container\s+)?run(?!.*\s(?:-d|--detach)\s)\s"),
        re.compile(rb"\s(?P<option>--memory|-m)[= ]\s*(?P<size>\d{1,12}[bkmgt]?)(?=\s)", re.IGNORECASE),
        "B",
    ),
    (
        "systemd-run",
        re.compile(rb"\bsystemd-run\s"),
        re.compile(rb"\b(?P<option>MemoryMax)=(?P<size>\d{1,12}[KMGT]?)(?=[\s'\"])"),
        "B",
    ),
    ("srun", re.compile(rb"\bsrun\s"), re.compile(rb"\s(?P<option>--mem)[= ](?P<size>\d{1,9}[KMGT]?)(?=\s)"), "M"),
)  # fmt: skip
"""Commands that start another one under a limit: name, pattern, its option, and the unit where none is written (docker
run, systemd.resource-control and srun manuals). A container that is detached serves something else."""
_TIED = regex(rb"\s--memory-swap[= ]\s*\d")
"""Docker starts nothing whose memory and swap together are less than its memory (docker run manual)."""


class StartedUnder(Struct, frozen=True):
    """A limit as a command states it."""

    by: str
    """ "docker run", "srun"."""
    option: str
    text: str
    """Its value: "64g"."""
    unit: str
    """That of a bare number: "B", "M"."""
    start: int
    """Where the value begins, in bytes of the script."""
    command: int
    """Where the first line of the command begins."""
    is_alone: bool
    """Whether the command starts with another value there too, all else as it is."""


def started_under(script: bytes) -> StartedUnder | None:
    """The limit of the one command of the script that starts the run under one; None where several do, or none."""
    joined = re.sub(rb"\\\r?\n", lambda cut: b" " * len(cut[0]), script)  # every byte stays at its place
    found = []
    for line in re.finditer(rb"(?m)^(?!\s*#).*$", joined):
        for name, starts, limit, unit in _STARTS:
            asked = limit.search(line[0] + b" ") if starts.search(line[0]) else None
            if asked is not None:
                option, text, begins = asked["option"].decode(), asked["size"].decode(), line.start()
                is_alone = _TIED.search(line[0]) is None
                found.append(StartedUnder(name, option, text, unit, begins + asked.start("size"), begins, is_alone))
    return found[0] if len(found) == 1 else None
