"""Which part of a command line is the launcher, which the training program, and which its arguments.

Knows launchers and the shapes of program names; knows nothing about any framework.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_PYTHON = re.compile(r"python[\d.]*$|pypy[\d.]*$")
_SHELLS = {"bash", "sh", "zsh", "dash"}
_WRAPPERS = {
    "nohup", "time", "exec", "command", "builtin", "setsid", "sudo", "nice", "ionice", "stdbuf", "timeout", "numactl",
    "taskset", "srun", "sbatch", "salloc", "mpirun", "mpiexec", "apptainer", "singularity", "docker", "podman", "conda",
    "mamba", "micromamba", "poetry", "pipenv", "nsys", "ncu", "strace", "xvfb-run", "unbuffer", "script", "ssh", "pdsh",
    "kubectl", "torchx", "pixi",
}  # fmt: skip
"""Commands that run the rest of their line."""
_SUBCOMMANDS = {"swift", "megatron", "trl", "llamafactory-cli", "axolotl", "xtuner", "tune"}
"""Console scripts whose first word says what to do."""
_STARTERS = {"torchrun", "deepspeed", "accelerate", "ray", "env", "uv"} | _SHELLS | _SUBCOMMANDS
_TORCHRUN_FLAGS = {"--standalone", "--no-python", "--no_python", "--use-env", "--use_env", "--run-path", "--run_path"}
_LAUNCH_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
_TRAINS = re.compile(
    r"train|ppo|grpo|dpo|kto|rlhf|sft|dapo|distill|finetune|pretrain|realhf\.apps|areal|run_agentic"
    r"|(^|[./_])main(_\w+)?(\.py)?$|start_\w+|run_\w*(rm|vlm)|^(swift|megatron) pt$"
)
_OTHER_WORK = re.compile(
    r"convert|merge|preprocess|infer\b|inference|eval|generat|download|check_|json_dump|server|serve_|serve$|unittest|pytest"
    r"|export|data_process|prepare|tokenize|build_|interactive_|upload|plot|compare|^torchvision|setup\.py|http"
    r"|dist_checkpoint|start_retriev|extract|verify|diagnose|to_torch|hf_to|torch_to|from_pretrained|process_|data/"
)
_ENVIRONMENT = re.compile(r"([A-Za-z_]\w*)=")


@dataclass(frozen=True, slots=True)
class Found:
    """What a command line runs. Numbers are indices into its words.

    `kind` "program": its arguments begin at `arguments`; "text": shell text stands there; "file": a shell script.
    `environment` are words NAME=value before the program; `runtime` is the word with Ray's runtime environment.
    """

    kind: Literal["program", "text", "file"]
    program: str
    arguments: int
    launcher: tuple[int, int] = (0, 0)
    interpreter: str | None = None
    environment: tuple[int, ...] = ()
    runtime: int | None = None


def is_training(program: str) -> bool:
    """Whether a program's name has the shape of a training entry point."""
    last = program.rsplit("/", 1)[-1].replace("trainer", "")
    if _OTHER_WORK.search(program) and "train" not in last:
        return False
    return bool(_TRAINS.search(program))


def find(words: Sequence[str]) -> Found | None:
    """What a command line runs, behind any wrappers; None where it runs nothing that we can name."""
    at, runtime = 0, None
    environment: list[int] = []
    for _ in range(12):
        if at >= len(words):
            return None
        name = _base(words[at])
        if name == "env":
            at = _past_env(words, at + 1, environment)
        elif name == "ray":
            start = _ray_program(words, at)
            if start is None:
                return None
            runtime = _runtime_word(words, at, start)
            at = start
        elif name in _WRAPPERS:
            at = _next_starter(words, at + 1)
        elif name == "uv":
            if at + 1 >= len(words) or words[at + 1] != "run":
                return None
            at = _next_starter(words, at + 2)
        else:
            found = _program(words, at)
            if found is None:
                return None
            return Found(
                found.kind,
                found.program,
                found.arguments,
                found.launcher,
                found.interpreter,
                tuple(environment),
                runtime,
            )
    return None


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def _past_env(words: Sequence[str], at: int, environment: list[int]) -> int:
    while at < len(words):
        if words[at] in ("-u", "--unset", "-C", "--chdir"):
            at += 2
        elif words[at].startswith("-"):
            at += 1
        elif _ENVIRONMENT.match(words[at]):
            environment.append(at)
            at += 1
        else:
            break
    return at


