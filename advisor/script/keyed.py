"""Reads YAML and JSON files to the byte: values with a dotted key and a byte range, and the tables that hold them.

JSON by a scanner of our own, because the standard one keeps no positions; of YAML nodes are composed, never
constructed, so no tag runs anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from msgspec import Struct, field

from advisor.bash.text import line_at, line_starts
from advisor.bounded_yaml import UnboundedYamlError, check_bounds
from advisor.hostile import clean, clean_line
from advisor.language import mark, say
from advisor.regex import regex
from advisor.script.document import Document, Origin, ScriptError, Setting, Span, Value

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode


ValueStyle = Literal["plain", "single", "double", "block", "list", "empty"]

EMPTY = "{}"
"""The value of a table without a key."""
_LONGEST = 100_000
"""Characters of a value."""
_MOST_NAMED = 50
"""Keys that are named as sharing a value; an alias can be used any number of times."""


def read_keyed(document: Document) -> Keyed:
    """A YAML, JSON or TOML document to the byte. Raises ScriptError."""
    if document.kind == "toml":
        from advisor.script.toml_file import read_toml  # few launches have one

        return read_toml(document)
    return read_json(document) if document.kind == "json" else read_yaml(document)


class KeyedEntry(Struct, frozen=True):
    """A value at bytes `start:end` under a dotted `key`, whose own name stands at `name`. Quotes belong to the range.
    `flow`: it stands in braces or brackets, where commas end it."""

    key: str
    value: Value
    start: int
    end: int
    style: ValueStyle
    name: int
    flow: bool = False
    merged: bool = False
    """It comes in by YAML's `<<`."""


class Table(Struct, frozen=True):
    """A mapping: where its keys stand, and where its last entry ends."""

    key: str
    start: int
    end: int
    indent: int
    flow: bool
    empty: bool = False
    closer: int = 0
    """Byte of the closing brace of a flow mapping."""

    def has(self, entry: KeyedEntry) -> bool:
        """Whether an entry is written in this very table, not merged into it (`<<`)."""
        return not entry.merged and self.start <= entry.name <= self.closer


