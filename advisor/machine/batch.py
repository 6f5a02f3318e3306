"""Reads what a script asks of Slurm, Docker or systemd: the RAM of a node beyond which its job is killed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

from advisor.bash.limits import started_under
from advisor.hostile import clean_line
from advisor.machine.inventory import BatchMemory, Machine
from advisor.regex import regex

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = regex(r"(\d{1,9})([KMGT]?)B?", re.IGNORECASE)
"""Megabytes where nothing else is said (sbatch(1), --mem)."""
_COUNT = regex(r"(?:gpu:)?(?:[\w.-]+:)?(\d{1,4})(?:\([^)]*\))?")
"""4, gpu:4, gpu:a100:4 and a100:4 (sbatch(1), --gres and --gpus-per-node)."""
_SHORT = {"-N": "--nodes", "-c": "--cpus-per-task", "-n": "--ntasks", "-G": "--gpus"}


def batch_memory(script: str, file: str = "") -> BatchMemory | None:
    """The limit that the script's own #SBATCH lines set; None where they set none, or all of a node (`--mem=0`)."""
    found_at = {name: (value, line) for name, value, line in _options(script)}
    asked = {name: value for name, (value, _) in found_at.items()}
    for name, each_of in (("--mem", None), ("--mem-per-gpu", _gpus), ("--mem-per-cpu", _cpus)):
        found = _SIZE.fullmatch(asked.get(name, ""))
        if found is None:
            continue
        count = 1 if each_of is None else each_of(asked)
        size = int(found[1]) * _UNITS[found[2].upper() or "M"] * (count or 0)
        if size:
            times = f" × {count}" if each_of is not None else ""
            place = f" ({clean_line(file, 60)}:{found_at[name][1]})" if file else ""
            source = clean_line(f"#SBATCH {name}={asked[name]}{times}", 60) + place
            return BatchMemory(size, source, name, asked[name], count or 1, file, found_at[name][1])
    return _started_under(script, file)


def _started_under(script: str, file: str) -> BatchMemory | None:
    """The limit of the one command of the script that starts the run under one; None where several do, or none."""
    data = script.encode()
    found = started_under(data)
    if found is None:
        return None
    written = found.text[-1].upper() if found.text[-1].isalpha() else found.unit
    size = int(found.text.rstrip("bkmgtBKMGT")) * _UNITS.get(written, 1)
    at = data.count(b"\n", 0, found.start) + 1
    place = f" ({clean_line(file, 60)}:{at})" if file else ""
    source = clean_line(f"{found.by} {found.option}={found.text}", 60) + place
    return BatchMemory(size, source, found.option, found.text, 1, file, at, found.by, found.is_alone) if size else None


def within(machine: Machine, asked: BatchMemory) -> Machine:
    """The machine with that limit, where it is less than is known of a node.

    A log that prints the limit for all the RAM there is (Ray does, in a container) knows the container, not the node.
    """
    host = machine.host
    if machine.sources.get("host.total") == "log" and host.total_bytes == asked.limit_bytes:
        host = replace(host, total_bytes=None)
    then = machine.sources.get("host.limit") == "log"  # the job that died may have asked for another
    known = host.total_bytes if then else host.ceiling_bytes
    if known is not None and known <= asked.limit_bytes:
        return machine
    host = replace(host, limit_bytes=asked.limit_bytes, limit_used_bytes=None, limit_source=asked.source)
    sources = {**machine.sources, "host.limit": "script"}
    return replace(machine, host=host, sources=sources, asked_memory=asked)


def _options(script: str) -> Iterator[tuple[str, str, int]]:
    """(name, value, line) in the lines before the first command: Slurm reads no others."""
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


def _gpus(asked: dict[str, str]) -> int | None:
    """GPUs of a node."""
    told = asked.get("--gpus-per-node") or asked.get("--gres")
    if told is None and asked.get("--nodes", "1") == "1":
        told = asked.get("--gpus")
    return _counted(told)


def _cpus(asked: dict[str, str]) -> int | None:
    """Processors of a node; of one task a node where nothing else is said."""
    tasks = asked.get("--ntasks-per-node") or (asked.get("--ntasks") if asked.get("--nodes", "1") == "1" else None)
    each, count = _counted(asked.get("--cpus-per-task")), _counted(tasks or "1")
    return each * count if each and count else None


def _counted(told: str | None) -> int | None:
    found = _COUNT.fullmatch(told) if told else None
    return int(found[1]) if found else None
