"""Joins the lines of logs that were copied from a terminal, which broke every long one at its width."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.crash.log_reader import LogReader
from advisor.crash.sources import LogError, LogSource, text_source

_WRAPPED = 1 << 20
"""Bytes of a log that somebody may have copied from a screen."""
_NARROWEST = 60
"""Characters of the narrowest terminal."""
_FULL_LINES = 3
"""Lines of exactly the greatest width from which on that width is the terminal's."""
_SIGNS = 6
"""Different characters that a line has at least; a ruler has fewer."""


def unwrapped(sources: Sequence[LogSource]) -> list[LogSource] | None:
    """The same logs with their lines whole; None where none of them was wrapped."""
    texts = [_text(source) for source in sources]
    whole = [join_wrapped(text) if text is not None else None for text in texts]
    if not any(whole):
        return None
    return [text_source(text, one.name, one.path) if text else one for one, text in zip(sources, whole, strict=True)]


def join_wrapped(text: str) -> str | None:
    """The text with what was wrapped put together; None where no width shows that it was."""
    lines = text.split("\n")
    width = max(map(len, lines))
    full = {line for line in lines if len(line) == width and len(set(line)) >= _SIGNS}
    if width < _NARROWEST or len(full) < _FULL_LINES:
        return None
    out: list[str] = []
    pieces = 0
    for number, line in enumerate(lines):
        if pieces:
            out[-pieces] += line
            out.append("")
        else:
            out.append(line)
        pieces = pieces + 1 if line in full and number + 1 < len(lines) else 0
    return "\n".join(out)


def _text(source: LogSource) -> str | None:
    if source.path is None or source.is_part or not 0 < (source.size or 0) <= _WRAPPED:
        return None
    room = bytearray(_WRAPPED)
    try:
        with LogReader(source) as reader:
            return room[: reader.read_into(memoryview(room))].decode("utf-8", "surrogateescape")
    except LogError:
        return None
