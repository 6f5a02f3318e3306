"""Edits YAML and JSON files: values in place, keys added below their table, keys taken away."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from advisor.bounded_yaml import UnboundedYamlError, check_bounds
from advisor.hostile import clean_line
from advisor.language import listed
from advisor.regex import regex
from advisor.script.document import Changes, Document, EditRequest, Value, comment_text, encoded, refused
from advisor.script.keyed import Keyed, KeyedEntry, Table

_JSON_BARE = regex(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?\Z|true\Z|false\Z|null\Z")
_LABEL = regex(rb"""(?:"(?:[^"\\]|\\.)*"|'[^'\n]*'|[\w.-]+)\s*:\s*""")
_ELEMENT = regex(r"\[(\d+)\]")
_NUMBER = regex(r"([-+]?(?:\d+\.?\d*|\.\d+))(?:[eE]([-+]?)(\d{1,3}))?\Z")
_TRUTH = {"True": "true", "False": "false", "None": "null"}


class KeyedEditor:
    def __init__(self, keyed: Keyed, document: Document, number: int, changes: Changes, prefix: str = "") -> None:
        self.keyed = keyed
        self.document = document
        self.data = document.data
        self.number = number
        self.changes = changes
        self.prefix = prefix
        self.taken: list[KeyedEntry] = []

    def settings(self, wanted: Sequence[EditRequest]) -> None:
        """Set, add or remove keys; neighbours between braces are taken away together, with the commas they share."""
        if wanted:
            refuse_unclear(self.keyed, self.document, [item.key.removeprefix(self.prefix) for item in wanted])
        for item in wanted:
            self.setting(item)
        run: list[KeyedEntry] = []
        for entry in sorted(self.taken, key=lambda entry: entry.name):
            if run and self.data[run[-1].end : entry.name].strip() != b",":
                self.remove_run(run)
                run = []
            run.append(entry)
        if run:
            self.remove_run(run)

    def setting(self, wanted: EditRequest) -> None:
        key = wanted.key.removeprefix(self.prefix)
        entry = self.keyed.find(key)
        if wanted.value is not None and entry is None and (inside := self.keyed.below(key)):
            raise refused(
                "{key} holds further settings ({inside}): set one of them.", wanted.key, inside=clean_line(inside, 200)
            )
        if wanted.value is None:
            if entry is not None:
                self.remove(entry, wanted)
        elif entry is None:
            self.add(key, wanted, wanted.value)
        elif entry.value != wanted.value:
            self.change(entry, wanted, wanted.value)

    def change(self, entry: KeyedEntry, wanted: EditRequest, value: Value) -> None:
        name = wanted.key
        sharing = [other.key for other in self.keyed.entries if other.start == entry.start and other.key != entry.key]
        table = self.keyed.tables.get(entry.key.rpartition(".")[0])
        several = sum(other.key == entry.key for other in self.keyed.entries if other.merged) > 1
        if (sharing or several) and table is not None and not table.has(entry):
            self.add(entry.key, wanted, value)  # merged in (<<), PyYAML 6.0.4 otherwise than 6.0.3: its own key wins
            return
        if sharing and entry.start != entry.end:
            raise refused(
                "{key} is an alias that also sets {others}.", name, others=clean_line(", ".join(sharing), 200)
            )
        if entry.style == "block":
            self.change_block(entry, wanted, value)
            return
        if self.data[entry.start : entry.end].startswith(b"!"):
            raise refused("{key} has a type of its own (!…); edit it by hand.", name)
        if entry.style == "list" and self.longer(entry, wanted, value):
            return
        if entry.style == "list" and b"#" in self.data[entry.start : entry.end] and not self.is_json:
            raise refused("{key} is a list with comments in it; edit it by hand.", name)
        old = self.data[entry.start : entry.end].decode("utf-8", "replace") if entry.style == "plain" else ""
        in_yaml = self.document.kind == "yaml"  # JSON has one reading of a number
        value, quoted = _as_it_stood(value, old) if in_yaml and old and isinstance(value, str) else (value, False)
        new = encoded(self.text(value, "double" if quoted else entry.style, entry.flow))
        lead = b" " if entry.style == "empty" else b""
        value_range = (len(lead), len(lead) + len(new))
        self.changes.replace(self.number, entry.start, entry.end, lead + new, wanted.key, value_range)
        self.comment(wanted, entry.start, entry.end)

    def longer(self, entry: KeyedEntry, wanted: EditRequest, value: Value) -> bool:
        """New items behind those of a list that has each on a line of its own; False where that is not all there is."""
        own, count = self.data[entry.start : entry.end].rstrip(), len(entry.value)
        if not own.startswith(b"-") or not isinstance(value, tuple) or entry.value != value[:count]:
            return False
        head = self.document.newline + b" " * (entry.start - self.data.rfind(b"\n", 0, entry.start) - 1) + b"- "
        new = b"".join(head + encoded(self.text(item, "plain", False)) for item in value[count:])
        at = entry.start + len(own)
        self.changes.replace(self.number, at, at, new, wanted.key, (len(head), len(new)))
        self.comment(wanted, at, at)
        return True

    def change_block(self, entry: KeyedEntry, wanted: EditRequest, value: Value) -> None:
        """A text of several lines: it stays one where the new text has lines, else it becomes a plain value."""
        old = self.data[entry.start : entry.end].rstrip()
        first = old.find(b"\n") + 1
        indent = len(old[first:]) - len(old[first:].lstrip(b" ")) if first else 0
        shown = _block(value, indent) if isinstance(value, str) and indent else None
        new = encoded(self.text(value, "plain", entry.flow) if shown is None else shown)
        if b"\r\n" in old:
            new = new.replace(b"\n", b"\r\n")
        self.changes.replace(self.number, entry.start, entry.start + len(old), new, wanted.key)
        self.comment(wanted, entry.start, entry.start + len(old))

    @property
    def is_json(self) -> bool:
        return self.document.kind == "json"

    def text(self, value: Value, style: str, flow: bool) -> str:
        """A value in the file's own syntax, in the quotes that the old one had."""
        if isinstance(value, tuple):
            return "[" + ", ".join(self.text(item, "plain", True) for item in value) + "]"
        if self.is_json:
            shown = _TRUTH.get(value, value)
            return shown if style != "double" and _JSON_BARE.match(shown) else json.dumps(value, ensure_ascii=False)
        if style == "single" and "\n" not in value and value.isprintable():
            return "'" + value.replace("'", "''") + "'"
        if style != "double" and _plain_yaml(value, flow):
            return value
        shown = json.dumps(value, ensure_ascii=False)  # in double quotes, what is not plainly visible escaped
        return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in shown)

    def add(self, key: str, wanted: EditRequest, value: Value) -> None:
        """A new key below the deepest table that exists on its way."""
        dotted = _ELEMENT.sub(r".\1", key)
        if dotted != key and (self.keyed.find(dotted) or self.keyed.below(dotted)):
            raise refused("{key} is called {dotted}.", wanted.key, dotted=dotted)
        if dotted != key:
            raise refused("{key} is an element that the file does not have.", wanted.key)
        parts = key.split(".")
        for depth in range(len(parts) - 1, -1, -1):
            table = self.keyed.tables.get(".".join(parts[:depth]))
            if table is not None:
                self.insert(table, parts[depth:], wanted, value)
                return
        raise refused("{file} has no table that {key} could stand in.", key, file=self.document.path)

    def insert(self, table: Table, names: list[str], wanted: EditRequest, value: Value) -> None:
        parts = [".".join(filter(None, (table.key, *names[:n]))) for n in range(1, len(names))]
        if any(self.keyed.find(part) or self.keyed.below(part) for part in parts):
            raise refused("A part of {key} is already a plain value or a list.", wanted.key)
        in_yaml = self.document.kind == "yaml" and isinstance(value, str)
        shown = self.text(_as_it_stood(str(value), "")[0] if in_yaml else value, "plain", table.flow)
        if table.flow:
            self.insert_flow(table, names, wanted, shown)
            return
        lines: list[str] = []
        for depth, name in enumerate(names):
            last = depth == len(names) - 1
            label = name if _plain_yaml(name, False) else json.dumps(name)
            lines.append(" " * (table.indent + 2 * depth) + f"{label}:" + (f" {shown}" if last else ""))
        newline = self.document.newline.decode()
        at = self.data.find(b"\n", table.end)
        text = encoded(newline.join(lines))
        if at < 0:
            at, new = len(self.data), encoded(newline) + text
        else:
            at, new = at + 1, text + encoded(newline)
        end = new.rindex(encoded(shown)) + len(encoded(shown))
        if wanted.comment:
            head = b" " * table.indent + b"# " + comment_text(wanted.comment) + encoded(newline)
            cut = len(encoded(newline)) if at == len(self.data) and not self.data.endswith(b"\n") else 0
            new, end = new[:cut] + head + new[cut:], end + len(head)
        self.changes.replace(self.number, at, at, new, wanted.key, (end - len(encoded(shown)), end))

    def insert_flow(self, table: Table, names: list[str], wanted: EditRequest, shown: str) -> None:
        """Behind the last entry between braces; in JSON on a line of its own where the others are."""
        labels = [json.dumps(name) for name in names]
        text = ": {".join(labels) + f": {shown}" + "}" * (len(names) - 1)
        if table.empty:
            at, lead = table.closer, ""
        else:
            at = table.end
            broken = self.data[:at].rfind(b"\n", table.start) >= 0 and self.is_json
            lead = "," + (self.document.newline.decode() + " " * table.indent if broken else " ")
        new = encoded(lead + text)
        end = len(new) - (len(names) - 1)
        self.changes.replace(self.number, at, at, new, wanted.key, (end - len(encoded(shown)), end))

    def remove(self, entry: KeyedEntry, wanted: EditRequest) -> None:
        name = wanted.key
        if entry.flow or self.is_json:
            before = self.data[: entry.name].rstrip()
            if not _LABEL.fullmatch(self.data, entry.name, entry.start) or not before.endswith((b",", b"{")):
                raise refused("{key} stands in a list; take it away by hand.", name)
            self.taken.append(entry)
            return
        start = self.data.rfind(b"\n", 0, entry.name) + 1
        if self.data[start : entry.name].strip():
            raise refused("{key} shares its line with others; take it away by hand.", name)
        end = self.data.find(b"\n", max(entry.end - 1, entry.name))
        end = len(self.data) if end < 0 else end + 1
        table = entry.key.rpartition(".")[0]
        if all(e.key == entry.key or e.key.rpartition(".")[0] != table for e in self.keyed.entries):
            raise refused("{key} is the only key of its table; take it away by hand.", name)
        if end == len(self.data) and not self.data.endswith(b"\n") and start:
            start -= 2 if self.data[start - 2 : start] == b"\r\n" else 1
        self.changes.replace(self.number, start, end, b"")

    def remove_run(self, run: list[KeyedEntry]) -> None:
        """Take neighbours away with the comma behind them, or the one before them where they are the last."""
        start, end = run[0].name, run[-1].end
        before, behind = self.data[:start].rstrip(), self.data[end:].lstrip()
        if behind.startswith(b","):
            end = len(self.data) - len(behind[1:].lstrip())
        elif before.endswith(b","):
            start = len(before) - 1
        gaps = [self.data[a.end : b.name] for a, b in pairwise(run)]
        if b"#" in b"".join((self.data[start : run[0].name], *gaps, self.data[run[-1].end : end])):
            raise refused("{key} has a comment beside it; take it away by hand.", run[0].key)
        self.changes.replace(self.number, start, end, b"")

    def comment(self, wanted: EditRequest, start: int, end: int) -> None:
        """A short comment behind the edited line, or above it where there is no room; JSON has none."""
        if not wanted.comment or self.is_json:
            return
        rest = self.data[end : self.document.line_end(end)].rstrip(b"\r")
        line = self.data.rfind(b"\n", 0, start) + 1
        if not rest.strip() and b"\n" not in self.data[start:end]:
            at = end + len(rest)
            self.changes.replace(self.number, at, at, b"  # " + comment_text(wanted.comment))
            return
        indent = self.data[line:start]
        blanks = indent[: len(indent) - len(indent.lstrip())]
        if any(entry.start < line <= entry.end for entry in self.keyed.entries):
            return  # the line begins inside a value, where a comment would become text
        text = blanks + b"# " + comment_text(wanted.comment) + self.document.newline
        self.changes.replace(self.number, line, line, text)


