"""Reads a YAML file with the line and column of everything in it, so that a complaint can name the place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import Struct, inspect

from advisor.bounded_yaml import UnboundedYamlError, check_bounds
from advisor.hostile import clean
from advisor.knowledge.spelled import spelled
from advisor.language import mark, say
from advisor.regex import regex
from advisor.rules.expression import decode
from advisor.rules.parser import ExpressionError

T = TypeVar("T")
At = tuple[str | int, ...]
"""Keys and indices from the top of the file down."""
Position = tuple[int, int]
"""Line and column, from 1."""
_YamlPart = tuple[At, int, str, int]
"""A part, its line, the key that stands there for the second time or "", and the column of a text or 0."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C where there is one
_PART = regex(r"\.([^.\[\]]+)|\[(\d+)\]|(\[\.\.\.\])")
_UNKNOWN_FIELD = regex(r"unknown field `([^`]+)`")
_COMPLAINTS = (
    (regex(r"Object contains unknown field `(?P<name>.+)`"), mark("Object contains unknown field `{name}`")),
    (regex(r"Object missing required field `(?P<name>.+)`"), mark("Object missing required field `{name}`")),
    (regex(r"Expected `(?P<wanted>.+)`, got `(?P<found>.+)`"), mark("Expected `{wanted}`, got `{found}`")),
    (regex(r"Invalid enum value (?P<value>.+)"), mark("Invalid enum value {value}")),
)
"""What msgspec says, and the same to be said."""
_MOST_PARTS = 400_000
"""Parts of a file; a few lines of aliases of aliases can stand for billions."""


class BadFile(Exception):  # noqa: N818 - it is the file that is bad
    """What is wrong with a file, in which line, and at which column (from 1; 0: the whole line)."""

    def __init__(self, line: int, says: str, column: int = 0) -> None:
        super().__init__(says)
        self.line, self.says, self.column = line, says, column


class YamlFile(Struct, frozen=True):
    """The data of one file and where each part of it stands."""

    path: Path
    data: Any
    lines: Mapping[At, int]
    scalars: Mapping[At, Position]
    """Where each text begins."""
    text: tuple[str, ...]
    """The lines of the file."""
    repeated: tuple[tuple[str, int], ...]
    """Keys that one mapping has twice, with the line of the second: YAML keeps the last and says nothing."""

    def line(self, at: At = ()) -> int:
        """The line of this part, or of the nearest part around it that has one."""
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at, 1)

    def place(self, at: At, offset: int) -> Position:
        """Line and column of a character of a text, whether it is plain, quoted or a block."""
        if at not in self.scalars:
            return self.line(at), 0
        line, column = self.scalars[at]
        part = self.data
        for step in at:
            part = part[step]
        wanted = len("".join(str(part)[:offset].split()))  # blanks are folded; the other signs stay
        quote = self.text[line - 1][column - 1 : column]
        if quote in "|>":
            line, column = line + 1, 1
        elif quote in "'\"":
            column += 1
        while line <= len(self.text):
            row = self.text[line - 1]
            for here in range(column - 1, len(row)):
                escape = (quote == '"' and row[here] == "\\") or (quote == "'" and row[here : here + 2] == "''")
                if row[here].isspace() or escape:
                    continue
                if wanted == 0:
                    return line, here + 1
                wanted -= 1
            line, column = line + 1, 1
        return self.scalars[at]


def read_yaml(path: Path) -> YamlFile:
    """Raises BadFile where it is not YAML, OSError where it cannot be read. Nothing in it is executed."""
    try:
        check_bounds(path.read_bytes())
        loader = _LOADER(path.read_bytes())
        node = loader.get_single_node()
        # Before the data is made: making it copies merged keys (<<) into their mappings.
        places = list(islice(_places(node, ()), _MOST_PARTS)) if node is not None else []
        if len(places) == _MOST_PARTS:
            raise BadFile(1, say("more than {most} parts", most=_MOST_PARTS))
        data = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        last = path.read_bytes().count(b"\n")  # the end of the file is no line of it
        raise BadFile(
            max(1, min(place.line + 1, last)) if place else 1, say("not YAML: {why}", why=_one_line(error))
        ) from error
    except UnboundedYamlError as error:
        raise BadFile(error.line, say("not read: {why}", why=error.reason)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFile(1, say("not YAML: {why}", why=_one_line(error))) from error
    lines: dict[At, int] = {}
    repeated: list[tuple[str, int]] = []
    scalars: dict[At, Position] = {}
    for at, line, twice, column in places:
        lines.setdefault(at, line)
        if column:
            scalars.setdefault(at, (line, column))
        repeated += [(twice, line)] if twice else []
    rows = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return YamlFile(path, _cleaned(data), lines, scalars, tuple(rows), tuple(repeated))


def typed(file: YamlFile, kind: type[T]) -> T:
    """The data as `kind`. Raises BadFile with the line of what does not fit."""
    try:
        return msgspec.convert(spelled(file.data), kind, dec_hook=decode)
    except msgspec.ValidationError as error:
        text = str(error)
        at = _where(file.data, text, kind)
        field = _UNKNOWN_FIELD.search(text)
        place = (*at, field[1]) if field else at
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at).lstrip(".")
        said = text.split(" - at `", 1)[0]
        alike = ((wording, pattern.fullmatch(said)) for pattern, wording in _COMPLAINTS)
        says = next((say(wording, **match.groupdict()) for wording, match in alike if match), said)
        if field or text.startswith("Invalid enum value"):
            says = f"{says}{_allowed(_type_at(kind, at), field[1] if field else '')}"
        if where:
            says = say("{problem} (in {where})", problem=says, where=where)
        wrong = error.__cause__
        line, column = file.place(at, wrong.offset) if isinstance(wrong, ExpressionError) else (file.line(place), 0)
        raise BadFile(line, says, column) from error


