"""JSON files: every value with its byte range, by a scanner of our own (the standard one keeps no positions)."""

from __future__ import annotations

import json
import re

from advisor.hostile import clean_line
from advisor.language import say
from advisor.script.document import Document, ScriptError
from advisor.script.keyed import Keyed, KeyedEntry, Table

_BLANK = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\.)*"')
_BARE = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|NaN|-?Infinity")
_MAX_DEPTH = 60


def read_json(document: Document) -> Keyed:
    """The values of a JSON file under dotted keys; lists of scalars are tuples. Raises ScriptError with the line."""
    reader = _JsonReader(document)
    reader.value("", 0, reader.blank(0), 0)
    if reader.blank(reader.at) < len(document.data):
        reader.fail(reader.blank(reader.at), say("text after the end of the value"))
    return reader.keyed


class _JsonReader:
    """A recursive-descent scanner; `at` is the byte behind what was read."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.data = document.data
        self.keyed = Keyed()
        self.at = 3 if self.data.startswith(b"\xef\xbb\xbf") else 0

    def fail(self, at: int, problem: str) -> None:
        line = self.document.line_of(min(at, len(self.data)))
        raise ScriptError(
            say(
                "{file}, line {line}: not valid JSON, {problem}.",
                file=clean_line(str(self.document.path)),
                line=line,
                problem=problem,
            )
        )

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
            self.add(KeyedEntry(key, text, at, self.at, "double" if byte == b'"' else "plain", name, True))

    def scalar(self, at: int) -> str:
        found = _STRING.match(self.data, at) or _BARE.match(self.data, at)
        if not found:
            self.fail(at, say("a value is missing or malformed"))
            return ""
        self.at = found.end()
        if found.group().startswith(b'"'):
            return self.string(found.group(), at)
        return found.group().decode("ascii")

    def string(self, raw: bytes, at: int) -> str:
        try:
            return str(json.loads(raw.decode("utf-8")))
        except ValueError:
            self.fail(at, say("a malformed string"))
            return ""

    def table(self, key: str, at: int, depth: int) -> None:
        start = self.at = at + 1
        end, indent, count = start, 0, 0
        while True:
            at = self.blank(self.at)
            if self.data[at : at + 1] == b"}" and not count:
                break
            found = _STRING.match(self.data, at)
            if not found:
                self.fail(at, say("a key in double quotes is missing"))
                return
            if not count:
                indent = at - (self.data.rfind(b"\n", 0, at) + 1)
            name, count = self.string(found.group(), at), count + 1
            self.at = found.end()
            colon = self.blank(self.at)
            if self.data[colon : colon + 1] != b":":
                self.fail(colon, say("a colon is missing"))
            self.at = colon + 1
            self.value(f"{key}.{name}" if key else name, at, self.blank(self.at), depth + 1)
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
            self.add(KeyedEntry(key, tuple(scalars) or "[]", opening, self.at, "list", name, True))

    def add(self, entry: KeyedEntry) -> None:
        if entry.key:
            self.keyed.entries.append(entry)
