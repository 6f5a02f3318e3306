"""Reads TOML files with the bytes of every value, and edits them: values in place, keys added to their table, or below
a header of their own at the end.
"""

from __future__ import annotations

import json
import re

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.regex import regex
from advisor.script.document import Document, EditRequest, Value, comment_text, encoded, refused
from advisor.script.keyed import Keyed, KeyedEntry, Scanner, Table, ValueStyle
from advisor.script.keyed_edit import KeyedEditor

_BLANK = regex(rb"[ \t]*")
_GAP = regex(rb"(?:[ \t\r\n]|#[^\n]*)*")
_LINE_END = regex(rb"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")
_BARE_KEY = regex(rb"[A-Za-z0-9_-]+")
_LONG = regex(
    rb'"""(?:\r?\n)?((?:[^\\"]|\\(?s:.)|"{1,2}(?!"))*"{0,2})"""'
    rb"|'''(?:\r?\n)?((?s:.)*?'{0,2})'''(?!')"
)
_BASIC = regex(rb'"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\.)*)"')
_LITERAL = regex(rb"'([^'\x00-\x08\x0a-\x1f\x7f]*)'")
_SCALAR = regex(
    rb"true|false|[+-]?(?:inf|nan)|0[xob][0-9A-Fa-f_]+"
    rb"|\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?)?|\d\d:\d\d:\d\d(?:\.\d+)?"
    rb"|[+-]?\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d[\d_]*)?"
)
_WIDE = regex(r"\\U([0-9A-Fa-f]{8})|\\x([0-9A-Fa-f]{2})|\\e")
_FOLDED = regex(r"\\[ \t]*\r?\n\s*")
_MAX_DEPTH = 60


def read_toml(document: Document) -> Keyed:
    """The values of a TOML file under dotted keys; arrays of scalars are tuples. Raises ScriptError with the line."""
    return _TomlReader(document).read()