def refuse_unclear(keyed: Keyed, document: Document, keys: Sequence[str]) -> None:
    """Refuse what loaders do not agree on: several documents, a key that stands twice in its table."""
    file = document.path
    if keyed.documents > 1:
        raise refused(
            "{file} holds {count} documents (---), and nothing tells which the run gets.",
            file=file,
            count=keyed.documents,
        )
    for key in keys:
        table = keyed.tables.get(key.rpartition(".")[0])
        own = [one.name for one in keyed.entries if one.key == key and table is not None and table.has(one)]
        if len(set(own)) > 1:
            lines = listed(str(document.line_of(at)) for at in sorted(set(own)))
            raise refused(
                "{key} stands in lines {lines} of {file}, which not every loader takes: keep one of them.",
                key,
                lines=lines,
                file=file,
            )


def _block(text: str, indent: int) -> str | None:
    """A text as a literal block; None where it has no lines, or blanks that a block would not keep as they are."""
    lines = text.removesuffix("\n").split("\n")
    if len(lines) < 2 or not lines[0] or not lines[-1] or not all(line.isprintable() for line in lines):
        return None
    if any(line != line.strip() and (not line.strip() or line == lines[0]) for line in lines):
        return None
    sign = "|" if text.endswith("\n") else "|-"
    return "\n".join([sign, *(" " * indent + line if line else "" for line in lines)])


