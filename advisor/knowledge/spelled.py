"""Joins the expressions of `statements`, which people write as lists of alternatives and with the words they share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NAMED = re.compile(r"\{([a-z]\w*)\}")
_FLAGS = "(?ai)"
"""How every list of alternatives is read."""


def spelled(data: Any) -> Any:
    """The data of signatures.yaml with each list of alternatives as one expression; what has another form as it is."""
    told = data.get("statements") if isinstance(data, dict) else None
    table = told.get("words", {}) if isinstance(told, dict) else None
    if not isinstance(told, dict) or not isinstance(table, dict):
        return data
    words: dict[str, str] = {}
    for name, written in table.items():  # a word may have those in it that stand above it
        words[str(name)] = f"(?:{_joined(written, words)})"
    rest = {key: _expression(value, words) for key, value in told.items() if key != "words"}
    return {**data, "statements": rest}


def _expression(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _expression(one, words) for key, one in value.items()}
    return _FLAGS + _joined(value, words) if isinstance(value, list) else value


def _joined(written: Any, words: Mapping[str, str]) -> str:
    text = "|".join(map(str, written)) if isinstance(written, list) else str(written)
    return _NAMED.sub(lambda name: words.get(name[1], name[0]), text)
