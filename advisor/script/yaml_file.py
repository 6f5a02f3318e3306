"""YAML files: every scalar with its byte range. Nodes are composed, never constructed: no tag runs anything."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

from advisor.bounded_yaml import UnboundedYamlError, check_bounds
from advisor.hostile import clean_line
from advisor.language import say
from advisor.script.document import Document, ScriptError
from advisor.script.keyed import Keyed, KeyedEntry, Table, ValueStyle

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_STYLES: dict[str | None, ValueStyle] = {"'": "single", '"': "double", "|": "block", ">": "block"}
_BOM = b"\xef\xbb\xbf"


def read_yaml(document: Document) -> Keyed:
    """The scalars of a YAML file under dotted keys; lists of scalars are tuples.

    Raises ScriptError with the line of a syntax error (tabs among them).
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    name = clean_line(str(document.path))
    body = document.data.removeprefix(_BOM)
    try:
        text = body.decode("utf-8")
        check_bounds(text)
        nodes = [node for node in yaml.compose_all(text, Loader=loader) if node is not None]
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise ScriptError(say("{file}, line {line}: not UTF-8 text.", file=name, line=line)) from error
    except yaml.YAMLError as error:
        raise ScriptError(_sentence(name, document.data, error)) from error
    except UnboundedYamlError as error:
        where = {"file": name, "line": error.line}
        raise ScriptError(say("{file}, line {line}: {problem}.", **where, problem=error.reason)) from error
    reader = _YamlReader(name, document.data, text, len(document.data) - len(body))
    for node in nodes:
        reader.node("", node, node, 0)
    return reader.keyed


def _sentence(name: str, data: bytes, error: Any) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = clean_line(str(getattr(error, "problem", None) or say("it cannot be parsed")), 200)
    if mark is None:
        return say("{file}: {problem}.", file=name, problem=problem)
    lines = data.split(b"\n")
    line = lines[mark.line] if mark.line < len(lines) else b""
    if b"\t" in line[: len(line) - len(line.lstrip())]:
        problem = say("a tab is used for indentation, which YAML does not allow")
    return say("{file}, line {line}: {problem}.", file=name, line=mark.line + 1, problem=problem)


class _YamlReader:
    """Walks nodes and notes byte ranges."""

    def __init__(self, name: str, data: bytes, text: str, shift: int) -> None:
        self.data = data
        self.shift = shift
        self.name = name
        self.keyed = Keyed()
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
        for name, value in node.value:
            if name.id != "scalar":
                continue
            below = f"{key}.{name.value}" if key else name.value
            if name.value == "<<":
                below = key
            end = max(end, self.node(below, value, name, depth + 1, inside), self.at(name.end_mark.index))
        closer = self.at(node.end_mark.index) - 1
        if key not in self.keyed.tables:
            column = node.value[0][0].start_mark.column if node.value else node.start_mark.column
            self.keyed.tables[key] = Table(key, start, end, column, inside, not node.value, closer)
        return closer + 1 if node.flow_style else end

    def sequence(self, key: str, node: SequenceNode, name: Node, depth: int, flow: bool) -> int:
        start, end = self.at(node.start_mark.index), self.at(node.end_mark.index)
        if all(item.id == "scalar" for item in node.value):
            if not node.flow_style and node.value:
                end = max(self.at(item.end_mark.index) for item in node.value)
            values = tuple(item.value for item in node.value)
            self.add(KeyedEntry(key, values or "[]", start, end, "list", self.at(name.start_mark.index), flow))
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
        self.add(KeyedEntry(key, value, start, end, style, self.at(name.start_mark.index), flow))
        return end

    def add(self, entry: KeyedEntry) -> None:
        if entry.key:
            self.keyed.entries.append(entry)
