"""What a YAML file may ask of the program that reads it: bounded depth, bounded values, nothing that holds itself.

The composer and the constructor of the YAML library recurse on the machine's own stack and copy what an alias stands
for, so a few bytes can end a process. This looks at the stream of events first, which costs neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from advisor.language import say

DEEPEST = 60
MORE_VALUES = 5_000
"""Values that aliases may add to those the file has bytes for."""


class UnboundedYamlError(ValueError):
    """A YAML text that is not read any further: the line and the reason, one clause."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(say("line {line}: {reason}", line=line, reason=reason))
        self.line = line
        self.reason = reason


def check_bounds(text: str | bytes, most: int | None = None) -> None:
    """Raises UnboundedYamlError, and yaml.YAMLError where it is not YAML. Time is linear in the text. `most`: how many
    values the text may hold, each alias spelled out; by default what it has bytes for, and some more."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    _check(yaml.parse(text, Loader=loader), MORE_VALUES + len(text) if most is None else most)


def _check(events: Iterable[Any], most: int) -> None:
    """The size of a node is what it becomes with every alias in it spelled out."""
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]
    sizes: dict[str, int | None] = {}
    for event in events:
        kind, line = type(event).__name__, event.start_mark.line + 1
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            if len(open_nodes) > DEEPEST:
                raise UnboundedYamlError(line, say("nested too deeply to be a config file"))
            open_nodes.append((event.anchor, 1))
            if event.anchor is not None:
                sizes[event.anchor] = None
            continue
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            anchor, size = open_nodes.pop()
        elif kind == "ScalarEvent":
            anchor, size = event.anchor, 1
        elif kind == "AliasEvent":
            known = sizes.get(event.anchor, 1)
            if known is None:
                raise UnboundedYamlError(line, say("an alias stands for what it is part of"))
            anchor, size = None, known
        else:
            continue
        if anchor is not None:
            sizes[anchor] = size
        open_nodes[-1] = (open_nodes[-1][0], open_nodes[-1][1] + size)
        if open_nodes[-1][1] > most:
            told = say("it holds, its aliases spelled out, more values than a config file has")
            raise UnboundedYamlError(line, told)
