"""Patterns of modules, compiled when they are first used."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import advisor
from advisor.regex import regex


def test_a_pattern_is_compiled_when_it_is_first_used_and_only_then(monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []
    real = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: made.append(given[0]) or real(*given))
    late = regex(r"(?P<word>a+)", re.IGNORECASE)
    assert made == []
    assert [late.search("xAAy")["word"], late.sub("-", "caad"), late.pattern] == ["AA", "c-d", r"(?P<word>a+)"]
    assert made == [r"(?P<word>a+)"]


def test_every_late_pattern_of_a_module_is_well_formed():
    rooms = Path(advisor.__file__).parent
    files = (file for file in rooms.rglob("*.py") if "from advisor.regex import" in file.read_text())
    names = [".".join(("advisor", *file.relative_to(rooms).with_suffix("").parts)) for file in files]
    late = [one for name in names for one in _late(vars(sys.modules.get(name) or importlib.import_module(name)))]
    assert len(late) > 250
    assert all(one.pattern for one in late)


def _late(values: object) -> Iterator[re.Pattern[str]]:
    """Those in a module's namespace, and in its tables."""
    inside = values.values() if isinstance(values, dict) else values if isinstance(values, (tuple, list)) else ()
    for one in inside:
        if type(one) is type(regex("")):
            yield one
        elif isinstance(one, (dict, tuple, list)) and one is not vars(sys.modules["builtins"]):
            yield from _late(one)
