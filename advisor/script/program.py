"""Which part of a command line is the launcher, which the training program, and which its arguments.

Knows launchers and the shapes of program names; knows nothing about any framework.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.script.wrapper import (
    PYTHON,
    SHELLS,
    SUBCOMMANDS,
    Wrapped,
    base,
    is_wrapper,
    next_starter,
    past_env,
    past_ray,
    past_uv,
    past_wrapper,
    shell_text,
)

_TORCHRUN_FLAGS = {"--standalone", "--no-python", "--no_python", "--use-env", "--use_env", "--run-path", "--run_path"}
_LAUNCH_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    **dict.fromkeys(("coverage", "cProfile", "pdb", "debugpy", "memray", "scalene", "viztracer"), "script"),
}
"""Modules that run a program: how the program is found behind them."""
_TRAINS = re.compile(
    r"train|ppo|grpo|dpo|kto|rlhf|sft|dapo|distill|finetune|pretrain|realhf\.apps|areal|run_agentic"
    r"|(^|[./_])main(_\w+)?(\.py)?$|start_\w+|run_\w*(rm|vlm)|^(swift|megatron) pt$"
)
_OTHER_WORK = re.compile(
    r"convert|merge|preprocess|infer\b|inference|eval|generat|download|check_|json_dump|server|serve_|serve$|unittest|pytest"
    r"|export|data_process|prepare|tokenize|build_|interactive_|upload|plot|compare|^torchvision|setup\.py|http"
    r"|dist_checkpoint|start_retriev|extract|verify|diagnose|to_torch|hf_to|torch_to|from_pretrained|process_|data/"
)


class Found(Struct, frozen=True):
    """What a command line runs. Numbers are indices into its words.

    `kind` "program": its arguments begin at `arguments`; "text": shell text stands in that word, from character `cut`
    on; "file": a shell script. `wrapped` says what the commands around it do to its environment.
    """

    kind: Literal["program", "text", "file"]
    program: str
    arguments: int
    launcher: tuple[int, int] = (0, 0)
    interpreter: str | None = None
    cut: int = 0
    wrapped: Wrapped = field(default_factory=Wrapped)


def is_training(program: str) -> bool:
    """Whether a program's name has the shape of a training entry point."""
    last = program.rsplit("/", 1)[-1].replace("trainer", "")
    if _OTHER_WORK.search(program) and "train" not in last:
        return False
    return bool(_TRAINS.search(program))


def find(words: Sequence[str]) -> Found | None:
    """What a command line runs, behind any wrappers; None where it runs nothing that we can name."""
    at: int | None = 0
    wrapped = Wrapped()
    for _ in range(12):
        if at is None or at >= len(words):
            return None
        name = base(words[at])
        if not name:  # not known: `$PYTHON -u train.py`, `$WRAPPER python train.py`
            python = _python(words, at) if "".join(words[at + 1 : at + 2]).startswith("-") else None
            if python is not None:
                return replace(python, wrapped=wrapped)
            at += 1
        elif name == "env":
            at = past_env(words, at + 1, wrapped)
        elif name == "ray":
            at = past_ray(words, at, wrapped)
        elif name == "uv":
            at = past_uv(words, at)
        elif is_wrapper(name):
            start = past_wrapper(words, at, wrapped)
            text = shell_text(words, at) if start == len(words) else None
            if text is not None:
                return Found("text", "", text[0], cut=text[1], wrapped=wrapped)
            at = start
        else:
            found = _program(words, at)
            behind = _behind_dashes(words, found)
            if behind is None:
                return None if found is None else replace(found, wrapped=wrapped)
            at = behind
    return None


def _behind_dashes(words: Sequence[str], found: Found | None) -> int | None:
    """The command that a program starts which is no training itself: `python submit.py --gpus 8 -- torchrun …`."""
    if found is None or found.kind != "program" or is_training(found.program):
        return None
    for index in range(found.arguments, len(words) - 1):
        if words[index] == "--":
            return index + 1 if next_starter(words, index + 1) == index + 1 else None
    return None


def _program(words: Sequence[str], at: int) -> Found | None:
    name = base(words[at])
    if PYTHON.match(name):
        return _python(words, at)
    if name in SHELLS:
        return _shell(words, at)
    if name == "torchrun":
        return _torchrun(words, at + 1, at + 1)
    if name in ("deepspeed", "accelerate"):
        return _scan_for_script(words, at, name)
    if name in SUBCOMMANDS:
        return Found("program", f"{name} {words[at + 1]}", at + 2) if at + 1 < len(words) else None
    if words[at] in ("-m", "--module"):
        return _module(words, at, None)
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
    if at + 1 >= len(words):
        return None
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
        if words[index] == "-s":
            return None
        if re.match(r"-\w*c$", words[index]):
            return Found("text", "", index + 1) if index + 1 < len(words) else None
        index += 2 if words[index] in ("-o", "--rcfile", "--init-file") else 1
    return Found("file", words[index], index) if index < len(words) else None
