"""Edits TOML files: values in place, keys added to their table, or below a header of their own at the end."""

from __future__ import annotations

import json

from advisor.regex import regex
from advisor.script.document import EditRequest, Value, comment_text, encoded, refused
from advisor.script.keyed import Table
from advisor.script.keyed_edit import KeyedEditor

_BARE = regex(r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z|true\Z|false\Z")
_TRUTH = {"True": "true", "False": "false"}
_BARE_KEY = regex(r"[A-Za-z0-9_-]+\Z")


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
    return name if _BARE_KEY.match(name) else json.dumps(name, ensure_ascii=False)
