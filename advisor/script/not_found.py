"""Reads what a command says of a script that it runs and that is not there: its name, its words and its variables.

They are hints: what the script makes of them is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from advisor.bash.state import TracedCommand
from advisor.bash.text import joined, known
from advisor.hostile import clean, clean_line
from advisor.language import mark, say
from advisor.regex import regex
from advisor.script.arguments import read_arguments, shown
from advisor.script.document import Setting
from advisor.script.files import Files
from advisor.script.launch import Launch, NotFound
from advisor.script.launcher import is_training
from advisor.script.pasted import FEWEST
from advisor.script.shell import ShellReading, read_shell

_LONGEST = 1_000
_REST = b"bash the-rest-of-it.sh\n"
"""A command that inherits what the script has set."""
_ASSIGNS = regex(rb"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=", re.MULTILINE)
_OWN_DEFAULT = regex(
    rb"^([ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=)(\$\{\2:-)(\"[^\"\n]*\"|[^\s\"'{}]*)\}(?=[ \t]*(?:#|$))", re.MULTILINE
)
"""A variable whose default the script tells: `MODEL=${MODEL:-Qwen/Qwen3-8B}`."""
_HOME = regex(rb"\$HOME\b|\$\{HOME\}")
_NO_COMMAND = mark("The script ends before the command that it prepares: its variables are read as hints.")
_OF_LIBRARIES = ("CUDA_", "NCCL_", "PYTORCH_", "TORCH_", "HF_", "RAY_", "VLLM_", "WANDB_", "OMP_", "PYTHON", "PATH")
"""Beginnings of variables that nobody made up for a script of his own."""


def hinted_launch(reading: ShellReading, base: Path) -> Launch | None:
    """The script that a command runs and that is not found, as a launch of which only hints are known; None: none."""
    missing = [command for command in reading.trace.commands if _is_missing(command, reading, base)]
    if not missing:
        return None
    command = max(missing, key=lambda one: (is_training(_words(one)[0]), one.number))
    words = _words(command)
    file = words[0]
    hints = tuple(word for word in words if not word.startswith("-") and "=" not in word)
    variables = {
        clean(name.decode("utf-8", "replace")): clean(joined(value).decode("utf-8", "replace"), _LONGEST)
        for name, value in command.environment.items()
        if known(value)
    }
    return Launch(
        0,
        "",
        (),
        variables,
        (*_arguments(command), *_own(variables)),
        launcher_unread=("",),
        partial=True,
        hints=hints,
        missing=(file,),
        not_found=(NotFound("", file),),
    )


_RUN_NAME = regex(r"(?i)(?:exp\w*|run|project|job|wandb\w*)_?name$")
"""Variables that hold what a person calls the run."""


def left_variables(files: Files, path: Path, positional: tuple[str, ...]) -> Launch | None:
    """What a script that ends before its command sets for it, as hints; None where it sets hardly anything."""
    data = _HOME.sub(lambda home: b"." + _nothing(len(home[0]) - 1), files.documents[0].data)
    data = _OWN_DEFAULT.sub(lambda own: own[1] + _nothing(len(own[3])) + own[4] + b" ", data)
    names = b" ".join(_ASSIGNS.findall(data))
    text = b"\n".join((data, b"export _ " + names, _REST))
    hinted = hinted_launch(read_shell(files, path, positional, instead=text), path.parent)
    if hinted is None or len(hinted.settings) < FEWEST:
        return None
    named = (one.text for one in hinted.settings if _RUN_NAME.search(one.key))
    words = tuple(word for text in named for word in re.split(r"[^A-Za-z0-9.]+", text) if word)
    return replace(hinted, hints=(), missing=(), not_found=(), notes=(say(_NO_COMMAND),), prose=words)


def _nothing(length: int) -> bytes:
    """So many bytes that bash reads as nothing, inside of a string in double quotes and outside."""
    return b'""' * (length // 2) if length % 2 == 0 else b'$""' + b'""' * ((length - 3) // 2)


def _is_missing(command: TracedCommand, reading: ShellReading, base: Path) -> bool:
    found = command.found
    if found is None or found.kind != "file":
        return False
    file = shown(command.fields[found.arguments])
    named = bool(file.rpartition("/")[2]) and "\0" not in file.rpartition("/")[2]
    return named and ("\0" in file or reading.files.find(file, base, "shell", command.directory) is None)


def _words(command: TracedCommand) -> list[str]:
    """The script, by its name alone where its folder is not known, and what of the words that it is given is known."""
    at = command.found.arguments if command.found is not None else 0
    file, *given = [shown(item) for item in command.fields[at:]]
    file = file.rpartition("/")[2] if "\0" in file else file
    return [clean_line(word, _LONGEST) for word in (file, *given) if "\0" not in word]


def _arguments(command: TracedCommand) -> Iterator[Setting]:
    at = command.found.arguments + 1 if command.found is not None else 0
    for argument in read_arguments(command.fields, at):
        if argument.value is not None:
            yield Setting(clean(argument.key), argument.value, "command", True)


def _own(variables: Mapping[str, str]) -> Iterator[Setting]:
    """Variables of names of the user's own, which the script most likely hands on: GPUS=1, BATCH_SIZE=4."""
    for name, text in variables.items():
        if not name.startswith(_OF_LIBRARIES) and text:
            yield Setting(name.lower(), text, "command", True)
