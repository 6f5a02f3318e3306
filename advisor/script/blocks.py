"""Lays the shell text of a YAML file bare: what a task of SkyPilot's runs, or a manifest of Kubernetes'."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path

from advisor.regex import regex
from advisor.script.document import ScriptError
from advisor.script.files import Files, load

_HEADER = regex(rb"( *)(?:- +)*(?:[\w./-]+:[ \t]+)?([|>])[-+]?[ \t]*(?:#[^\n]*)?\r?\n?\Z")
"""The line above a block of text: `run: |`, `- |`."""
_KEYED = regex(rb"\s*[\w.-]+:(?:\s|\Z)|\s*(?:import|from) \w")
"""How a block begins that is another YAML text, or Python."""
_VARIABLE = regex(rb"\A( +[A-Z_][A-Z0-9_]*):( +)([\w./:+-]+|\"[^\"\n$`\\]+\"|'[^'\n]+')(?=\s)(?!:)")


_STARTS = regex(
    rb"\bsubprocess\b|\bos\.(?:system|popen|exec\w+|spawn\w+)\(|\bcreate_subprocess_\w+|\bPopen\b|\bsh -c\b"
    rb"|\btorchrun\b|\baccelerate\W{1,4}launch\b|\bllamafactory-cli\b|\bswift\W{1,4}(?:sft|rlhf)\b"
)


_TRAIN = {"torch", "transformers", "trl", "peft", "hydra", "ray", "datasets", "deepspeed", "lightning", "unsloth"}
"""Packages of programs that train."""
_IMPORTED = regex(rb"^[ \t]*(?:from|import) ([\w.]+)", re.MULTILINE)


def starts_commands(files: Files, path: Path, *, alone: bool = False) -> bool:
    """Whether a Python file may start commands, or one that it imports does (not `alone`)."""
    try:
        data = (load(path, "python") if files.given is None else files.known(path)).data
    except ScriptError:
        return False
    names = [name.decode() for name in _IMPORTED.findall(data)[:60]]
    own = alone or any(name.partition(".")[0] in _TRAIN for name in names)  # what trains itself starts nothing
    modules = () if own else {name.replace(".", "/") + ".py" for name in names}
    found = (files.candidates(name, path.parent) for name in sorted(modules))
    return _STARTS.search(data) is not None or any(one and starts_commands(files, one[0], alone=True) for one in found)


def shell_in(path: Path, data: bytes) -> bytes | None:
    """`shell_of` a file whose name says YAML, what runs one that says Python and starts commands; None of any other."""
    if path.suffix == ".py":
        return b"python '%s' \"$@\"\n" % os.fsencode(path.absolute()) if _STARTS.search(data) else None
    return shell_of(data) if path.suffix in (".yaml", ".yml") else None


def _folded(lines: list[bytes]) -> list[bytes]:
    """The lines of a folded block (`>`): what YAML makes one line is one here, too, blanks where the ends were. Not
    where one ends in a backslash, which YAML makes an escaped blank."""
    depth = [len(line) - len(line.lstrip(b" ")) if line.strip() else -1 for line in lines]
    if any(line.rstrip(b"\r\n").endswith(b"\\") for line in lines):
        return [b"" for _ in lines]
    on = [here == below == depth[0] for here, below in pairwise([*depth, -1])]
    return [line.rstrip(b"\r\n").ljust(len(line)) if goes_on else line for line, goes_on in zip(lines, on, strict=True)]


def shell_of(data: bytes) -> bytes | None:
    """The text with every byte of its blocks in its place and all else as comments, `NAME: value` of a task's variables
    as assignments. Each block is a shell of its own, the last one the script's. None where it has no block."""
    lines = data.splitlines(keepends=True)
    blocks: list[tuple[int, int]] = []
    at = 0
    while at < len(lines):
        header, end = _HEADER.match(lines[at]), at + 1
        while header is not None and end < len(lines) and (
            not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip(b" ")) > len(header[1])
        ):  # fmt: skip
            end += 1
        if header is not None and header[2] == b">":
            lines[at + 1 : end] = _folded(lines[at + 1 : end])
        if end > at + 1 and lines[at + 1] and not _KEYED.match(b"".join(lines[at + 1 : end])):
            blocks.append((at, end))
        at = end
    inside = {number for start, end in blocks for number in range(start + 1, end)}
    opening, closing = {start for start, _ in blocks[:-1]}, {end for _, end in blocks[:-1]}
    out: list[bytes] = []
    for number, line in enumerate(lines):
        marks = b");(" if number in opening & closing else b"(" * (number in opening) + b")" * (number in closing)
        told = _VARIABLE.sub(rb"\2\1=\3", line) if blocks and not marks and number < blocks[-1][0] else line
        comment = marks + b"#" + line[len(marks) + 1 :] if line.strip() else line
        out.append(line if number in inside else told if told != line else comment)
    return b"".join(out) if blocks and sum(map(len, out)) == len(data) else None