def _as_it_stood(text: str, old: str) -> tuple[str, bool]:
    """A value as loaders of YAML 1.1 (PyYAML) take it for one of the type of `old`, and whether in quotes: to them
    `5e-7` is a text, `010` is 8, `1e6` no whole number, `no` a truth value, `1:30` a number."""
    import yaml

    resolve: Any = yaml.SafeLoader("").resolve
    was, kind = (str(resolve(yaml.ScalarNode, one, (True, False))).rpartition(":")[2] for one in (old, text))
    found = _NUMBER.match(text) if was in ("int", "float", "null") else None
    if found is None:
        odd = kind == "timestamp" or ":" in text or (was == "str" and re.match(r"(?i)0\d|(?:yes|no|on|off)\Z", text))
        return text, bool(odd) and kind not in (was, "str")
    if was == "int" and float(text).is_integer() and abs(float(text)) < 2**53:
        return str(int(float(text))), False
    head, sign, power = found.groups()
    whole = re.sub(r"^([-+]?)0+(?=\d)", r"\1", head)
    return whole if power is None else f"{whole}{'' if '.' in head else '.0'}e{sign or '+'}{power}", False


def _plain_yaml(text: str, flow: bool) -> bool:
    """Whether a text can stand without quotes and still be read as itself."""
    import yaml

    if not text or (flow and re.search(r"[,\[\]{}]", text)) or not text.isprintable():
        return False
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        check_bounds(f"[{text}]" if flow else f"k: {text}")
        node: Any = yaml.compose(f"[{text}]" if flow else f"k: {text}", Loader=loader)
    except (yaml.YAMLError, UnboundedYamlError):
        return False
    if node is None or len(node.value) != 1:
        return False
    inner = node.value[0] if flow else node.value[0][1]
    return type(inner).__name__ == "ScalarNode" and not inner.style and inner.value == text
