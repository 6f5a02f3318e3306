"""Says what wrappers (`xargs`, `env`, `ray job submit`) make of a command's words and environment."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.bash.state import CommandWord, Wrapped
from advisor.bash.text import Piece, ShellValue, cut, joined, unknown
from advisor.language import say
from advisor.regex import regex

_HOLE = "\ufffd".encode()
FILLERS = (b"xargs", b"parallel")
"""Commands that put what they read among the arguments of another."""


def filled_later(fields: tuple[CommandWord, ...]) -> tuple[CommandWord, ...]:
    """The arguments of a command, where `xargs` and `parallel` put what they read in place of `{}` or at the end."""
    name = fields[0].text
    if name not in FILLERS:
        return fields
    later = unknown(say("{name} fills it in", name=name.decode()))
    texts = [item.text for item in fields]
    fields = fields[: texts.index(b":::")] if b":::" in texts else fields
    if any(b"{}" in text for text in texts[1:]):
        return tuple(CommandWord(_with_hole(item.pieces, later)) if b"{}" in item.text else item for item in fields)
    return (*fields, CommandWord((replace(later, quoted=False),)))


def _with_hole(pieces: ShellValue, later: Piece) -> ShellValue:
    """A word with what is not known yet in the place of every `{}`."""
    at = joined(pieces).find(b"{}")
    return pieces if at < 0 else (*cut(pieces, 0, at), later, *_with_hole(cut(pieces, at + 2), later))


def wrapped_environment(
    wrapped: Wrapped, fields: Sequence[CommandWord], environment: Mapping[bytes, ShellValue], own: frozenset[bytes]
) -> tuple[dict[bytes, ShellValue], frozenset[bytes]]:
    """What a command behind wrappers finds in its environment, and which of it they or its own prefix give it."""
    removed = {name.encode("utf-8", "surrogateescape") for name in wrapped.removed}
    kept = {name.encode("utf-8", "surrogateescape") for name in wrapped.kept} if wrapped.elsewhere else environment
    out = {name: value for name, value in environment.items() if name in kept and name not in removed}
    given: dict[bytes, ShellValue] = {}
    for one in wrapped.given:  # `NAME=value`
        name = fields[one.word].text[one.start : one.end].partition(b"=")[0]
        given[name] = cut(fields[one.word].pieces, one.start + len(name) + 1, one.end)
    return {**out, **given}, frozenset((own & out.keys()) | given.keys())


def of_the_job(wrapped: Wrapped, fields: Sequence[CommandWord]) -> dict[bytes, ShellValue]:
    """The variables that `ray job submit --runtime-env-json` gives the job; values that are not known stay out."""
    pieces = () if wrapped.runtime is None else fields[wrapped.runtime].pieces
    text = b"".join(_HOLE if piece.reason else piece.text for piece in pieces).removeprefix(b"--runtime-env-json=")
    try:
        parsed = json.loads(text.replace(b"\0", _HOLE) or b"null", strict=False)
    except (ValueError, RecursionError):
        return {}
    given = parsed.get("env_vars") if isinstance(parsed, dict) else None
    pairs = given.items() if isinstance(given, dict) else ()
    told = {str(name).encode(errors="replace"): str(value).encode(errors="replace") for name, value in pairs}
    return {name: (Piece(value),) for name, value in told.items() if _HOLE not in value}


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
_TASK = regex(
    r"#?[\s-]*(accelerators|num_nodes|(?:(?:nvidia|amd)\.com/)?gpus?):[ {\"]*([\w.-]+(?:: ?\d+)?)"
    r"|.*\b(gpu)=[\"']((?:[A-Za-z][\w-]*)(?::\d+)?)[\"']"
)
"""What a task of SkyPilot's asks for, a manifest of Kubernetes', or a function of Modal's (its guide on GPUs)."""


def batch_options(script: str) -> Iterator[tuple[str, str, int]]:
    """(name, value, line) in the lines before the first command: Slurm reads no others. Those of a task anywhere."""
    for number, line in enumerate(script.splitlines(), 1):
        if (task := _TASK.match(line)) is not None:
            told = (task[2] or task[4]).replace(" ", "")
            told += ":1" * (task[3] is not None and ":" not in told)
            yield "--nodes" if task[1] == "num_nodes" else "--gpus-per-node", told, number
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
