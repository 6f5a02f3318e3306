"""Finds the runs of a folder: scripts that launch training, the newest logs beside them, Ray's session."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

from msgspec import Struct

from advisor.regex import regex

SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch", ".py")
LIKE_A_LOG = re.compile(
    rb"^Traceback \(most recent|out of memory|OutOfMemory|[\d.?]+(?:s/it|it/s)[\],]|\bpid=\d+[,)]"
    rb"|^\W{0,3}(?:\d{4}-)?\d\d-\d\d[T ]\d\d:\d\d|^(?:INFO|WARNING|ERROR)\b",
    re.MULTILINE | re.IGNORECASE,
)
"""What a program prints and nobody types into a launch file."""
LOGS = ("*.log", "*.out", "*.err", "*.log.gz", "*.log.zst", "*.log.xz", "*log.txt", "log*.txt", "*.log.[0-9]*")
SKIPPED = {"node_modules", "site-packages", "__pycache__", "wandb", "checkpoints", "venv", "build", "dist"}
DEEPEST, MOST_ENTRIES, LOOKED_AT = 3, 4000, 1 << 16
MOST = 12
"""Runs, and logs, that are named."""
RAY = Path("/tmp/ray/session_latest/logs")  # noqa: S108 - where Ray keeps the logs of its newest session
_LAUNCH = regex(
    rb"(?:verl|main_ppo|openrlhf|train_ppo_ray|orz|swift\s+rlhf|megatron\s+rlhf|\btrl\b|GRPOTrainer|PPOTrainer|GRPOConfig"
    rb"|agilerl|slime|nemo_rl|areal|roll\.|deepspeed|torchrun|accelerate\s+launch|ray\s+job\s+submit|grpo|ppo|rloo"
    rb"|reinforce|llamafactory|axolotl|swift\s+\w+|\btune\s+run|\b(?:sft|dpo|kto|orpo)\b|\btrain\w*\.py|fine_?tun)",
    re.IGNORECASE,
)
STARTS = regex(
    rb"^[ \t]*(?:\w+=[\"'(]?|(?:\w+=\S+\s+)*(?:exec\s+|nohup\s+|(?:srun|mpirun)\s.*?)?)(?:[\w./$\{}]*/)?"
    rb"(?:python3?|torchrun|deepspeed|accelerate|ray\s+job|swift|trl|megatron|llamafactory-cli|axolotl|tune|uv\s+run|srun)\b"
    rb"|^[ \t]*\"?\$\{?\w+(?:\[@\])?\}?\"?\s+(?:-m\s+\"?[\w$]|\S+\.py\b)"
    rb"|class\s+\w+\([^)]{0,300}(?:Config|Exp)\w*\)|if __name__ ==",
    re.MULTILINE,
)


class FoundFile(Struct, frozen=True):
    """A file, or Ray's folder of logs. `changed` in epoch seconds, `size` in bytes (0 for a folder)."""

    path: Path
    changed: float
    size: int


class RecentRun(Struct, frozen=True):
    """A script and a log beside it; either may be missing."""

    script: FoundFile | None
    log: FoundFile | None

    @property
    def changed(self) -> float:
        """When its log was last written: a script is written anew between runs; its own time where there is no log."""
        return next(one.changed for one in (self.log, self.script) if one is not None)


class Recent(Struct, frozen=True):
    """What was found, newest first."""

    folder: Path
    runs: tuple[RecentRun, ...] = ()
    logs: tuple[FoundFile, ...] = ()
    """Logs beside which no script stands."""
    ray: FoundFile | None = None