def _ray_program(words: Sequence[str], at: int) -> int | None:
    """Everything after the bare `--` of `ray job submit` is the program."""
    if list(words[at + 1 : at + 3]) != ["job", "submit"]:
        return None
    for index in range(at + 3, len(words)):
        if words[index] == "--":
            return index + 1
    start = _next_starter(words, at + 3)
    return start if start < len(words) else None


def _runtime_word(words: Sequence[str], at: int, end: int) -> int | None:
    for index in range(at, end):
        if words[index].startswith("--runtime-env-json="):
            return index
        if words[index] == "--runtime-env-json" and index + 1 < end:
            return index + 1
    return None


def _next_starter(words: Sequence[str], at: int) -> int:
    """The first word that can begin a command; wrappers' own options come before it."""
    for index in range(at, len(words)):
        name = _base(words[index])
        if name in _STARTERS or name in _WRAPPERS or _PYTHON.match(name):
            return index
        if name.endswith((".sh", ".bash")) and not words[index].startswith("-"):
            return index
    return len(words)


def _program(words: Sequence[str], at: int) -> Found | None:
    name = _base(words[at])
    if _PYTHON.match(name):
        return _python(words, at)
    if name in _SHELLS:
        return _shell(words, at)
    if name == "torchrun":
        return _torchrun(words, at + 1, at + 1)
    if name in ("deepspeed", "accelerate"):
        return _scan_for_script(words, at, name)
    if name in _SUBCOMMANDS:
        return Found("program", f"{name} {words[at + 1]}", at + 2) if at + 1 < len(words) else None
    if name.endswith(".py"):
        return Found("program", words[at], at + 1)
    if name.endswith((".sh", ".bash")):
        return Found("file", words[at], at)
    return None


def _python(words: Sequence[str], at: int) -> Found | None:
    interpreter = words[at] if "/" in words[at] else None
    index = at + 1
    while index < len(words):
        word = words[index]
        if word == "-m":
            if index + 1 >= len(words):
                return None
            return _module(words, index, interpreter)
        if word in ("-c", "-"):
            return None
        if word in ("-X", "-W"):
            index += 2
        elif word.startswith("-"):
            index += 1
        else:
            return Found("program", word, index + 1, (at + 1, index), interpreter)
    return None


def _module(words: Sequence[str], at: int, interpreter: str | None) -> Found | None:
    """`python -m module …`, where the module may itself be a launcher."""
    module = words[at + 1]
    launcher = _LAUNCH_MODULES.get(module)
    if launcher is None:
        return Found("program", module, at + 2, (at, at), interpreter)
    found = _torchrun(words, at + 2, at + 2) if launcher == "torchrun" else _scan_for_script(words, at + 1, launcher)
    return None if found is None else Found(found.kind, found.program, found.arguments, found.launcher, interpreter)


def _torchrun(words: Sequence[str], first: int, at: int) -> Found | None:
    while at < len(words):
        word = words[at]
        if word in ("-m", "--module"):
            at += 1
        elif word.startswith("-"):
            at += 1 if "=" in word or word in _TORCHRUN_FLAGS else 2
        else:
            return Found("program", word, at + 1, (first, at))
    return None


def _scan_for_script(words: Sequence[str], at: int, name: str) -> Found | None:
    first = at + 1
    if name == "accelerate" and words[at].endswith("accelerate"):
        if words[at + 1 : at + 2] != ["launch"]:
            return None
        first = at + 2
    for index in range(first, len(words)):
        if words[index] in ("-m", "--module") and index + 1 < len(words):
            return Found("program", words[index + 1], index + 2, (first, index))
        if words[index].endswith(".py") and not words[index].startswith("-"):
            return Found("program", words[index], index + 1, (first, index))
    return None


def _shell(words: Sequence[str], at: int) -> Found | None:
    index = at + 1
    while index < len(words) and words[index].startswith("-") and words[index] != "--":
        if re.match(r"-\w*c$", words[index]):
            return Found("text", "", index + 1) if index + 1 < len(words) else None
        index += 2 if words[index] in ("-o", "--rcfile", "--init-file") else 1
    return Found("file", words[index], index) if index < len(words) else None
