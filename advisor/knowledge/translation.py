"""Translates knowledge: says which fields are prose, and gives the same data with its prose in another language.

Translations stand in knowledge/LANGUAGE/KIND.json, English to translation, KIND being a file or folder of the YAML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

PROSE: Mapping[str, frozenset[str]] = {
    "advisories": frozenset({"title", "says"}),
    "allocations": frozenset({"title", "says"}),
    "cases": frozenset(
        {"title", "mechanism", "folklore"}
        | {"advised", "also_advised", "confirmed_by", "failed", "tried", "worked"}  # in `reported`
    ),
    "config_files": frozenset(),
    "data_sets": frozenset(),
    "decision_tree": frozenset(
        {"title", "asks", "why", "if_unknown", "because", "explains", "record_next_time", "proof", "counter"}
        | {"condition", "if_unknown_of_given"}
    ),
    "frameworks": frozenset(
        {"title", "unit", "caveat", "because", "says", "note", "notes"}
        | {"reaches_workers_by", "false_friend", "elsewhere", "only_in", "unread", "yours"}
    ),
    "gpus": frozenset(),
    "knobs": frozenset({"title", "unit", "says", "check"}),
    "models": frozenset(),
    "recipes": frozenset({"title"}),
    "remedies": frozenset({"title_alone", "title", "costs", "says", "because", "caveats", "place", "in_force"}),
    "signatures": frozenset({"title", "says", "settle_by", "versions"}),
}
"""Kind of file → the keys, at any depth, whose texts a user reads as prose."""
_NOT_PROSE = frozenset({"sizes", "situation", "values", "default", "defaults", "sets", "saves", "resumes"})
"""Below these keys stand names and values of others."""


def kind_of(file: Path) -> str:
    """The kind of a YAML file: its own name, or its folder's."""
    return file.parent.name if file.parent.name in PROSE else file.stem


def translated(data: Any, kind: str, catalogue: Mapping[str, str]) -> Any:
    """The same data with its prose from `catalogue`; a text that is not in it stays English."""
    return _walked(data, PROSE.get(kind, frozenset()), catalogue)


def _walked(data: Any, prose: frozenset[str], catalogue: Mapping[str, str]) -> Any:
    if isinstance(data, list):
        return [_walked(item, prose, catalogue) for item in data]
    if not isinstance(data, dict):
        return data
    return {
        key: _said(value, catalogue)
        if key in prose and _is_text(value)
        else value
        if key in _NOT_PROSE
        else _walked(value, prose, catalogue)
        for key, value in data.items()
    }


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and any(isinstance(item, str) for item in value))


def _said(value: Any, catalogue: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_said(item, catalogue) for item in value]
    return catalogue.get(value.strip(), value) if isinstance(value, str) else value


def prose(data: Any, kind: str) -> Iterator[str]:
    """Every text of `data` that a translation must have."""
    keys = PROSE.get(kind, frozenset())
    for key, value in _pairs(data):
        if key in keys and _is_text(value):
            texts = value if isinstance(value, list) else [value]
            yield from (text.strip() for text in texts if isinstance(text, str) and any(map(str.isalpha, text)))


def _pairs(data: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(data, list):
        for item in data:
            yield from _pairs(item)
    elif isinstance(data, dict):
        for key, value in data.items():
            if key not in _NOT_PROSE:
                yield str(key), value
                yield from _pairs(value)


@lru_cache(maxsize=2)
def catalogue_of(folder: Path, language: str) -> Mapping[str, Mapping[str, str]]:
    """Kind → its translations, from `folder`/LANGUAGE; {} for English. Raises OSError and msgspec.MsgspecError."""
    files = sorted((folder / language).glob("*.json"))
    return {file.stem: msgspec.json.decode(file.read_bytes(), type=dict[str, str]) for file in files}
