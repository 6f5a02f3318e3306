"""Reads settings that a log prints as a list: OmegaConf's YAML, `key: value` lines, tables with bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.crash.lines import LogLine
from advisor.regex import regex

_VALUE = r"(?P<value>[^\s=:]\S{0,300}|\[[^\n]{0,300}\]|'[^'\n]{0,300}'|\"[^\"\n]{0,300}\")"
"""One word, or what brackets or quotes hold: a sentence is no setting."""
_KEY = r"(?P<key>[a-z_][a-z\d_./-]{0,80})"
_YAML = regex(rf"^(?P<indent> {{0,40}}){_KEY} {{0,40}}:(?: +{_VALUE})?,?\s*$")
"""One line of YAML, or of an aligned list: a key, and a value or a section below it."""
_ITEM = regex(r"^ {0,40}- ")
_TABLE = regex(rf"^(?:wandb: ?)?\s*[|│┃║]\s*{_KEY}\s*[|│┃║]\s*{_VALUE}\s*[|│┃║]\s*$")
_POINT = regex(rf"^(?:wandb: ?)?\s*(?:[-*•+] )?{_KEY} ?(?:=|:|->) ?{_VALUE}\s*$")
_LEAST = 3
"""Lines in a row that make a list; fewer are sentences."""
_METRICS = regex(r"^-?\d+\.\d{4,}$")
"""Values of results."""
_QUOTES = "'\""


def listed_settings(lines: Sequence[LogLine]) -> Iterator[tuple[str, str]]:
    """(key, text) of every list of at least three lines of one process; a section's keys are joined with dots."""
    rows: list[tuple[int, str, str | None]] = []
    process = ""
    for line in lines:
        row = _row(line.text)
        if row is None and line.process == process and _ITEM.match(line.text):
            continue  # an item of a list that is some key's value
        if row is None or line.process != process:
            yield from _settings(rows)
            rows, process = [], line.process
        if row is not None:
            rows.append(row)
        elif (pairs := _PAIRS.match(line.text)) is not None:
            told = [pair.rstrip(",").partition("=") for pair in pairs[1].split()]
            yield from ((key, value) for key, _, value in told if _OF_MEMORY.search(key))
    yield from _settings(rows)


_PAIRS = regex(r"^(?:\[[^\]]{1,60}\] ?|INFO:? ?)*((?:[a-z_][\w.]{1,60}=[^\s=,]{1,80}(?:, ?| |$)){2,40})\s*$")
"""A line of pairs and nothing else behind a logger's head."""
_OF_MEMORY = regex(r"(?:dtype|precision|attn\w*|checkpointing|batch_size|workers|offload)$")
"""What is taken of them: names that many a trainer has, and that tell none."""


def _row(text: str) -> tuple[int, str, str | None] | None:
    """(indent, key, value or None) of one line of a list."""
    table = _TABLE.match(text)
    if table is not None:
        return 0, table["key"], table["value"]
    yaml = _YAML.match(text)
    if yaml is not None:
        return len(yaml["indent"]), yaml["key"], yaml["value"]
    point = _POINT.match(text)
    return (0, point["key"], point["value"]) if point is not None else None


def _settings(rows: Sequence[tuple[int, str, str | None]]) -> Iterator[tuple[str, str]]:
    above: list[tuple[int, str]] = []
    for indent, key, value in rows if len(rows) >= _LEAST else ():
        while above and above[-1][0] >= indent:
            above.pop()
        if value is None:
            above.append((indent, key))
        elif not _METRICS.match(value):
            yield ".".join([*(name for _, name in above), key]), value.strip().rstrip(",").strip(_QUOTES)