def _allowed(kind: Any, name: str) -> str:
    """What may stand there instead: the words of a closed list, or the fields that look like `name`."""
    if isinstance(kind, inspect.LiteralType):
        return say("; it is one of {words}", words=", ".join(map(str, kind.values)))
    fields = [field.encode_name for field in kind.fields] if isinstance(kind, inspect.StructType) else []
    alike = get_close_matches(name, fields, 3)
    return say("; near it: {words}", words=", ".join(alike)) if alike else ""


def _type_at(kind: Any, at: At) -> Any:
    """The type of the part that stands there; None where several may."""
    here: Any = inspect.type_info(kind)
    for step in (*at, None):
        if isinstance(here, inspect.UnionType):
            some = [one for one in here.types if not isinstance(one, inspect.NoneType)]
            here = some[0] if len(some) == 1 else None
        if step is None:
            return here
        if isinstance(here, inspect.StructType):
            here = next((field.type for field in here.fields if field.encode_name == step), None)
        elif isinstance(here, inspect.DictType):
            here = here.value_type
        else:
            here = getattr(here, "item_type", None)
    return here


def _where(data: Any, text: str, kind: type[Any]) -> At:
    """msgspec's `$[3].settings[...]` as a path; it hides the keys of mappings, so they are found by trying each."""
    at: At = ()
    here = data
    for name, index, hidden in _PART.findall(text.rpartition(" - at `$")[2].rstrip("`")):
        step = name or (int(index) if index else None)
        if hidden:
            step = next((key for key in here if _fails_alike(data, at, key, text, kind)), None)
        if step is None:
            return at
        at = (*at, step)
        here = here[step]
    return at


def _fails_alike(data: Any, at: At, key: Any, text: str, kind: type[Any]) -> bool:
    try:
        msgspec.convert(_only(data, at, key), kind, dec_hook=decode)
    except msgspec.ValidationError as error:
        return str(error) == text
    return False


def _only(data: Any, at: At, key: Any) -> Any:
    """`data` with nothing but `key` left in the mapping at `at`."""
    if not at:
        return {key: data[key]}
    inner = _only(data[at[0]], at[1:], key)
    if isinstance(data, list):
        return [*data[: int(at[0])], inner, *data[int(at[0]) + 1 :]]
    return {**data, at[0]: inner}


def _places(node: Any, at: At) -> Iterator[_YamlPart]:
    """Every part, outermost first; `check_bounds` has seen that they are nested no deeper than can be followed."""
    column = node.start_mark.column + 1 if isinstance(node, yaml.ScalarNode) else 0
    yield at, node.start_mark.line + 1, "", column
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _places(item, (*at, index))
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in sorted(node.value, key=lambda pair: pair[0].value == "<<"):  # what is written here first
            name = str(key.value)
            yield (*at, name), key.start_mark.line + 1, name if name in seen and name != "<<" else "", 0
            seen.add(name)
            yield from _places(value, at if name == "<<" else (*at, name))


def _cleaned(data: Any) -> Any:
    """The same data without the control codes that a stranger's file could bring to the terminal."""
    if isinstance(data, str):
        return clean(data, 20_000)
    if isinstance(data, list):
        return [_cleaned(part) for part in data]
    if isinstance(data, dict):
        return {_cleaned(key): _cleaned(value) for key, value in data.items()}
    return data


def _one_line(error: Exception) -> str:
    return " ".join(str(getattr(error, "problem", None) or error).split())
