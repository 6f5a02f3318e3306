"""The `defaults:` list of a hydra config: which files beside it make up the rest, in which order and under which keys.

Source: hydra@2c03d1b hydra/_internal/defaults_list.py:272 (`_self_` counts as last where it is not named).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from advisor.hostile import clean_line
from advisor.language import say
from advisor.script.document import ScriptError, Setting
from advisor.script.files import Files
from advisor.script.keyed import KeyedEntry, settings_of
from advisor.script.yaml_file import read_yaml

_PACKAGE = re.compile(rb"#[ \t]*@package[ \t]+([\w.]+)")
_MAX_DEPTH = 8
_SELF = "_self_"


class Composed(Struct):
    """Settings in the order in which they are merged, the files they come from, and what was not found."""

    settings: list[Setting] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Default(Struct, frozen=True):
    """One entry of the list: a file below the config folder, and the key that its content goes under."""

    path: str
    package: str


def compose(files: Files, number: int, out: Composed, group: str = "", package: str = "", depth: int = 0) -> None:
    """Add a config and what its `defaults` name. Raises ScriptError where the config itself is not well-formed."""
    document = files.documents[number]
    entries = read_yaml(document).entries
    header = _PACKAGE.search(document.data, 0, 500)
    if header and depth:
        package = "" if header.group(1) == b"_global_" else header.group(1).decode()
    own = [entry for entry in entries if not is_hydras(entry.key)]
    prefix = f"{package}." if package else ""
    out.files.append(str(document.path))
    root = document.path.parent.joinpath(*[".."] * len([part for part in group.split("/") if part]))
    listed = [*_defaults(entries, group, package)]
    if not any(item.path == _SELF for item in listed):
        listed.append(_Default(_SELF, ""))
    for item in listed:
        if item.path == _SELF:
            out.settings += settings_of(document, own, "file", prefix)
        elif depth < _MAX_DEPTH:
            _add(files, root, item, out, depth)


def _add(files: Files, root: Path, item: _Default, out: Composed, depth: int) -> None:
    path = root / f"{item.path}.yaml"
    try:
        number = files.add(path, "yaml")
        compose(files, number, out, posixpath.dirname(item.path), item.package, depth + 1)
    except ScriptError:
        shown = clean_line(item.path, 200)
        out.notes.append(
            say("The config's defaults name {file}, which is not beside it: the framework's own is taken.", file=shown)
        )


def _defaults(entries: Sequence[KeyedEntry], group: str, package: str) -> Iterator[_Default]:
    for entry in entries:
        if entry.key == "defaults" and isinstance(entry.value, tuple):
            for text in entry.value:
                yield _named(text, "", group, package)
        elif entry.key.startswith("defaults.") and isinstance(entry.value, str):
            _, _, name = entry.key.removeprefix("defaults.").partition(".")
            if not name:
                yield _named(entry.value, "", group, package)
            elif not name.startswith("override ") and entry.value != "null":
                yield _named(name.removeprefix("optional "), entry.value, group, package)


def _named(name: str, option: str, group: str, package: str) -> _Default:
    """`name`, `group: option` or either with `@package`; relative to the config that names it."""
    if name == _SELF:
        return _Default(_SELF, "")
    path, _, given = name.partition("@")
    inside = path.lstrip("/") if path.startswith("/") else posixpath.join(group, path)
    folder = inside if option else posixpath.dirname(path.lstrip("/"))
    own = given or (path.lstrip("/") if option else folder).replace("/", ".")
    if given == "_global_" or given.startswith("_global_."):
        whole = given.removeprefix("_global_").lstrip(".")
    else:
        whole = ".".join(part for part in (package, own.removeprefix("_here_").lstrip(".")) if part)
    return _Default(posixpath.join(inside, option.removesuffix(".yaml")) if option else inside, whole)


def is_hydras(key: str) -> bool:
    """Hydra's own sections are no settings of the run."""
    return key == "defaults" or key.startswith(("defaults.", "hydra."))