class _TomlReader(Scanner):
    not_valid = mark("{file}, line {line}: not valid TOML, {problem}.")

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self.rows: dict[str, int] = {}
        """Array of tables → how many elements it has."""
        self.headed: set[str] = set()

    def read(self) -> Keyed:
        here, end = "", self.at
        self.keyed.tables[""] = Table("", self.at, self.at, 0, False)
        while True:
            self.at = self.match(_GAP).end()
            if self.at >= len(self.data):
                return self.keyed
            start = self.at
            if self.data[start : start + 1] == b"[":
                here = self.header()
                self.keyed.tables[here] = Table(here, start, self.at, 0, False)
            else:
                self.pair(here, 0, flow=False)
                end = self.at
                self.keyed.tables[here] = Table(here, self.keyed.tables[here].start, end, 0, False)
            found = _LINE_END.match(self.data, self.at)
            if not found:
                self.fail(self.at, say("text after the end of the value"))
            self.at = found.end()

    def match(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        found = pattern.match(self.data, self.at)
        if found is None:
            raise AssertionError(pattern)  # both patterns match nothing at all, too
        return found

    def header(self) -> str:
        """The key of `[table]` or, with the number of its element, of `[[array of tables]]`."""
        opening, double = self.at, self.data[self.at : self.at + 2] == b"[["
        self.at += 2 if double else 1
        key = ""
        parts = self.name()
        for number, part in enumerate(parts):
            key = f"{key}.{part}" if key else part
            last = number == len(parts) - 1
            if double and last:
                self.rows[key] = self.rows.get(key, -1) + 1
            if key in self.rows:
                key = f"{key}.{self.rows[key]}"
        closing = b"]]" if double else b"]"
        self.at = self.match(_BLANK).end()
        if self.data[self.at : self.at + len(closing)] != closing:
            self.fail(opening, say("a closing bracket is missing"))
        self.at += len(closing)
        if key in self.headed or self.keyed.find(key) is not None:
            self.fail(opening, say("the table {table} stands there twice", table=clean_line(key, 80)))
        self.headed.add(key)
        return key

    def name(self) -> list[str]:
        """The parts of a dotted key."""
        parts: list[str] = []
        while True:
            self.at = self.match(_BLANK).end()
            if bare := _BARE_KEY.match(self.data, self.at):
                parts.append(bare.group().decode("ascii"))
                self.at = bare.end()
            elif self.data[self.at : self.at + 1] in (b'"', b"'"):
                parts.append(self.text()[0])
            else:
                self.fail(self.at, say("a key is missing"))
            self.at = self.match(_BLANK).end()
            if self.data[self.at : self.at + 1] != b".":
                return parts
            self.at += 1

    def pair(self, below: str, depth: int, *, flow: bool) -> None:
        start = self.at
        key = ".".join([below, *self.name()] if below else self.name())
        if self.data[self.at : self.at + 1] != b"=":
            self.fail(self.at, say("an equals sign is missing"))
        self.at += 1
        self.at = self.match(_BLANK).end()
        if self.keyed.find(key) is not None or key in self.headed:
            self.fail(start, say("{key} stands there twice", key=clean_line(key, 80)))
        self.value(key, start, depth, flow)

    def value(self, key: str, name: int, depth: int, flow: bool) -> None:
        if depth > _MAX_DEPTH:
            self.fail(self.at, say("nested too deeply"))
        at, byte = self.at, self.data[self.at : self.at + 1]
        if byte == b"{":
            self.inline_table(key, depth)
        elif byte == b"[":
            self.array(key, name, depth, flow)
        else:
            text, style = self.scalar()
            self.keyed.add(KeyedEntry(key, text, at, self.at, style, name, flow))

    def scalar(self) -> tuple[str, ValueStyle]:
        if self.data[self.at : self.at + 1] in (b'"', b"'"):
            return self.text()
        found = _SCALAR.match(self.data, self.at)
        if not found or _BARE_KEY.match(self.data, found.end()):
            self.fail(self.at, say("a value is missing or malformed"))
        self.at = found.end()
        text = found.group().decode("ascii")
        return (text if "-" in text[1:5] and ":" in text else text.replace("_", "")), "plain"

    def text(self) -> tuple[str, ValueStyle]:
        """A text in any of the four kinds of quotes."""
        at = self.at
        if found := _LONG.match(self.data, at):
            style: ValueStyle = "block"
        elif self.data[at : at + 3] in (b'"""', b"'''"):
            self.fail(at, say("a malformed string"))
        elif found := _BASIC.match(self.data, at):
            style = "double"
        elif found := _LITERAL.match(self.data, at):
            style = "single"
        else:
            self.fail(at, say("a malformed string"))
        self.at = found.end()
        try:
            inner = next(group for group in found.groups() if group is not None).decode("utf-8")
            if found.group().startswith(b"'"):
                return inner, style
            plain = _FOLDED.sub("", inner) if style == "block" else inner
            plain = _WIDE.sub(lambda code: json.dumps(_character(code))[1:-1], plain)
            if style == "block":
                plain = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', plain).replace("\r", "\\r").replace("\n", "\\n")
            return str(json.loads(f'"{plain}"', strict=False)), style
        except ValueError:
            self.fail(at, say("a malformed string"))

    def inline_table(self, key: str, depth: int) -> None:
        start = self.at = self.at + 1
        end, count = start, 0
        while True:
            self.at = self.match(_GAP).end()
            if self.data[self.at : self.at + 1] == b"}":
                break
            if count and self.data[self.at : self.at + 1] != b",":
                self.fail(self.at, say("a closing brace is missing"))
            if count:
                self.at += 1
                self.at = self.match(_GAP).end()
                if self.data[self.at : self.at + 1] == b"}":  # TOML 1.1 allows a last comma
                    break
            self.pair(key, depth + 1, flow=True)
            end, count = self.at, count + 1
        self.keyed.tables.setdefault(key, Table(key, start, end, 0, True, not count, self.at))
        self.at += 1

    def array(self, key: str, name: int, depth: int, flow: bool) -> None:
        opening, self.at = self.at, self.at + 1
        scalars: list[str] = []
        number, plain = 0, True
        while True:
            self.at = self.match(_GAP).end()
            if self.data[self.at : self.at + 1] == b"]":
                break
            if self.data[self.at : self.at + 1] in (b"{", b"["):
                plain = False
                self.value(f"{key}.{number}", name, depth + 1, True)
            else:
                scalars.append(self.scalar()[0])
            number += 1
            self.at = self.match(_GAP).end()
            if self.data[self.at : self.at + 1] == b",":
                self.at += 1
            elif self.data[self.at : self.at + 1] != b"]":
                self.fail(self.at, say("a closing bracket is missing"))
        self.at += 1
        if plain:
            self.keyed.add(KeyedEntry(key, tuple(scalars) or "[]", opening, self.at, "list", name, flow))


def _character(code: re.Match[str]) -> str:
    digits = code.group(1) or code.group(2)
    return chr(int(digits, 16)) if digits else "\x1b"


_BARE = regex(r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z|true\Z|false\Z")
_TRUTH = {"True": "true", "False": "false"}
_IS_BARE_KEY = regex(r"[A-Za-z0-9_-]+\Z")


class TomlEditor(KeyedEditor):
    def text(self, value: Value, style: str, flow: bool) -> str:
        """A value in TOML's syntax, in the quotes that the old one had."""
        if isinstance(value, tuple):
            return "[" + ", ".join(self.text(item, "plain", True) for item in value) + "]"
        shown = _TRUTH.get(value, value)
        if style not in ("double", "single") and _BARE.match(shown):
            return shown
        if style == "single" and "'" not in value and value.isprintable():
            return f"'{value}'"
        quoted = json.dumps(value, ensure_ascii=False)
        return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in quoted)

    def add(self, key: str, wanted: EditRequest, value: Value) -> None:
        """A new key in its own table; without one, below a new header at the end of the file."""
        folder, _, name = key.rpartition(".")
        table = self.keyed.tables.get(folder)
        if any(part.isdigit() for part in key.split(".")) and table is None:
            raise refused("{key} is an element that the file does not have.", wanted.key)
        parts = folder.split(".") if folder else []
        above = [".".join(parts[: depth + 1]) for depth in range(len(parts))]
        if any(self.keyed.find(part) for part in above):
            raise refused("A part of {key} is already a plain value or a list.", wanted.key)
        if table is not None:
            self.insert(table, [name], wanted, value)
            return
        inline = any(part in self.keyed.tables and self.keyed.tables[part].flow for part in above)
        dotted = any(e.key.startswith(f"{folder}.") and not self._under_header(e.key) for e in self.keyed.entries)
        if inline or dotted:
            raise refused("{file} has no table that {key} could stand in.", key, file=self.document.path)
        header = ".".join(map(_label, parts))
        self._append(f"[{header}]", f"{_label(name)} = ", value, wanted)

    def _under_header(self, key: str) -> bool:
        """Whether the table that a key is in has a header of its own."""
        return key.rpartition(".")[0] in self.keyed.tables

    def insert(self, table: Table, names: list[str], wanted: EditRequest, value: Value) -> None:
        """A line behind the table's last one; between braces, behind the last entry."""
        shown = self.text(value, "plain", table.flow)
        label = f"{_label(names[-1])} = "
        if table.flow:
            new = encoded(("" if table.empty else ", ") + label + shown)
            at = table.closer if table.empty else table.end
            self.changes.replace(self.number, at, at, new, wanted.key, (len(new) - len(encoded(shown)), len(new)))
            return
        newline = self.document.newline
        comment = b"# " + comment_text(wanted.comment) + newline if wanted.comment else b""
        line = comment + encoded(label + shown)
        at = self.data.find(b"\n", table.end)
        if not table.key and table.end == table.start:  # the root has no key yet: before the first header
            at, line = table.start, line + newline
        elif at < 0:
            at, line = len(self.data), newline + line
        else:
            at, line = at + 1, line + newline
        end = line.rindex(encoded(shown)) + len(encoded(shown))
        self.changes.replace(self.number, at, at, line, wanted.key, (end - len(encoded(shown)), end))

    def _append(self, header: str, label: str, value: Value, wanted: EditRequest) -> None:
        newline = self.document.newline
        shown = encoded(self.text(value, "plain", False))
        comment = b"# " + comment_text(wanted.comment) + newline if wanted.comment else b""
        lead = newline if self.data.endswith(b"\n") else newline * 2
        new = lead + encoded(header) + newline + comment + encoded(label) + shown + newline
        end = len(new) - len(newline)
        self.changes.replace(self.number, len(self.data), len(self.data), new, wanted.key, (end - len(shown), end))


def _label(name: str) -> str:
    return name if _IS_BARE_KEY.match(name) else json.dumps(name, ensure_ascii=False)
