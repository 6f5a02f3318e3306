"""Patterns of modules, compiled when they are first used."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import advisor
from advisor import regex as kept
from advisor.regex import regex


def test_a_pattern_is_compiled_when_it_is_first_used_and_only_then(monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []
    monkeypatch.setattr(kept, "compiled", lambda *given: made.append(given[0]) or re.compile(*given))
    late = regex(r"(?P<word>a+)", re.IGNORECASE)
    assert made == []
    assert [late.search("xAAy")["word"], late.sub("-", "caad"), late.pattern] == ["AA", "c-d", r"(?P<word>a+)"]
    assert made == [r"(?P<word>a+)"]


@pytest.mark.parametrize("spoiled", [False, True])
def test_what_was_made_of_a_pattern_is_kept_and_checked_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoiled: bool
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    patterns = [(r"(?P<word>[a-zé]+)|(\d{2,4})", re.IGNORECASE), (rb"\xff(?=a)", 0), (r"(?m)^x$", 0)]
    for forgotten in (kept._kept, kept.compiled):
        forgotten.cache_clear()
    first = [kept.compiled(*one) for one in patterns]
    kept._keep()
    if spoiled:
        made = {key: (flags, b"\xc8\0\0\0" * 9, *rest) for key, (flags, _, *rest) in kept._kept().items()}
        kept._file().write_bytes(msgspec.msgpack.encode(made))
    for forgotten in (kept._kept, kept.compiled):
        forgotten.cache_clear()
    assert len(kept._kept()) == len(patterns)
    again = [kept.compiled(*one) for one in patterns]
    for one, other, (pattern, flags) in zip(first, again, patterns, strict=True):
        assert (one, other) == (re.compile(pattern, flags),) * 2
        assert one.groupindex == other.groupindex == re.compile(pattern, flags).groupindex
        text = "É 12345\nx\n" if other.flags & re.UNICODE else b"\xffa"
        assert [found.span() for found in other.finditer(text)] == [
            found.span() for found in re.finditer(pattern, text, flags)
        ]
    with pytest.raises(re.error):
        kept.compiled("(")


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