class Keyed(Struct):
    """A config file read to the byte."""

    entries: list[KeyedEntry] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    documents: int = 1
    """How many of YAML's documents (`---`) the file holds."""

    def add(self, entry: KeyedEntry) -> None:
        """Note a value; the whole document has no key."""
        if entry.key:
            self.entries.append(entry)

    def forget(self, key: str) -> None:
        """What stood below a key that stands there again: of two mappings a loader keeps the last one, whole."""
        self.entries = [entry for entry in self.entries if not entry.key.startswith(f"{key}.")]
        self.tables = {k: table for k, table in self.tables.items() if k != key and not k.startswith(f"{key}.")}

    def find(self, key: str) -> KeyedEntry | None:
        """The entry in force for a key: the last one."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)

    def below(self, key: str) -> str:
        """The first keys below a mapping or a list, separated by commas; "" where the key is none."""
        return ", ".join([entry.key for entry in self.entries if entry.key.startswith(f"{key}.")][:3])


def empty_tables(keyed: Keyed) -> list[KeyedEntry]:
    """Tables without a key, as values: where a table alone switches something on, it is a setting."""
    held = {entry.key.rpartition(".")[0] for entry in keyed.entries} | {key.rpartition(".")[0] for key in keyed.tables}
    alone = (table for key, table in keyed.tables.items() if key and key not in held)
    return [KeyedEntry(one.key, EMPTY, one.start, one.end, "plain", one.start, True) for one in alone]


def settings_of(
    document: Document, entries: Iterable[KeyedEntry], origin: Origin = "file", prefix: str = ""
) -> list[Setting]:
    """Entries as settings; a repeated key is in force where it stands last."""
    listed = list(entries)
    starts = line_starts(document.data)
    sharing: dict[tuple[int, int], list[str]] = {}
    last: dict[str, int] = {}
    for number, entry in enumerate(listed):
        sharing.setdefault((entry.start, entry.end), []).append(prefix + entry.key)
        last[entry.key] = number
    out: list[Setting] = []
    for number, entry in enumerate(listed):
        key = prefix + entry.key
        others = tuple(clean(other) for other in sharing[entry.start, entry.end][:_MOST_NAMED] if other != key)
        span = Span(str(document.path), line_at(starts, entry.start), entry.start, entry.end)
        effective = last[entry.key] == number
        out.append(Setting(clean(key), clean_value(entry.value), origin, True, effective, span, shared_with=others))
    return out


def clean_value(value: Value) -> Value:
    return clean(value, _LONGEST) if isinstance(value, str) else tuple(clean(text, _LONGEST) for text in value)


_BLANK = regex(rb"[ \t\r\n]*")
_STRING = regex(rb'"(?:[^"\\\x00-\x1f]|\\.)*"')
_BARE = regex(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|NaN|-?Infinity")
_MAX_DEPTH = 60


def read_json(document: Document) -> Keyed:
    """The values of a JSON file under dotted keys; lists of scalars are tuples. Raises ScriptError with the line."""
    reader = _JsonReader(document)
    reader.value("", 0, reader.blank(0), 0)
    if reader.blank(reader.at) < len(document.data):
        reader.fail(reader.blank(reader.at), say("text after the end of the value"))
    return reader.keyed


def read_json_part(document: Document, at: int) -> tuple[Keyed, int]:
    """The values of the object that opens at byte `at`, as far as it is well-formed, and where that ends."""
    reader = _JsonReader(document)
    with suppress(ScriptError):  # what stands before the mistake is read
        reader.value("", at, at, 0)
    return reader.keyed, max(reader.at, at + 1)


class Scanner:
    """A recursive-descent scanner; `at` is the byte behind what was read."""

    not_valid = mark("{file}, line {line}: not valid JSON, {problem}.")

    def __init__(self, document: Document) -> None:
        self.document = document
        self.data = document.data
        self.keyed = Keyed()
        self.at = 3 if self.data.startswith(b"\xef\xbb\xbf") else 0

    def fail(self, at: int, problem: str) -> NoReturn:
        where = {"file": clean_line(str(self.document.path)), "line": self.document.line_of(min(at, len(self.data)))}
        raise ScriptError(say(self.not_valid, **where, problem=problem))


class _JsonReader(Scanner):
    def blank(self, at: int) -> int:
        found = _BLANK.match(self.data, max(at, self.at))
        return found.end() if found else at

    def value(self, key: str, name: int, at: int, depth: int) -> None:
        """Read the value at byte `at`, noting what stands below `key`."""
        if depth > _MAX_DEPTH:
            self.fail(at, say("nested too deeply"))
        byte = self.data[at : at + 1]
        if byte == b"{":
            self.table(key, at, depth)
        elif byte == b"[":
            self.list(key, name, at, depth)
        else:
            text = self.scalar(at)
            self.keyed.add(KeyedEntry(key, text, at, self.at, "double" if byte == b'"' else "plain", name, True))

    def scalar(self, at: int) -> str:
        found = _STRING.match(self.data, at) or _BARE.match(self.data, at)
        if not found:
            self.fail(at, say("a value is missing or malformed"))
        self.at = found.end()
        if found.group().startswith(b'"'):
            return self.string(found.group(), at)
        return found.group().decode("ascii")

    def string(self, raw: bytes, at: int) -> str:
        try:
            return str(json.loads(raw.decode("utf-8")))
        except ValueError:
            self.fail(at, say("a malformed string"))

    def table(self, key: str, at: int, depth: int) -> None:
        start = self.at = at + 1
        end, indent, count = start, 0, 0
        names: set[str] = set()
        while True:
            at = self.blank(self.at)
            if self.data[at : at + 1] == b"}" and not count:
                break
            found = _STRING.match(self.data, at)
            if not found:
                self.fail(at, say("a key in double quotes is missing"))
            if not count:
                indent = at - (self.data.rfind(b"\n", 0, at) + 1)
            name, count = self.string(found.group(), at), count + 1
            self.at = found.end()
            colon = self.blank(self.at)
            if self.data[colon : colon + 1] != b":":
                self.fail(colon, say("a colon is missing"))
            self.at = colon + 1
            below = f"{key}.{name}" if key else name
            if name in names:
                self.keyed.forget(below)
            names.add(name)
            self.value(below, at, self.blank(self.at), depth + 1)
            end = self.at
            at = self.blank(self.at)
            if self.data[at : at + 1] != b",":
                break
            self.at = at + 1
        if self.data[at : at + 1] != b"}":
            self.fail(at, say("a closing brace is missing"))
        self.keyed.tables.setdefault(key, Table(key, start, end, indent, True, not count, at))
        self.at = at + 1

    def list(self, key: str, name: int, at: int, depth: int) -> None:
        opening, self.at = at, at + 1
        scalars: list[str] = []
        plain, number = True, 0
        while True:
            at = self.blank(self.at)
            if self.data[at : at + 1] == b"]" and not number:
                break
            if self.data[at : at + 1] in (b"{", b"["):
                plain = False
                self.value(f"{key}.{number}", name, at, depth + 1)
            else:
                scalars.append(self.scalar(at))
            number += 1
            at = self.blank(self.at)
            if self.data[at : at + 1] != b",":
                break
            self.at = at + 1
        if self.data[at : at + 1] != b"]":
            self.fail(at, say("a closing bracket is missing"))
        self.at = at + 1
        if plain:
            self.keyed.add(KeyedEntry(key, tuple(scalars) or "[]", opening, self.at, "list", name, True))


_STYLES: dict[str | None, ValueStyle] = {"'": "single", '"': "double", "|": "block", ">": "block"}
_BOM = b"\xef\xbb\xbf"


def read_yaml(document: Document) -> Keyed:
    """The scalars of a YAML file under dotted keys; lists of scalars are tuples. Raises ScriptError with the line of a
    syntax error (tabs among them)."""
    return _yaml_read(clean_line(str(document.path)), document.data)


@lru_cache(maxsize=16)
def _yaml_read(name: str, data: bytes) -> Keyed:
    """A plan reads the file that it does not change once more for each step; nobody adds to what was read."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    body = data.removeprefix(_BOM)
    try:
        text = body.decode("utf-8")
        check_bounds(text)
        nodes = [node for node in yaml.compose_all(text, Loader=loader) if node is not None]
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise ScriptError(say("{file}, line {line}: not UTF-8 text.", file=name, line=line)) from error
    except yaml.YAMLError as error:
        raise ScriptError(_sentence(name, data, error)) from error
    except UnboundedYamlError as error:
        where = {"file": name, "line": error.line}
        raise ScriptError(say("{file}, line {line}: {problem}.", **where, problem=error.reason)) from error
    reader = _YamlReader(name, data, text, len(data) - len(body))
    reader.keyed.documents = len(nodes)
    for node in nodes:
        reader.node("", node, node, 0)
    return reader.keyed