def recent_in(folder: Path, ray: Path = RAY) -> Recent:
    """Look through `folder`, three levels deep and no further than some thousand entries. Raises nothing."""
    scripts: list[FoundFile] = []
    logs: list[FoundFile] = []
    texts: list[FoundFile] = []
    for found in _files(folder):
        name = found.path.name.lower()
        if found.path.suffix.lower() in SCRIPTS and ".fits." not in name:
            scripts.append(found)
        elif found.size and any(fnmatch(name, pattern) for pattern in LOGS):
            logs.append(found)
        elif found.size and name.endswith(".txt") and len(texts) < MOST:
            texts.append(found)
    named = {log.path.parent for log in logs}
    logs += [one for one in texts if one.path.parent not in named and LIKE_A_LOG.search(_beginning(one.path))]
    newest = [sorted(found, key=lambda one: -one.changed) for found in (scripts, logs)]
    launching = [one for one in newest[0][: 4 * MOST] if launches(one.path)]
    launching = _not_run_by_others(launching)[:MOST]
    runs = [RecentRun(one, _log_of(one, logs)) for one in launching]
    taken = {run.log.path for run in runs if run.log is not None}
    others = [RecentRun(_script_of(log, launching), log) for log in newest[1] if log.path not in taken]
    runs += [run for run in others if run.script is not None]
    alone = [run.log for run in others if run.script is None and run.log is not None]
    runs.sort(key=lambda run: -run.changed)
    return Recent(folder, tuple(runs[: 2 * MOST]), tuple(alone[:MOST]), _seen(ray))


def launches(path: Path) -> bool:
    """Whether a file reads like one that starts training."""
    text = _beginning(path)
    return _LAUNCH.search(text) is not None and STARTS.search(text) is not None


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LOOKED_AT)
    except OSError:
        return b""


def _not_run_by_others(scripts: list[FoundFile]) -> list[FoundFile]:
    """Without programs that a shell script beside or above them names: they are followed from there."""
    shells = {one.path: _beginning(one.path) for one in scripts if one.path.suffix.lower() != ".py"}

    def is_run(program: Path) -> bool:
        name = re.compile(rb"(?<![\w-])%s(?![\w-])" % re.escape(os.fsencode(program.name)))
        return any(shell.parent in program.parents and name.search(text) for shell, text in shells.items())

    return [one for one in scripts if one.path in shells or not is_run(one.path)]


def _log_of(script: FoundFile, logs: list[FoundFile]) -> FoundFile | None:
    """The newest log in the script's folder or below it; one that bears the script's name comes first."""
    folder = script.path.parent
    near = [log for log in logs if folder == log.path.parent or folder in log.path.parents]
    named = [log for log in near if script.path.stem.lower() in str(log.path.relative_to(folder)).lower()]
    return max(named or near, key=lambda log: log.changed, default=None)


def _script_of(log: FoundFile, scripts: list[FoundFile]) -> FoundFile | None:
    """The newest script in the log's folder or above it; one whose name the log bears comes first."""
    near = [script for script in scripts if script.path.parent in log.path.parents]
    named = [one for one in near if one.path.stem.lower() in str(log.path.relative_to(one.path.parent)).lower()]
    return max(named or near, key=lambda script: script.changed, default=None)


def _files(folder: Path) -> Iterator[FoundFile]:
    left = MOST_ENTRIES
    waiting = [(folder, 0)]
    while waiting and left > 0:
        here, depth = waiting.pop(0)
        entries: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(here) as opened:
            entries = sorted(opened, key=lambda entry: entry.name)[:MOST_ENTRIES]
        left -= len(entries)
        for entry in entries:
            is_skipped = entry.name.startswith(".") or entry.name in SKIPPED
            found = None if is_skipped else _seen(Path(entry.path))
            if found is not None and (found.size or not entry.is_dir(follow_symlinks=False)):
                yield found
            elif found is not None and depth + 1 < DEEPEST:
                waiting.append((Path(entry.path), depth + 1))


def _seen(path: Path) -> FoundFile | None:
    """What stands there; None for what has gone, and for what is neither a file nor a folder."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(found.st_mode):
        return FoundFile(path, found.st_mtime, found.st_size)
    return FoundFile(path, found.st_mtime, 0) if stat.S_ISDIR(found.st_mode) else None
