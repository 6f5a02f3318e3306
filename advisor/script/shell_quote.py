"""A new value as the shell must see it, by what stands around the place it goes to."""

from __future__ import annotations

import re

from advisor.script.shell_text import Context

_SAFE = re.compile(r"[A-Za-z0-9_./:,=+@%^-]+\Z")
_ESCAPED_IN_DOUBLE = re.compile(r'([\\$`"])')


def is_safe(text: str) -> bool:
    """Whether a text means itself everywhere in a shell script."""
    return bool(_SAFE.match(text))


def quote(text: str) -> str:
    """A text as one word of a command, in quotes where it needs them."""
    if is_safe(text):
        return text
    if "'" not in text:
        return f"'{text}'"
    return '"' + _ESCAPED_IN_DOUBLE.sub(r"\\\1", text) + '"'


def within(text: str, context: Context, *, own_word: bool, alone: bool) -> str | None:
    """A text as it must be written at a place; None where it cannot stand there.

    `own_word`: the place is in the command's own word, not in a variable that is expanded later;
    `alone`: the value is a whole word, so that an empty one needs quotes.
    """
    if is_safe(text):
        return text
    if not own_word or "\0" in text:
        return None
    if context == "plain":
        return quote(text) if text or alone else ""
    if context == "double":
        return _ESCAPED_IN_DOUBLE.sub(r"\\\1", text)
    if context == "single":
        return text.replace("'", "'\\''")
    return None