def _sentence(name: str, data: bytes, error: Any) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    context, problem = (getattr(error, name, None) or "" for name in ("context", "problem"))
    if context and not context.startswith("while "):  # of an anchor's second place the problem says only that it is one
        problem = context.partition(";")[0]
    problem = clean_line(problem, 200) or say("it cannot be parsed")
    if mark is None:
        return say("{file}: {problem}.", file=name, problem=problem)
    lines = data.split(b"\n")
    line = lines[mark.line] if mark.line < len(lines) else b""
    if b"\t" in line[: len(line) - len(line.lstrip())]:
        problem = say("a tab is used for indentation, which YAML does not allow")
    return say("{file}, line {line}: {problem}.", file=name, line=mark.line + 1, problem=problem)


def _merges(name: Node) -> bool:
    """Whether a key is YAML's `<<`, which in quotes is a name as any other."""
    return name.tag == "tag:yaml.org,2002:merge"


class _YamlReader:
    """Walks nodes and notes byte ranges."""

    def __init__(self, name: str, data: bytes, text: str, shift: int) -> None:
        self.data = data
        self.shift = shift
        self.name = name
        self.keyed = Keyed()
        self.merging = 0
        self.offsets: list[int] | None = None
        if not text.isascii():
            self.offsets = [0, *accumulate(len(character.encode("utf-8")) for character in text)]

    def at(self, index: int) -> int:
        """Byte offset of a character index."""
        return self.shift + (index if self.offsets is None else self.offsets[min(index, len(self.offsets) - 1)])

    def node(self, key: str, node: Node, name: Node, depth: int, flow: bool = False) -> int:
        """Note everything below a node; returns the byte where its content ends."""
        kind = type(node).__name__
        if kind == "MappingNode":
            return self.mapping(key, cast("MappingNode", node), depth, flow)
        if kind == "SequenceNode":
            return self.sequence(key, cast("SequenceNode", node), name, depth, flow)
        return self.scalar(key, cast("ScalarNode", node), name, flow)

    def mapping(self, key: str, node: MappingNode, depth: int, flow: bool) -> int:
        inside = flow or bool(node.flow_style)
        end = start = self.at(node.start_mark.index)
        stood = key in self.keyed.tables  # what is merged into this one is no place for its keys
        names: set[str] = set()
        for name, value in sorted(node.value, key=lambda pair: not _merges(pair[0])):  # what stands here itself wins
            if name.id != "scalar":
                continue
            merged = [value] if _merges(name) else []
            if merged and type(value).__name__ == "SequenceNode":
                merged = [*reversed(value.value)]  # of several the first wins
            below = f"{key}.{name.value}" if key else name.value
            if name.value in names and not merged:
                self.keyed.forget(below)
            names.add(name.value)
            self.merging += bool(merged)
            for each in merged or [value]:
                end = max(end, self.node(key if merged else below, each, name, depth + 1, inside))
            self.merging -= bool(merged)
            end = max(end, self.at(name.end_mark.index))
        closer = self.at(node.end_mark.index) - 1
        if not stood:
            column = node.value[0][0].start_mark.column if node.value else node.start_mark.column
            self.keyed.tables[key] = Table(key, start, end, column, inside, not node.value, closer)
        return closer + 1 if node.flow_style else end

    def sequence(self, key: str, node: SequenceNode, name: Node, depth: int, flow: bool) -> int:
        start, end = self.at(node.start_mark.index), self.at(node.end_mark.index)
        if all(item.id == "scalar" for item in node.value):
            if not node.flow_style and node.value:
                end = max(self.at(item.end_mark.index) for item in node.value)
            values = tuple(item.value for item in node.value)
            own = self.at(name.start_mark.index)
            self.keyed.add(KeyedEntry(key, values or "[]", start, end, "list", own, flow, self.merging > 0))
            return end
        last = start
        for number, item in enumerate(node.value):
            last = max(last, self.node(f"{key}.{number}", item, name, depth + 1, flow or bool(node.flow_style)))
        return end if node.flow_style else last

    def scalar(self, key: str, node: ScalarNode, name: Node, flow: bool) -> int:
        start, end = self.at(node.start_mark.index), self.at(node.end_mark.index)
        style: ValueStyle = _STYLES.get(node.style, "plain")
        value = node.value
        if style == "plain" and not value:
            style, value = "empty", "null"
            start = end = self.at(name.end_mark.index)
            colon = self.data.find(b":", start)
            start = end = colon + 1 if colon >= 0 else end
        own = self.at(name.start_mark.index)
        self.keyed.add(KeyedEntry(key, value, start, end, style, own, flow, self.merging > 0))
        return end
