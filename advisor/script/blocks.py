"""Lays the shell text of a YAML file bare: what a task of SkyPilot's runs, or a manifest of Kubernetes'."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile
from pathlib import Path

from advisor.regex import regex
from advisor.script.files import is_file

_HEADER = regex(rb"( *)(?:- +)*(?:[\w./-]+:[ \t]+)?([|>])[-+]?[ \t]*(?:#[^\n]*)?\r?\n?\Z")
"""The line above a block of text: `run: |`, `- |`."""
_KEYED = regex(rb"\s*[\w.-]+:(?:\s|\Z)|\s*(?:import|from) \w")
"""How a block begins that is another YAML text, or Python."""
_COMPOSE = regex(rb"^services:[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_COMMAND = regex(rb"( *(?:- +)?(?:command|entrypoint|args|cmd|run):)(?:[ \t]+(.+?))?([ \t]*\r?\n?)\Z")
_BARE = rb"[^\s\"'\[\],\\;|&()<>`]*"
_WORD = rb"(?:\"[^\"\\`!]*\"|'[^'$]*'|(?:--?\w|[^-\s\"'\[\],\\;|&()<>`#{}*!%@])" + _BARE + rb")"
_ITEM = regex(rb"( *)- +(" + _WORD + rb")[ \t]*(?:\r?\n)?\Z")
_LIST = regex(rb"\[ *" + _WORD + rb"(?: *, *" + _WORD + rb")* *\]")
_PLAIN = regex(rb"[\w./$][^\n]*|\"[^\"\\\n]*\"|'[^'\n]*'")
_COMMA = regex(rb"(\"[^\"]*\"|'[^']*')|[\[\],]")
_SIMPLE = regex(
    rb"(?:[ \t]*(?:#.*)?|(?:export )?\w+=(?:[\w./:@%+,=-]*|\"[^\"$`\\\n]*\"|'[^'\n]*')[ \t]*(?:[ \t]#.*)?)\r?\n?"
)
"""A line of a `.env` file that a shell takes as Docker Compose does."""
_VARIABLE = regex(rb"\A( +[A-Z_][A-Z0-9_]*):( +)([\w./:+-]+|\"[^\"\n$`\\]+\"|'[^'\n]+')(?=\s)(?!:)")


def shell_in(path: Path, data: bytes) -> bytes | None:
    """`shell_of` a file whose name says YAML; None of any other, and beside a `.env` file, from which Docker Compose
    fills the variables of its commands, that no shell reads as it does."""
    beside, given = path.parent / ".env", b""
    if path.suffix in (".yaml", ".yml") and _COMPOSE.search(data) and is_file(beside):
        given = beside.read_bytes()
    simple = path.suffix in (".yaml", ".yml") and all(map(_SIMPLE.fullmatch, given.splitlines(keepends=True)))
    return shell_of(data, sourced=bool(given)) if simple else None


def _command(lines: list[bytes]) -> list[bytes]:
    """The first of some lines as the shell text of the command that stands there, and the lines below it that list its
    words; none where no command does."""
    found = _COMMAND.match(lines[0])
    if found is None:
        return []
    blank, text = b" " * len(found[1]), found[2]
    if text is None:
        listed = list(
            takewhile(lambda item: item and len(item[1]) >= found[1].rindex(b" ") + 1, map(_ITEM.match, lines[1:]))
        )
        words = [item[0].rstrip().replace(b"- ", b"  ", 1).ljust(len(item[0])) for item in listed if item]
        behind = lines[len(words) + 1 : len(words) + 2]
        if not words or any(line.lstrip().startswith(b"-") for line in behind):
            return []
        return [blank.ljust(len(lines[0]) - 1) + b"\n", *words[:-1], words[-1][:-1] + b"\n"]
    if _LIST.fullmatch(text):
        text = _COMMA.sub(lambda one: one[1] or b" ", text)
    elif _PLAIN.fullmatch(text):
        text = b" " + text[1:-1] + b" " if text[:1] in b"\"'" else text
    else:
        return []
    return [blank + lines[0][len(blank) : found.start(2)] + text + found[3]]


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
        header, end, words = _HEADER.match(lines[at]), at + 1, _command(lines[at:])
        lines[at : at + len(words)] = words
        while header is not None and end < len(lines) and (
            not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip(b" ")) > len(header[1])
        ):  # fmt: skip
            end += 1
        odd = any(line.count(q) % 2 for line in lines[at:end] for q in b"\"'")
        whole = compose and _COMMAND.match(lines[at]) and not odd
        if header is not None and (header[2] == b">" or whole):  # to Docker Compose, ends of lines are blanks
            lines[at + 1 : end] = _folded(lines[at + 1 : end])
        if words or (end > at + 1 and lines[at + 1] and not _KEYED.match(b"".join(lines[at + 1 : end]))):
            end = at + len(words) if words else end
            blocks.append((at, at + (not words), end))
        at = end
    inside = {number for _, start, end in blocks for number in range(start, end)}
    opening, closing = {start for start, _, _ in blocks[:-1]}, {end for _, _, end in blocks[:-1]}
    out: list[bytes] = []
    for number, line in enumerate(lines):
        marks = b");(" if number in opening & closing else b"(" * (number in opening) + b")" * (number in closing)
        variables = blocks and not marks and not compose and number < blocks[-1][0]
        told = _VARIABLE.sub(rb"\2\1=\3", line) if variables else line
        if sourced and _COMPOSE.match(line):
            told = b". .env #".ljust(len(line) - 1) + b"\n"
        comment = marks + b"#" + line[len(marks) + 1 :] if line.strip() else line
        out.append(marks + line[len(marks) :] if number in inside else told if told != line else comment)
    return b"".join(out) if blocks and sum(map(len, out)) == len(data) else None
