"""Commands that run another command: where that begins, and what environment it finds there.

Knows launchers of processes (`env`, `srun`, `docker run`, `uv run`, `ray job submit`); knows nothing of training.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

SHELLS = {"bash", "sh", "zsh", "dash", "ksh"}
_WRAPPERS = {
    "nohup", "time", "exec", "command", "builtin", "setsid", "sudo", "nice", "ionice", "chrt", "stdbuf", "timeout",
    "numactl", "taskset", "srun", "sbatch", "salloc", "bsub", "jsrun", "ibrun", "aprun", "flux", "mpirun", "mpiexec",
    "horovodrun", "apptainer", "singularity", "enroot", "docker", "nvidia-docker", "podman", "conda", "mamba",
    "micromamba", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi", "nsys", "ncu", "compute-sanitizer", "gdb", "perf",
    "valgrind", "strace", "py-spy", "memray", "scalene", "coverage", "xvfb-run", "unbuffer", "script", "flock", "xargs",
    "parallel", "ssh", "pdsh", "kubectl", "torchx", "tmux", "screen", "systemd-run", "gosu", "proxychains4", "watch",
    "wandb", "catchsegv", "retry",
}  # fmt: skip
"""Commands that run the rest of their line."""
_ELSEWHERE = {"ssh", "pdsh", "docker", "nvidia-docker", "podman", "kubectl"}
"""Wrappers whose command does not find the variables of the shell that calls them."""
_TEXT = {"ssh", "pdsh", "tmux", "screen", "watch", "parallel", "script"}
"""Wrappers whose last word may be shell text."""
SUBCOMMANDS = {"swift", "megatron", "trl", "llamafactory-cli", "axolotl", "xtuner", "tune"}
"""Console scripts whose first word says what to do."""
_STARTERS = {"torchrun", "deepspeed", "accelerate", "ray", "env", "uv"} | SHELLS | SUBCOMMANDS
_UV_TAKES = {
    "--extra", "--no-extra", "--group", "--no-group", "--only-group", "--env-file", "--with", "--with-editable",
    "--with-requirements", "-w", "--python", "-p", "--index", "--default-index", "-i", "--index-url",
    "--extra-index-url", "-f", "--find-links", "--project", "--directory", "--config-file", "--package",
    "--index-strategy", "--keyring-provider", "-P", "--upgrade-package", "--resolution", "--prerelease", "--color",
    "--exclude-newer", "--link-mode", "--refresh-package", "--reinstall-package", "-C", "--config-setting",
    "--no-build-package", "--no-binary-package", "--cache-dir", "--python-platform", "--python-preference",
}  # fmt: skip
"""Options of `uv run` with a value behind them."""
_ENVIRONMENT = re.compile(r"([A-Za-z_]\w*)=")
_GIVES = {
    "docker": ("-e", "--env"),
    "nvidia-docker": ("-e", "--env"),
    "podman": ("-e", "--env"),
    "apptainer": ("--env",),
    "singularity": ("--env",),
    "mpirun": ("-x",),
    "systemd-run": ("-E", "--setenv"),
    "srun": ("--export",),
    "sbatch": ("--export",),
}
"""Options that give variables to the command: NAME=value, for Slurm several with commas between them."""
PYTHON = re.compile(r"python[\d.]*$|pypy[\d.]*$")


class Given(Struct, frozen=True):
    """A variable that a wrapper gives: `NAME=value` in characters `start:end` of word `word`; None: to its end."""

    word: int
    start: int = 0
    end: int | None = None


class Wrapped(Struct):
    """What wrappers do to the environment. `runtime` is the word with Ray's runtime environment."""

    given: list[Given] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    elsewhere: bool = False
    """The command does not inherit the shell's variables."""
    runtime: int | None = None


def base(word: str) -> str:
    """A command without its folder."""
    return word.rsplit("/", 1)[-1]


def is_wrapper(name: str) -> bool:
    """Whether a command runs the rest of its line."""
    return name in _WRAPPERS


