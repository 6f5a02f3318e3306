"""Lays the shell text of other files bare: what a task of SkyPilot's runs, or a manifest of Kubernetes', and what a
Python file starts."""

from __future__ import annotations

import ast
import re
from itertools import pairwise, takewhile
from pathlib import Path

from advisor.bash.text import line_starts
from advisor.regex import regex
from advisor.script.files import is_file

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


def shell_in(path: Path, data: bytes) -> bytes | None:
    """`shell_of` a file whose name says YAML, or Python's; None of any other, and beside a `.env` file, from which
    Docker Compose fills the variables of its commands, that no shell reads as it does."""
    if path.suffix == ".py":
        return shell_of_python(data)
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


_TEXT = regex(rb"(?s)([rR]?)(\"\"\"|'''|[\"'])(.*)\2")
_ESCAPE = regex(rb"(?s)\\\\\\n|\\\n|(?<=[\s=])\\(['\"])([^'\"\\]*)\\\1(?=[\s\\]|\Z)|\\.")
_SPELT = {rb"\\\n": b"  \\\n", b"\\\n": b"\\\n", rb"\n": b" \n", rb"\t": b"  "}
_FILLED = regex(rb"\{[^{}\"'\\]*\}")


def shell_of_python(data: bytes) -> bytes | None:
    """The commands that a Python file starts, every byte in its place, and blanks for all else; None where it starts
    none that can be read."""
    from advisor.script.python_commands import started
    from advisor.script.python_file import parsed

    try:
        tree, starts = parsed(data), line_starts(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    out = bytearray(re.sub(rb"[^\n]", b" ", data))
    for node in started(tree):
        words = node.elts if isinstance(node, ast.List) else [node]
        spans = [
            slice(
                starts[one.lineno - 1] + one.col_offset, starts[(one.end_lineno or 1) - 1] + (one.end_col_offset or 0)
            )
            for one in words
        ]
        texts = [(_word if isinstance(node, ast.List) else _spoken)(data[span]) for span in spans]
        if all(texts):
            whole = slice(spans[0].start, spans[-1].stop)
            out[whole] = out[whole].replace(b"\n", b" ")
            for text, span in zip(texts, spans, strict=True):
                out[span] = text
    return bytes(out) if out.strip() and len(out) == len(data) else None


def _spoken(raw: bytes) -> bytes:
    """A literal of Python's as the shell text that it is; b"" where its signs cannot stand in their places."""
    found = _TEXT.fullmatch(raw)
    if found is None or found[2] in re.sub(rb"(?s)\\.", b"", found[3]):  # two literals, one behind the other
        return b""
    body = found[3] if found[1] else _ESCAPE.sub(_in_place, found[3])
    return b" " * found.start(3) + body + b" " * len(found[2]) if b"\0" not in body else b""


def _in_place(found: re.Match[bytes]) -> bytes:
    return b" %b%b%b " % (found[1], found[2], found[1]) if found[1] else _SPELT.get(found[0], b"\0")


def _word(raw: bytes) -> bytes:
    """An element of a list as one word of a command: what is not known as a variable that nobody sets."""
    text = raw
    if raw[:2] in (b'f"', b"f'"):
        text = b" " + _FILLED.sub(lambda one: b"$" + re.sub(rb"\W", b"_", one[0][1:]), raw[1:].replace(b"'", b'"'))
    if re.fullmatch(rb"\"[^\"\\`!$]*\"|'[^'\\]*'| \"[^\"\\`!{}]*\"", text):
        return text
    if len(raw) < 5:
        return b"$" + raw[1:] if re.fullmatch(rb"\w\w+", raw) else b""
    return b'"$_' + re.sub(rb"\W", b"_", raw[3:-1]) + b'"'
