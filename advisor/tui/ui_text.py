"""Holds text as screens draw it: lines of (words, tone), never markup, so that nothing a log says can be obeyed.

Pure functions from nouns to lines live beside each screen; `page.py` draws what they return.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from msgspec import Struct

from advisor.hostile import cells, clean_line
from advisor.language import listed, mark, say
from advisor.line_breaks import cut, cut_left, wrapped
from advisor.redact import redact
from advisor.regex import regex

Tone = Literal[
    "plain", "strong", "dim", "good", "bad", "warn", "mark", "title", "added", "removed", "model", "batch", "engine"
]
"""Colour repeats what the words say; no meaning hangs on it."""
TONES: tuple[Tone, ...] = get_args(Tone)
MARGIN = 1
"""Columns on both sides of the words of a screen."""
_SENTENCE_END = regex(r"\. |[。！？][”」）]?")


class Toned(Struct, frozen=True):
    """A run of words in one tone. `text` is clean and has no newline."""

    text: str
    tone: Tone = "plain"


TonedLine = tuple[Toned, ...]


class Row(Struct, frozen=True):
    """A line of a page. Rows with the same `key` are one thing the cursor can stand on; None: only to be read."""

    line: TonedLine
    key: str | None = None


def span(text: str, tone: Tone = "plain") -> Toned:
    """A span of whatever text; control sequences and line breaks do not survive."""
    return Toned(clean_line(text), tone)


def line(*parts: str | Toned) -> TonedLine:
    """A line of strings (plain) and spans."""
    return tuple(span(part) if isinstance(part, str) else part for part in parts)


def plain(of: TonedLine) -> str:
    """The words of a line."""
    return "".join(part.text for part in of)


def without_secrets(of: TonedLine) -> TonedLine:
    """The line as it may be shown; one that holds a secret loses its tones with it."""
    words = plain(of)
    said = redact(words)
    return of if said == words else (Toned(said),)


def width_of(of: TonedLine) -> int:
    return sum(cells(part.text) for part in of)


def rows(*lines: TonedLine) -> list[Row]:
    """Lines that are only read."""
    return [Row(one) for one in lines]


def heading(text: str, right: str = "", width: int = 0) -> Row:
    """A section title with an optional column title at the right edge."""
    return Row(
        spread(line(span(text, "title")), line(span(right, "dim")), width) if right else line(span(text, "title"))
    )


BLANK = Row(())


def cut_key(key: str, width: int) -> str:
    """Like `cut_left`, but between the parts of a dotted name where a whole part is left: "…offload.params"."""
    shown = cut_left(key, width)
    if not shown.startswith("…"):
        return shown
    return "…" + (shown.partition(".")[2] or shown[1:])


def lead(text: str, room: int) -> tuple[str, str]:
    """(as many whole sentences as take `room` columns, at least one; the rest)."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text)] or [len(text)]
    end = max((end for end in ends if cells(text[:end].rstrip()) <= room), default=ends[0])
    end = len(text) if cells(text) <= room else end
    return text[:end].rstrip(), text[end:]


def pad(text: str, width: int) -> str:
    """Exactly `width` columns, left-aligned, cut where too long."""
    text = cut(text, width)
    return text + " " * (width - cells(text))


def pad_left(text: str, width: int) -> str:
    """Exactly `width` columns, right-aligned."""
    text = cut(text, width)
    return " " * (width - cells(text)) + text


def crop(of: TonedLine, width: int) -> TonedLine:
    """A line cut to `width` columns with "…"."""
    if width_of(of) <= width:
        return of
    kept: list[Toned] = []
    left = width
    for part in of:
        size = cells(part.text)
        if size >= left:
            kept.append(Toned(cut(part.text + " ", left), part.tone))
            break
        kept.append(part)
        left -= size
    return tuple(kept)


def spread(left: TonedLine, right: TonedLine, width: int) -> TonedLine:
    """`left` and `right` at the two edges of `width` columns; `left` gives way."""
    room = width - width_of(right)
    if room < 8:
        return crop(left, width)
    left = crop(left, room - 1)
    return (*left, Toned(" " * (room - width_of(left))), *right)


def wrap(text: str, width: int) -> list[str]:
    """Break a paragraph into lines of at most `width` columns, at least four."""
    return wrapped(redact(text), max(width, 4))


