"""Lays the shell text of other files bare: what a task of SkyPilot's runs, or a manifest of Kubernetes', and what a
Python file starts."""

from __future__ import annotations

import os
import re
from itertools import pairwise, takewhile
from pathlib import Path

from advisor.regex import regex
from advisor.script.document import ScriptError
from advisor.script.files import Files, is_file, load

_HEADER = regex(rb"( *)(?:- +)*(?:[\w./-]+:[ \t]+)?([|>])[-+]?[ \t]*(?:#[^\n]*)?\r?\n?\Z")
"""The line above a block of text: `run: |`, `- |`."""
_KEYED = regex(rb"\s*[\w.-]+:(?:\s|\Z)|\s*(?:import|from) \w")
"""How a block begins that is another YAML text, or Python."""
_COMPOSE = regex(rb"^services:[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_COMMAND = regex(rb"( *(?:- +)?(?:command|entrypoint|args|cmd|run):)(?:[ \t]+(.+?))?([ \t]*\r?\n?)\Z")
_WORD = rb"(?:\"[^\"\\`!]*\"|'[^'$]*'|(?:--?\w|[^-\s\"'\[\],\\;|&()<>`#{}*!%@])[^\s\"'\[\],\\;|&()<>`]*)"
_ITEM = regex(rb"( *)- +" + _WORD + rb"[ \t]*(?:\r?\n)?\Z")
_LIST = regex(rb"\[ *" + _WORD + rb"(?: *, *" + _WORD + rb")* *\]")
_SIGN = regex(rb"(\"[^\"]*\"|'[^']*')|[\[\],]")
_SIMPLE = regex(
    rb"(?:[ \t]*(?:#.*)?|(?:export )?\w+=(?:[\w./:@%+,=-]*|\"[^\"$`\\\n]*\"|'[^'\n]*')[ \t]*(?:[ \t]#.*)?)\r?\n?"
)
"""A line of a `.env` file that a shell takes as Docker Compose does."""
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
    """`shell_of` a file whose name says YAML, and what runs one that says Python and starts commands; None of any
    other, and beside a `.env` file, from which Docker Compose fills the variables of its commands as no shell does."""
    if path.suffix == ".py":
        return b"python '%s' \"$@\"\n" % os.fsencode(path.absolute()) if _STARTS.search(data) else None
    beside, named = path.parent / ".env", path.suffix in (".yaml", ".yml")
    given = beside.read_bytes() if named and _COMPOSE.search(data) and is_file(beside) else b""
    simple = all(map(_SIMPLE.fullmatch, given.splitlines(keepends=True)))
    return shell_of(data, sourced=bool(given)) if named and simple else None


def _command(lines: list[bytes], at: int) -> list[bytes]:
    """A line as the shell text of the command that stands there, with the lines below it that list its words; none
    where no command does."""
    if (found := _COMMAND.match(lines[at])) is None:
        return []
    blank, text = b" " * len(found[1]), found[2]
    if text is None:
        items = takewhile(lambda one: one and len(one[1]) > found[1].rindex(b" "), map(_ITEM.match, lines[at + 1 :]))
        words = [one[0].rstrip().replace(b"- ", b"  ", 1).ljust(len(one[0])) for one in items if one]
        whole = words and not b"".join(lines[at + 1 + len(words) : at + 2 + len(words)]).lstrip().startswith(b"-")
        return [blank.ljust(len(lines[at]) - 1) + b"\n", *words[:-1], words[-1][:-1] + b"\n"] if whole else []
    if _LIST.fullmatch(text):
        text = _SIGN.sub(lambda one: one[1] or b" ", text)
    elif text[:1] in b"\"'" and text[1:].find(text[:1]) == len(text) - 2 and b"\\" not in text:
        text = b" " + text[1:-1] + b" "
    elif not re.match(rb"[\w./$]", text):
        return []
    return [blank + lines[at][len(blank) : found.start(2)] + text + found[3]]


def _folded(lines: list[bytes]) -> list[bytes]:
    """The lines of a folded block (`>`): what YAML makes one line is one here, too, blanks where the ends were. Not
    where one ends in a backslash, which YAML makes an escaped blank."""
    depth = [len(line) - len(line.lstrip(b" ")) if line.strip() else -1 for line in lines]
    if any(line.rstrip(b"\r\n").endswith(b"\\") for line in lines):
        return [b"" for _ in lines]
    on = [here == below == depth[0] for here, below in pairwise([*depth, -1])]
    return [line.rstrip(b"\r\n").ljust(len(line)) if goes_on else line for line, goes_on in zip(lines, on, strict=True)]


def shell_of(data: bytes, *, sourced: bool = False) -> bytes | None:
    """The text with every byte of its blocks in its place and all else as comments, `NAME: value` of a task's variables
    as assignments. Each block is a shell of its own, the last one the script's. None where it has no block. `sourced`:
    the `.env` file beside it gives the variables of a file of Docker Compose."""
    lines, compose = data.splitlines(keepends=True), _COMPOSE.search(data)
    blocks: list[tuple[int, int, int]] = []
    at = 0
    while at < len(lines):
        header, end, words = _HEADER.match(lines[at]), at + 1, _command(lines, at)
        lines[at : at + len(words)] = words
        while header is not None and end < len(lines) and (
            not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip(b" ")) > len(header[1])
        ):  # fmt: skip
            end += 1
        even = compose and _COMMAND.match(lines[at]) and not any(x.count(q) % 2 for x in lines[at:end] for q in b"\"'")
        if header is not None and (header[2] == b">" or even):  # to Docker Compose, ends of lines are blanks
            lines[at + 1 : end] = _folded(lines[at + 1 : end])
        if words or (end > at + 1 and lines[at + 1] and not _KEYED.match(b"".join(lines[at + 1 : end]))):
            end = max(end, at + len(words))
            blocks.append((at, at + (not words), end))
        at = end
    inside = {number for _, start, end in blocks for number in range(start, end)}
    opening, closing = {start for start, _, _ in blocks[:-1]}, {end for _, _, end in blocks[:-1]}
    out: list[bytes] = []
    for number, line in enumerate(lines):
        marks = b");(" if number in opening & closing else b"(" * (number in opening) + b")" * (number in closing)
        told = _VARIABLE.sub(rb"\2\1=\3", line) if blocks and not marks and number < blocks[-1][0] else line
        if compose:  # what `environment:` sets fills no variable of a command
            told = b". .env #".ljust(len(line) - 1) + b"\n" if sourced and _COMPOSE.match(line) else line
        comment = marks + b"#" + line[len(marks) + 1 :] if line.strip() else line
        out.append(marks + line[len(marks) :] if number in inside else told if told != line else comment)
    return b"".join(out) if blocks and sum(map(len, out)) == len(data) else None
