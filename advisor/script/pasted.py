"""Reads settings out of a text that is no well-formed file: YAML or JSON without head or end, assignments, sentences.

Each line is looked at by itself, so nothing that stands around a setting hides it.
"""

from __future__ import annotations

import re

from msgspec import Struct

from advisor.regex import regex
from advisor.script.document import Document, Setting
from advisor.script.keyed import KeyedEntry, read_json_part, settings_of
from advisor.script.launcher import find_launcher
from advisor.script.sentences import named_in_sentences

_LINE = regex(rb"[^\n]*\n?")
_LEAD = rb"[ \t>]*(?:(?:[-*+]|\d{1,2}[.)])[ \t]+)?"
"""What stands before a line that is quoted, or an item of a list."""
_KEYED = regex(rb"(" + _LEAD + rb")[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*:(?:[ \t]+|(?=\r?\n|\Z))([^\n]*)")
_VALUE = regex(rb"(\"[^\"\n]*\"|'[^'\n]*'|\[[^\]\n]*\]|[^\s#,;{}\"'`]+),?[ \t]*(?:#[^\n]*)?\r?\n?\Z")
_NO_VALUE = regex(rb"[ \t]*(?:#[^\n]*)?\r?\n?\Z")
_ASSIGNED = regex(
    rb"(" + _LEAD + rb")(?:export[ \t]+)?`?([A-Za-z_][\w.]*)([ \t]*)={1,2}[ \t]*"
    rb"(\"[^\"$`\n]*\"|'[^'\n]*'|[^\s,;#$`()'\"=]+)`?[ \t]*,?[ \t\\]*(?:#[^\n]*)?\r?\n?\Z"
)
_LITERAL = regex(rb"-?[\d.]+(?:e[-+]?\d+)?|true|false|none|null|\"[^\n]*\"|'[^\n]*'", re.IGNORECASE)
_OBJECT = regex(rb"\{\s*\"[^\"\n]+\"\s*:")
FEWEST = 2
"""Settings that make a text one of settings."""


class _Found(Struct):
    """What is read so far: entries, and the bytes that are spoken for."""

    entries: list[KeyedEntry]
    taken: list[tuple[int, int]]

    def is_free(self, at: int) -> bool:
        return not any(start <= at < end for start, end in self.taken)


def pasted_settings(document: Document) -> tuple[Setting, ...]:
    """Every setting that the text names with its value; of a key that stands twice the first is in force.

    Assignments of a text that runs something are its own variables, and no settings.
    """
    found = _Found([], [])
    _objects(document, found)
    _keyed_lines(document.data, found)
    if not _runs(document.data):
        _assignments(document.data, found)
        _in_sentences(document.data, found)
    first: dict[str, KeyedEntry] = {}
    for entry in found.entries:
        first.setdefault(entry.key, entry)
    return tuple(settings_of(document, sorted(first.values(), key=lambda entry: entry.start)))


def keyed_lines(document: Document) -> list[Setting]:
    """The lines `key: value` of a text that also runs something: a config that was pasted behind its command."""
    found = _Found([], [])
    _keyed_lines(document.data, found)
    return settings_of(document, found.entries)


def _runs(data: bytes) -> bool:
    """Whether a line is a command that runs something."""
    lines = (line.split() for line in data.decode("utf-8", "replace").splitlines())
    return any(find_launcher(words) is not None for words in lines if words)


def _objects(document: Document, found: _Found) -> None:
    """JSON objects, as far as they go."""
    for opening in _OBJECT.finditer(document.data):
        if found.is_free(opening.start()):
            keyed, end = read_json_part(document, opening.start())
            found.entries += keyed.entries
            found.taken.append((opening.start(), end))


class _KeyedLine(Struct, frozen=True):
    """A line `key: value`; `value` None: a head."""

    at: int
    indent: int
    name: str
    value: tuple[int, int] | None


def _keyed_lines(data: bytes, found: _Found) -> None:
    """Lines `key: value` that stand together, under the heads that they are indented below."""
    block: list[_KeyedLine] = []
    for line in _LINE.finditer(data):
        if not line.group().strip() or line.group().lstrip(b" \t>").startswith(b"#"):
            continue
        one = _keyed_line(line) if found.is_free(line.start()) else None
        if one is None:
            _take(block, data, found)
            block = []
        else:
            block.append(one)
    _take(block, data, found)


def _keyed_line(line: re.Match[bytes]) -> _KeyedLine | None:
    named = _KEYED.match(line.group())
    if named is None:
        return None
    lead, name, text = named.groups()
    indent = len(lead.expandtabs()) if not lead.strip(b" \t>") else 0
    key = name.decode("utf-8", "replace")
    if _NO_VALUE.match(text):
        return _KeyedLine(line.start(), indent, key, None)
    value = _VALUE.match(text)
    if value is None:
        return None
    start = line.start() + named.start(3)
    return _KeyedLine(line.start(), indent, key, (start, start + len(value.group(1))))


def _take(block: list[_KeyedLine], data: bytes, found: _Found) -> None:
    """The settings of a block; none of one whose names are those of prose ("Platform: Linux")."""
    if not any("_" in one.name for one in block):
        return
    heads: list[tuple[int, str]] = []
    for one in block:
        while heads and heads[-1][0] >= one.indent:
            heads.pop()
        if one.value is None:
            heads.append((one.indent, one.name))
            continue
        key = ".".join((*(name for _, name in heads), one.name))
        found.entries.append(_entry(key, data, *one.value))
        found.taken.append((one.at, one.value[1]))


def _entry(key: str, data: bytes, start: int, end: int) -> KeyedEntry:
    text = data[start:end].decode("utf-8", "replace")
    return KeyedEntry(key, text.strip("'\""), start, end, "plain", start)


def _assignments(data: bytes, found: _Found) -> None:
    """Lines `name = value`: arguments of a call, or variables of a script; names in small letters."""
    for line in _LINE.finditer(data):
        named = _ASSIGNED.match(line.group()) if found.is_free(line.start()) else None
        if named is None or (named.group(3) and not _LITERAL.fullmatch(named.group(4))):
            continue
        start, end = (line.start() + at for at in named.span(4))
        found.entries.append(_entry(named.group(2).decode("utf-8", "replace").lower(), data, start, end))
        found.taken.append((line.start(), line.end()))


def _in_sentences(data: bytes, found: _Found) -> None:
    """Settings amid other words, outside of what is read already."""
    for line in _LINE.finditer(data):
        if found.is_free(line.start()):
            at = line.start()
            named = named_in_sentences(line.group())
            found.entries += [_entry(one.key, data, at + one.start, at + one.end) for one in named]