def past_wrapper(words: Sequence[str], at: int, out: Wrapped) -> int:
    """The first word that can begin a command; the wrapper's own options come before it."""
    name = base(words[at])
    start = next_starter(words, at + 1)
    out.elsewhere = out.elsewhere or name in _ELSEWHERE
    flags = _GIVES.get(name, ())
    for index in range(at + 1, start):
        word = words[index]
        flag, equals, _ = word.partition("=")
        if flag in flags and equals:
            _give(index, len(flag) + 1, word, flag == "--export", out)
        elif words[index - 1] in flags or name == "sudo":
            _give(index, 0, word, words[index - 1] == "--export", out)
    return start


def _give(index: int, start: int, word: str, slurm: bool, out: Wrapped) -> None:
    """Note `A=1`, or Slurm's `ALL,A=1,B=2`, which shuts everything else out where it does not begin with ALL."""
    if not slurm:
        if _ENVIRONMENT.match(word[start:]):
            out.given.append(Given(index, start))
        return
    at = start
    names = word[start:].split(",")
    out.elsewhere = out.elsewhere or names[0] != "ALL"
    for part in names if word.isascii() else ():
        if _ENVIRONMENT.match(part):
            out.given.append(Given(index, at, at + len(part)))
        at += len(part) + 1


def past_env(words: Sequence[str], at: int, out: Wrapped) -> int:
    """Past `env`'s options and assignments."""
    while at < len(words):
        word = words[at]
        if word in ("-u", "--unset", "-C", "--chdir"):
            out.removed += words[at + 1 : at + 2] if word in ("-u", "--unset") else []
            at += 2
        elif word.startswith("-") or word == "":
            out.removed += [word.partition("=")[2]] if word.startswith("--unset=") else []
            out.elsewhere = out.elsewhere or word in ("-", "-i", "--ignore-environment")
            at += 1
        elif _ENVIRONMENT.match(word):
            out.given.append(Given(at))
            at += 1
        else:
            break
    return at


def past_ray(words: Sequence[str], at: int, out: Wrapped) -> int | None:
    """Everything after the bare `--` of `ray job submit` is the command."""
    if list(words[at + 1 : at + 3]) != ["job", "submit"]:
        return None
    dashes = next((index + 1 for index in range(at + 3, len(words)) if words[index] == "--"), None)
    start = next_starter(words, at + 3) if dashes is None else dashes
    if start >= len(words):
        return None
    for index in range(at, start):
        if words[index].startswith("--runtime-env-json="):
            out.runtime = index
        elif words[index] == "--runtime-env-json" and index + 1 < start:
            out.runtime = index + 1
    return start


def past_uv(words: Sequence[str], at: int) -> int | None:
    """The command, or the `-m` before a module, behind `uv run` and its options; `uv` for other uses is no command."""
    if words[at + 1 : at + 2] != ["run"]:
        return None
    at += 2
    while at < len(words):
        word = words[at]
        if word in ("-m", "--module"):
            return at
        if word == "--":
            return at + 1
        if not word.startswith("-"):
            return at
        at += 2 if word in _UV_TAKES else 1
    return None


def shell_text(words: Sequence[str], at: int) -> tuple[int, int] | None:
    """The word with shell text that a wrapper runs (`ssh host "…"`, `sbatch --wrap="…"`) and where it begins in it."""
    name = base(words[at])
    for index in range(at + 1, len(words)):
        if name == "sbatch" and words[index].startswith("--wrap="):
            return index, len("--wrap=")
        if name == "sbatch" and words[index] == "--wrap" and index + 1 < len(words):
            return index + 1, 0
    if name in _TEXT and len(words) > at + 1 and re.search(r"\s", words[-1]):
        return len(words) - 1, 0
    return None


def next_starter(words: Sequence[str], at: int) -> int:
    """The first word from `at` on that can begin a command."""
    for index in range(at, len(words)):
        name = base(words[index])
        if name in _STARTERS or name in _WRAPPERS or PYTHON.match(name):
            return index
        if name.endswith((".sh", ".bash", ".py")) and not words[index].startswith("-"):
            return index
    return len(words)
