"""Cleans text that strangers wrote: logs, scripts, file names, process lists, hostnames.

Everything that came from outside goes through `clean` when it is read, and is never parsed as markup afterwards.
A secret that a cut goes through would be recognised no more: what is cut loses its secrets first.
"""

from __future__ import annotations

import re
import unicodedata

LINE_LIMIT = 4000
"""Characters kept of one line; a log line of megabytes is cut, not carried."""
_SECRET = 2000
"""Characters behind a cut by which a secret before it is known: the longest that `redact` looks at."""
_COMMAND_LIMIT = 200

_CONTROL_SEQUENCES = re.compile(
    "\x1b\\][^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"  # OSC: titles, links, the clipboard
    "|\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\\\|\x9c)?"  # DCS, SOS, PM, APC
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|\x1b[ -/]*[0-~]"  # other escapes
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # C0 without tab and newline, DEL, C1
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(text: str, limit: int = LINE_LIMIT) -> str:
    """`text` without control sequences, control characters, bidi controls and lone surrogates; tabs and newlines stay.
    Longer than `limit` characters it is cut and ends in "…". O(len(text))."""
    if text.isascii() and text.isprintable():  # the common line: nothing to do
        return text if len(text) <= limit else _cut(text, limit)
    kept = _CONTROL_SEQUENCES.sub("", text[: limit * 4 + _SECRET])
    kept = _BIDI.sub("", _CONTROLS.sub("", kept))
    kept = _SURROGATES.sub("\ufffd", kept)
    return kept if len(kept) <= limit else _cut(kept, limit)


def _cut(text: str, limit: int) -> str:
    from advisor.redact import redact  # 17 ms, and most texts are short

    return redact(text[: limit + _SECRET])[: limit - 1] + "…"


def clean_line(text: str, limit: int = LINE_LIMIT) -> str:
    """`clean` for what must stay on one line: newlines and tabs become spaces."""
    return clean(text, limit).replace("\t", " ").replace("\n", " ")


def readable(command: str) -> str:
    """A command line fit to show: one clean line, secrets out, short."""
    from advisor.redact import redact_command

    return clean_line(redact_command(clean_line(command)), _COMMAND_LIMIT)


def cells(text: str) -> int:
    """Terminal columns that cleaned text takes: wide characters count two, combining ones none."""
    if text.isascii():
        return len(text)
    shown = (one for one in text if not unicodedata.combining(one))
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in shown)
