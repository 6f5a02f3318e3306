"""Compares a launch with the configuration that a log printed."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.regex import regex
from advisor.run.natives import native
from advisor.script.launch import Launch

LOOSE = regex(r"[\s'\"]")
"""Signs that do not count where two texts are compared."""


def agreement(launch: Launch, printed: Mapping[str, str]) -> int:
    """Settings that the log confirms, less those that it contradicts. `printed`: key as in the log → text."""
    values = {native(key): text for key, text in printed.items()}
    known = [s for s in launch.effective().values() if s.resolved and native(s.key) in values]
    return sum(1 if same_text(s.text, values[native(s.key)]) else -1 for s in known)


def same_text(left: str, right: str) -> bool:
    """Equal as the frameworks read them: 1e-6 is 0.000001, True is true, quotes and blanks in lists do not count."""
    a, b = (LOOSE.sub("", text).lower() for text in (left, right))
    if a == b or {a, b} <= {"none", "null", ""}:
        return True
    try:
        return float(a) == float(b)
    except ValueError:
        return False
