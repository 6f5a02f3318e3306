"""Parses native texts into typed values and spells them as the user's file does."""

from __future__ import annotations

from advisor.knowledge.schema import SettingFact
from advisor.run.run import KnobValue

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
LARGEST = 1e15
"""No setting is as large; what is written so is none."""
NOTHING = frozenset({"null", "none", "~", ""})
"""Words by which a setting has no value."""


def parse_value(text: str, kind: str) -> KnobValue | None:
    """A native text as the knob's type; None where it is empty, null or not of that type."""
    bare = text.strip().strip("\"'")
    low = bare.lower()
    if low in NOTHING:
        return None
    if kind in ("bool", "flag"):
        return True if low in _TRUE else False if low in _FALSE else None
    if kind in ("int", "float"):
        return _number(bare, kind)
    return bare


def _number(text: str, kind: str) -> KnobValue | None:
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        return None
    if not abs(value) < LARGEST:  # nor is what is no number
        return None
    if kind == "int":
        return int(value) if value == int(value) else None
    return value


def spell(value: KnobValue, fact: SettingFact, old: str | None) -> str:
    """A value as the dialect writes it: booleans keep the capitals of the old text, numbers lose needless zeros."""
    if isinstance(value, bool):
        word = "true" if value else "false"
        return word.capitalize() if old is not None and old[:1].isupper() else word
    if isinstance(value, float) and fact.type != "str":
        return f"{value:.4f}".rstrip("0").rstrip(".") or "0"
    return str(value)
