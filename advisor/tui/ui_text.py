"""Text as the screens draw it: lines of (words, tone), never markup, so that nothing a log says can be obeyed.

Pure functions from nouns to lines live beside each screen; `page.py` draws what they return.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from advisor.hostile import cells, clean_line
from advisor.language import listed, mark, say, say_count
from advisor.line_breaks import wrapped
from advisor.redact import redact
from advisor.units import in_ranges

Tone = Literal["plain", "strong", "dim", "good", "bad", "warn", "mark", "title", "added", "removed"]
"""Colour repeats what the words say; no meaning hangs on it."""
TONES: tuple[Tone, ...] = ("plain", "strong", "dim", "good", "bad", "warn", "mark", "title", "added", "removed")


class Span(Struct, frozen=True):
    """A run of words in one tone. `text` is clean and has no newline."""

    text: str
    tone: Tone = "plain"


Line = tuple[Span, ...]


class Row(Struct, frozen=True):
    """A line of a page. Rows with the same `key` are one thing the cursor can stand on; None: only to be read."""

    line: Line
    key: str | None = None


def span(text: str, tone: Tone = "plain") -> Span:
    """A span of whatever text; control sequences and line breaks do not survive."""
    return Span(clean_line(text), tone)


def line(*parts: str | Span) -> Line:
    """A line of strings (plain) and spans."""
    return tuple(span(part) if isinstance(part, str) else part for part in parts)


def plain(of: Line) -> str:
    """The words of a line."""
    return "".join(part.text for part in of)


def without_secrets(of: Line) -> Line:
    """The line as it may be shown; one that holds a secret loses its tones with it."""
    words = plain(of)
    said = redact(words)
    return of if said == words else (Span(said),)


def width_of(of: Line) -> int:
    """Terminal columns of a line."""
    return sum(cells(part.text) for part in of)


def rows(*lines: Line) -> list[Row]:
    """Lines that are only read."""
    return [Row(one) for one in lines]


def heading(text: str, right: str = "", width: int = 0) -> Row:
    """A section title with an optional column title at the right edge."""
    return Row(
        spread(line(span(text, "title")), line(span(right, "dim")), width) if right else line(span(text, "title"))
    )


BLANK = Row(())


def cut(text: str, width: int) -> str:
    """`text` in at most `width` columns, ending in "…" where something was cut."""
    text = clean_line(text)
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    kept, used = [], 0
    for character in text:
        used += cells(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def cut_left(text: str, width: int) -> str:
    """Like `cut`, but keeps the end: paths are told apart by their tails."""
    text = clean_line(text)
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    return "…" + cut(text[::-1], width)[:-1][::-1]


def pad(text: str, width: int) -> str:
    """Exactly `width` columns, left-aligned, cut where too long."""
    text = cut(text, width)
    return text + " " * (width - cells(text))


def pad_left(text: str, width: int) -> str:
    """Exactly `width` columns, right-aligned."""
    text = cut(text, width)
    return " " * (width - cells(text)) + text


def crop(of: Line, width: int) -> Line:
    """A line cut to `width` columns with "…"."""
    if width_of(of) <= width:
        return of
    kept: list[Span] = []
    left = width
    for part in of:
        size = cells(part.text)
        if size >= left:
            kept.append(Span(cut(part.text + " ", left), part.tone))
            break
        kept.append(part)
        left -= size
    return tuple(kept)


def spread(left: Line, right: Line, width: int) -> Line:
    """`left` and `right` at the two edges of `width` columns; `left` gives way."""
    room = width - width_of(right)
    if room < 8:
        return crop(left, width)
    left = crop(left, room - 1)
    return (*left, Span(" " * (room - width_of(left))), *right)


def wrap(text: str, width: int) -> list[str]:
    """Break a paragraph into lines of at most `width` columns, at least four."""
    return wrapped(text, max(width, 4))


def paragraph(text: str, width: int, indent: int = 0, tone: Tone = "plain") -> list[Row]:
    """A wrapped paragraph, each line indented by `indent` columns."""
    margin = " " * indent
    return [Row(line(margin, span(part, tone))) for part in wrap(text, width - indent)]


def flow(pieces: Iterable[str], width: int, indent: int = 0, tone: Tone = "plain", gap: str = "  ") -> list[Row]:
    """Pieces side by side, `gap` between them, each kept whole; as many a line as fit."""
    lines: list[str] = []
    for piece in map(clean_line, pieces):
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
        "▏": "]", "█": "#", "░": ".", "✗": "x", "\u00a0": " ", "⚠": "!", "⋮": ":", "─": "-",
        **dict(zip("▁▂▃▄▅▆▇", ".:-=+*%", strict=True)), **dict(zip("▎▍▌▋▊▉", "-=####", strict=True)),
    }
)  # fmt: skip


def ascii_only(text: str) -> str:
    """Our own signs in ASCII, one column each; letters of other languages stay."""
    return text if text.isascii() else text.translate(_ASCII)


# --- words that more than one screen says ----------------------------------------------------------------------------

# Constants are said where they are shown.
TICKET = mark("the ticket")
THE_LINE, THE_CHANGE, THE_COMMAND, THE_DIFF = (
    mark("the line"),
    mark("the change"),
    mark("the next command"),
    mark("the diff"),
)
PLAIN_RETURN = mark("-- Enter returns to rl-oom-advisor --")


def copied_and_written(what: str, path: object) -> str:
    """After copying: a terminal cannot say whether it took the text, so the file is named."""
    return say(
        "{what} is in {path}, and in the clipboard where the terminal allows it (OSC 52).",
        what=_capitalised(say(what)),
        path=path,
    )


def copied_only(what: str, why: str) -> str:
    """After copying, where no file could be written."""
    return say(
        "{what} was sent to the clipboard (OSC 52); no file could be written: {why}",
        what=_capitalised(say(what)),
        why=why,
    )


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


SEARCH_FOR, SEARCHING, NO_HIT = mark("search the log for …"), mark("searching …"), mark("no further hit")
BOX = mark("What this box has")
LIMIT_MARK = mark("| is the limit")
DIED_HERE = mark("the run died here")
NO_COMMAND = mark("no command goes by these words")
TYPE_TO_FIND = mark("type to find a command")
NO_SUCH_CASE = mark("The knowledge has no more of this case.")
WHICH_RUN = mark("Which run died? Choose its script and its log, or either of them.")
SCRIPT, LOG = mark("script"), mark("log")
CHOSEN_SCRIPT, CHOSEN_LOG = mark("chosen as the script: {name}"), mark("chosen as the log: {name}")
OPEN_CHOSEN = mark("read these")
LOOKING_AROUND = mark("looking through this folder …")
RUNS_HERE, NEWEST_FIRST = mark("Recent runs in this folder"), mark("newest first")
OTHER_LOGS = mark("Other logs")
RAY_SESSION = mark("Ray's newest session on this machine")
HOW_TO_GIVE = mark("Next time in one go: rl-oom-advisor run.sh --log train.log. Without files: rl-oom-advisor --demo")
JUST_NOW = mark("just now")
PASTE_HERE = mark("Paste a log, a launch script, or the path of one.")
HOW_TO_PASTE = mark("With the terminal's own paste: ctrl+shift+v, cmd+v, or the middle mouse button.")
WHAT_IS_IT = mark(
    "What is it? l or Enter: a log. s: a launch script. Backspace forgets it; what you paste next is added."
)


def one_place(place: str, room: str) -> str:
    """Like "One GPU of 40.00 GiB"."""
    if not room:
        return say("One GPU" if place == "gpu" else "One host")
    return say("One GPU of {room}" if place == "gpu" else "One host of {room}", room=room)


def colours(name: str) -> str:
    """A set of colours in the palette."""
    return say("colours: {name}", name=name)


def alike(agree: int, of: int, differs: Sequence[str]) -> str:
    """How far the run is like a documented case."""
    if not differs:
        return say("{agree} of {of} facts agree with this run", agree=agree, of=of)
    return say(
        "{agree} of {of} facts agree with this run; it differs in {differs}",
        agree=agree,
        of=of,
        differs=listed(differs),
    )


def nothing_here(folder: str) -> str:
    """Where no run was found."""
    return say("No script that launches training and no log was found in {folder}, three folders deep.", folder=folder)


def cannot_be_read(why: str) -> str:
    """A folder that cannot be read."""
    return say("cannot be read: {why}", why=why.lower())


def cannot_be_written(why: str) -> str:
    """Where pasted text cannot be kept."""
    return say("it cannot be kept: {why}", why=why.lower())


def more_entries(count: int) -> str:
    """Below a folder with very many entries."""
    return say_count("and {number} entry more", "and {number} entries more", count)


def searched_for(wanted: str) -> str:
    """While a search is on."""
    return say("n N: {wanted}  (esc: marks)", wanted=wanted)


# --- gauges ----------------------------------------------------------------------------------------------------------

NO_GPU_SHOWN = mark(
    "The driver answers, and shows no GPU to this process (CUDA_VISIBLE_DEVICES, or a container without GPUs)."
)
NO_PROCESS = mark("no process on the GPUs")
NEVER_READ = mark("does not answer")

_UNSEEN = mark("GPU {gpus}: {size} held by processes that cannot be seen from here (another container or user).")
_UNSEEN_EACH = mark(
    "GPU {gpus}: up to {size} held by processes that cannot be seen from here (another container or user)."
)
_LEFT_OVER = mark("! Left over from a run that ended: pid {pids}. End them before the next start (kill, then kill -9).")
_SILENT_ABOUT = mark("GPU {gpus}: the driver does not say which processes (not permitted, or not supported).")


def lost(age: str) -> str:
    """A card that does not answer any more; its numbers are old."""
    return say("does not answer; last read {age} ago", age=age)


def held_back(reasons: Sequence[str]) -> str:
    """Why clocks are held down."""
    return say("held back by: {reasons}", reasons=listed(reasons))


def ecc(count: int) -> str:
    """Uncorrected errors."""
    return say_count("{number} uncorrected memory error (ECC)", "{number} uncorrected memory errors (ECC)", count)


def unseen(indices: Sequence[int], most: str) -> str:
    """Memory that no visible process accounts for, on these cards."""
    return say(_UNSEEN if len(indices) == 1 else _UNSEEN_EACH, gpus=in_ranges(indices), size=most)


def leftovers(held: Sequence[tuple[int, str]]) -> str:
    """Processes of a run that died and still hold memory."""
    named = listed(say("{pid} ({size})", pid=pid, size=size) for pid, size in held[:6])
    if len(held) > 6:
        named = say("{names} and {count} more", names=named, count=len(held) - 6)
    return say(_LEFT_OVER, pids=named)


def silent_about(indices: Sequence[int]) -> str:
    """Cards whose processes the driver does not tell."""
    return say(_SILENT_ABOUT, gpus=in_ranges(indices))


def documented_words(value: str) -> str:
    """Below a step: the value of a documented case, and the key that shows the case."""
    return say("documented: {value}   d shows the case", value=value)
