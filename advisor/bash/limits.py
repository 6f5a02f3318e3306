"""Finds the memory limit under which a command of a script starts another one, and the bytes that say it."""

from __future__ import annotations

import re

from msgspec import Struct

from advisor.regex import regex

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