def paragraph(text: str, width: int, indent: int = 0, tone: Tone = "plain", key: str | None = None) -> list[Row]:
    """A wrapped paragraph, each line indented by `indent` columns; `key`: of the thing that its rows belong to."""
    margin = " " * indent
    return [Row(line(margin, span(part, tone)), key) for part in wrap(text, width - indent)]


def flow(pieces: Iterable[str], width: int, indent: int = 0, tone: Tone = "plain", gap: str = "  ") -> list[Row]:
    """Pieces side by side, `gap` between them, each kept whole; as many a line as fit."""
    lines: list[str] = []
    for piece in map(clean_line, map(redact, pieces)):
        joined = f"{lines[-1]}{gap}{piece}" if lines else piece
        if lines and cells(joined) <= width - indent:
            lines[-1] = joined
        else:
            lines.append(piece)
    return [Row(line(" " * indent, span(cut(one, width - indent), tone))) for one in lines]


def labelled(label: str, text: str, width: int, label_width: int = 14, tone: Tone = "plain") -> list[Row]:
    """`label` in a left column, `text` wrapped beside it."""
    parts = wrap(text, width - label_width) or [""]
    first = Row(line(span(pad(label, label_width), "title"), span(parts[0], tone)))
    return [first, *(Row(line(" " * label_width, span(part, tone))) for part in parts[1:])]


def grouped(number: int) -> str:
    """41207 → "41 207"."""
    return f"{number:,}".replace(",", " ")


def texts(of: Iterable[Row]) -> str:
    """The words of many rows, one a line."""
    return "\n".join(plain(row.line) for row in of)


def keys_of(of: Sequence[Row]) -> list[str]:
    """The keys the cursor can stand on, in order."""
    return list(dict.fromkeys(row.key for row in of if row.key is not None))


_ASCII = str.maketrans(
    {
        **dict.fromkeys("–—−‑", "-"), "·": ".", "…": "~", "×": "x", "→": ">", "←": "<", "↑": "^", "↓": "v",
        "≥": ">", "≤": "<", "°": "C", "▸": ">", "●": "*", "✓": "+", "’": "'", "“": '"', "”": '"', "│": "|", "▕": "[",
        "▏": "]", "█": "#", "▓": "=", "░": ":", "✗": "x", "\u00a0": " ", "⚠": "!", "⋮": ":", "─": "-",
        **dict(zip("▁▂▃▄▅▆▇", ".:-=+*%", strict=True)), **dict(zip("▎▍▌▋▊▉", "-=####", strict=True)),
    }
)  # fmt: skip


def ascii_only(text: str) -> str:
    """Our own signs in ASCII, one column each; letters of other languages stay."""
    return text if text.isascii() else text.translate(_ASCII)


# --- words that more than one screen says ----------------------------------------------------------------------------

# Constants are said where they are shown.


BOX = mark("What this box has")
COUNTED_FROM_THE_END = mark("This is the end of the log; lines are counted from there.")
SCRIPT, LOG = mark("script"), mark("log")
CHOSEN_SCRIPT, CHOSEN_LOG = mark("chosen as the script: {name}"), mark("chosen as the log: {name}")
RUNS_HERE, NEWEST_FIRST = mark("Recent runs in this folder"), mark("newest first")
HOW_TO_GIVE = mark("Next time in one go: {command}. Without files: rl-oom-advisor --demo")
WHAT_IS_IT = mark(
    "What is it? l or Enter: a log. s: a launch script. Backspace forgets it; what you paste next is added."
)


def one_place(place: str, room: str) -> str:
    """Like "One GPU of 40.00 GiB"."""
    if not room:
        return say("One GPU" if place == "gpu" else "One host")
    return say("One GPU of {room}" if place == "gpu" else "One host of {room}", room=room)


# --- gauges ----------------------------------------------------------------------------------------------------------

NO_GPU_SHOWN = mark(
    "The driver answers, and shows no GPU to this process (CUDA_VISIBLE_DEVICES, or a container without GPUs)."
)

_LEFT_OVER = mark("! Left over from a run that ended: pid {pids}. End them before the next start (kill, then kill -9).")


def leftovers(held: Sequence[tuple[int, str]]) -> str:
    """Processes of a run that died and still hold memory."""
    named = listed(say("{pid} ({size})", pid=pid, size=size) for pid, size in held[:6])
    if len(held) > 6:
        named = say("{names} and {count} more", names=named, count=len(held) - 6)
    return say(_LEFT_OVER, pids=named)
