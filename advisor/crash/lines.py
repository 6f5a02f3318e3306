"""Reads one line of a log: removes control sequences, peels off the prefixes of Ray, torch, vLLM, SGLang, Slurm …

Frameworks print the same message behind a dozen prefixes. What matches or joins messages works on the peeled text,
what is shown keeps the printed one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct

from advisor.hostile import clean
from advisor.regex import regex

SEGMENT_LIMIT = 1 << 16
"""Bytes looked at of one physical line (or of one `\\r` redraw)."""
TEXT_LIMIT = 16_000
"""Characters kept of one line."""
_PEELS = 6

_TIME = (
    r"(?:(?P<year>\d{4})-)?(?P<month>\d\d)-(?P<day>\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)"
    r"(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
)
_LEVEL = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)"
_DIGITS = "0123456789"
_LEVELS = "DIWEC"
_PREFIXES = tuple(
    (first, re.compile(pattern))
    for first, pattern in (
        (
            "(",
            r"\((?P<who>(?:[^()]{0,80}(?:\([^()]{1,60}\))? )?pid=\d{1,10})(?:, ip=[^)]{1,60})?\)[ ]?",
        ),  # Ray, vLLM, ROLL
        ("(", r"\((?P<who>raylet|gcs_server|autoscaler|log_monitor)(?:, ip=[^)]{1,60})?\)[ ]?"),  # Ray daemons
        ("[", r"\[(?P<who>rank\d{1,5})\]:[ ]?"),  # torch's exception hook
        ("[", r"\[default(?P<role>\d{1,4})\]:"),  # torchrun --tee
        ("[", r"\[\d{1,4},(?P<task>\d{1,5})\]<std(?:err|out)>:[ ]?"),  # mpirun
        (_DIGITS, r"(?P<task>\d{1,4}): (?=\S| {1,40}\S)"),  # srun --label
        ("w", r"(?P<who>worker[\w.-]{0,40}-\d{1,4}): "),  # pdsh
        ("[" + _DIGITS, rf"\[?{_TIME}(?: (?P<who>(?:DP\d+ )?(?:TP\d+)?(?: ?EP\d+)?(?: ?PP\d+)?))?\][ ]?"),  # SGLang
        (_LEVELS, rf"{_LEVEL}:?[ ]?{_TIME}(?: \[[\w./-]{{1,80}}:\d+\]| [\w./-]{{1,80}}:\d+\]|:)[ ]?"),  # vLLM
        (_DIGITS, rf"{_TIME} ?(?:- [\w.]{{1,80}} - {_LEVEL} - |\| {_LEVEL} *\| |std(?:err|out) [FP] )?"),  # kubectl
        ("[", rf"\[{_LEVEL}\][ ]?"),
        ("[", r"\[[\w./-]{1,60}\.py:\d+(?::\w{1,60})?\][ ]?"),  # DeepSpeed's call site
        ("[", r"\[(?P<who>Rank \d{1,5})\] (?!Watchdog|To avoid|Exception|Some )"),
        ("IWEF", r"[IWEF](?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)\.\d+ +\d+ \S{1,120}?\] "),  # glog
        ("E", r"E {3}(?= *\S)"),  # pytest
        ("(", r"\((?P<who>\w+) pid=\d+\) "),
        (">", r"(?:> ?){1,4}(?=\S)"),  # quoted in a mail or a thread
    )
)
"""(characters it may begin with, regex)"""
_BY_FIRST = {
    first: tuple(regex for openings, regex in _PREFIXES if first in openings)
    for first in sorted({character for openings, _ in _PREFIXES for character in openings})
}
_COLOUR = regex("\x1b\\[[0-9;]{0,16}m")
_MARKDOWN = regex(
    r"(?<!\*)\*\*(?!\*)|(?<!\S)\*(?=\w)|(?<=\w)\*(?!\S)|\\(?=[_*<>~|`\[\]])|`(?=\d)|(?<=[\dB])`"
    r"|(?<!^)</?(?:b|i|em|strong|code|pre|p)>",
    re.IGNORECASE,
)
"""Marks of a web page's text field inside a pasted message: bold, escapes, tags, and sizes set as code."""
_HTML_BREAK = regex(r"<br ?/?>", re.IGNORECASE)
_MARKED = ("*", "\\", "<", "`")
_REPEATED = regex(r" *\[repeated (\d{1,6})x across cluster\](?: \(Ray deduplicates.*)?$")
_VISIBLE_ESCAPE = regex(r"\^\[\[[0-9;]{0,12}m")
_BAR = regex(
    r"[^|]{0,80}?\b\d{1,3}%\|[^|]{0,300}\| {0,4}[\d.]{1,20}[kMG]?/[\d.]{1,20}[kMG]? "
    r"\[[^][]{0,200}(?:/s|s/it)[^][]{0,200}\] ?(?=\S)"
)
"""A tqdm bar to which something is glued: it ends without a line break, so what comes next stands behind it."""
_CODE = regex(rb"(?:\x1b|\^\[)\[[0-?]{0,32}[ -/]{0,4}[@-~]")
_SPLIT = regex(rb"[\r\n]+")


class LogLine(Struct, frozen=True):
    """A line (or `\\r` segment of one). `number` is 1-based and counts newlines only."""

    number: int
    text: str
    """Clean and without prefixes."""
    printed: str
    """Clean, as printed."""
    process: str = ""
    """"WorkerDict pid=12 rank3"; "" where the line does not say."""
    repeats: int = 0
    """Ray's "[repeated 7x across cluster]"."""
    stamp: str = ""
    """"06-22 19:47:13", where the line carries a time."""


def read_line(raw: bytes, number: int) -> LogLine:
    """Decode, clean and peel one segment; bytes beyond SEGMENT_LIMIT are not looked at, invalid UTF-8 is replaced."""
    decoded = raw[:SEGMENT_LIMIT].decode("utf-8", "replace")
    if "\x1b[" in decoded:
        decoded = _COLOUR.sub("", decoded)
    if decoded.startswith('{"log":'):
        decoded = _docker_message(decoded)
    if "^[[" in decoded:  # escapes made visible by a terminal or a web page
        decoded = _VISIBLE_ESCAPE.sub("", decoded)
    return peel(clean(decoded, TEXT_LIMIT), number)


def peel(printed: str, number: int = 1) -> LogLine:
    """Take known prefixes off the front (six deep at most) and Ray's repeat count off the end."""
    text, repeats = printed, 0
    if "[repeated " in printed and (again := _REPEATED.search(printed)):
        text, repeats = printed[: again.start()], int(again[1])
    if "%|" in text and (bar := _BAR.match(text)):
        text = text[bar.end() :]
    if any(mark in text for mark in _MARKED):
        text = _MARKDOWN.sub("", _HTML_BREAK.sub(" ", text))
    labels: list[str] = []
    stamp = ""
    for _ in range(_PEELS):
        stripped = text.lstrip() if text[:1] == " " else text
        prefixes = _BY_FIRST.get(stripped[:1], ())
        match = next((found for prefix in prefixes if (found := prefix.match(stripped)) and found.end()), None)
        if match is None:
            break
        groups = match.groupdict()
        if groups.get("role"):
            labels.append(f"local rank {groups['role']}")
        elif groups.get("task"):
            labels.append(f"task {groups['task']}")
        elif who := (groups.get("who") or "").strip():
            labels.append(who)
        if groups.get("clock"):
            stamp = f"{groups['month']}-{groups['day']} {groups['clock']}"
        text = stripped[match.end() :]
    return LogLine(number, text, printed, " ".join(labels), repeats, stamp)


def glued_bar(line: LogLine) -> str:
    """The tqdm bar to which the text of a line is glued; "" where there is none."""
    bar = _BAR.match(line.printed) if "%|" in line.printed and "%|" not in line.text else None
    return bar[0].rstrip() if bar is not None else ""


def without_codes(raw: bytes) -> bytes:
    """The bytes without colour codes, which may stand between the words of an anchor."""
    return _CODE.sub(b"", raw) if b"\x1b[" in raw or b"^[[" in raw else raw


def segments(raw: bytes) -> list[bytes]:
    """The `\\r` redraws of a physical line, and the lines of a message that was logged with literal `\\n`."""
    broken = b"\n" in raw or b"\r" in raw
    parts = [part for part in (_SPLIT.split(raw) if broken else (raw,)) if part]
    if b"\\n" not in raw:
        return parts
    pieces: list[bytes] = []
    for part in parts:
        if b"\\n  File" in part or b"MEM(GB)" in part or b"Traceback" in part:
            pieces += [piece for piece in part.replace(b"\\t", b"\t").split(b"\\n") if piece]
        else:
            pieces.append(part)
    return pieces


def _docker_message(text: str) -> str:
    """The message of a docker json-file line; anything else as it is."""
    try:
        held = json.loads(text)
    except ValueError:
        return text
    log = held.get("log") if isinstance(held, dict) else None
    return log.rstrip("\n") if isinstance(log, str) else text


_BLOCK = 256
"""Bytes in which line breaks are looked for backwards at a time."""
_BREAKS = regex(rb"[\r\n]+")
LineAt = tuple[int, LogLine]
"""(bytes from the start of the log, line)"""


class ByteWindow:
    """Bytes of a log from offset `start`, whose first byte stands on line `number`. What is read next is written
    straight behind the last byte: `room`, then `extend`. Only what is kept when the room is used up is ever copied."""

    def __init__(self, data: bytes | bytearray = b"", start: int = 0, number: int = 1) -> None:
        self.data = data
        self.size = len(data)
        """Bytes of `data` that are filled."""
        self.start = start
        self.number = number
        self._mark = (0, number)
        self._read: dict[int, list[LogLine]] = {}

    @property
    def end(self) -> int:
        """Offset in the log behind the last byte."""
        return self.start + self.size

    def room(self, length: int) -> memoryview:
        """Place for `length` bytes behind the last one."""
        if len(self.data) < self.size + length:
            larger = bytearray(max(self.size + length, 2 * len(self.data)))
            larger[: self.size] = memoryview(self.data)[: self.size]
            self.data = larger
        return memoryview(self.data)[self.size : self.size + length]

    def extend(self, count: int) -> None:
        """`count` bytes were written there."""
        self.size += count

    def drop(self, count: int) -> None:
        """Forget the first `count` bytes. Nobody may be reading a view of the others meanwhile: they move."""
        self.number = self.number_at(count)
        left = self.size - count
        with memoryview(self.data) as view:
            view[:left] = view[count : self.size]
        self.size = left
        self.start += count
        self._mark = (0, self.number)
        self._read = {offset: lines for offset, lines in self._read.items() if offset >= self.start}

    def copy(self, begin: int, end: int) -> bytes:
        """data[begin:end], to be kept."""
        return bytes(memoryview(self.data)[begin:end])

    def number_at(self, position: int) -> int:
        """The 1-based line number at a position of `data`; cheap when positions rise."""
        at, number = self._mark
        if position < at:
            return number - self.data.count(b"\n", position, at)
        number += self.data.count(b"\n", at, position)
        self._mark = (position, number)
        return number

    def bounds(self, position: int) -> tuple[int, int]:
        """Begin and end of the line around a position; at most SEGMENT_LIMIT to either side."""
        floor = max(position - SEGMENT_LIMIT, 0)
        newline = self.data.rfind(b"\n", floor, position)
        carriage = self.data.rfind(b"\r", max(newline, floor), position)
        found = max(newline, carriage)
        return (found + 1 if found >= 0 else floor), self.end_of(position)

    def end_of(self, position: int) -> int:
        """Where the line that holds `position` ends (exclusive, before its line break)."""
        limit = min(position + SEGMENT_LIMIT, self.size)
        newline = self.data.find(b"\n", position, limit)
        limit = newline if newline >= 0 else limit
        carriage = self.data.find(b"\r", position, limit)
        return carriage if carriage >= 0 else limit

    def next_break(self, position: int) -> int:
        """Where the next newline or carriage return stands; `size` where none is left."""
        newline = self.data.find(b"\n", position, self.size)
        limit = newline if newline >= 0 else self.size
        carriage = self.data.find(b"\r", position, limit)
        return carriage if carriage >= 0 else limit

    def lines_at(self, begin: int, end: int, number: int) -> list[LogLine]:
        """The line at data[begin:end]; several where a message was logged with literal line breaks."""
        cached = self._read.get(self.start + begin)
        if cached is not None and end < self.size:
            return cached
        lines = [read_line(part, number) for part in segments(self.copy(begin, end))]
        self._read[self.start + begin] = lines
        return lines

    def below(self, end: int, number: int) -> Iterator[LineAt]:
        """Lines after the one that ends at `end`, which stands on line `number`, in order."""
        size = self.size
        while end < size:
            if (breaks := _BREAKS.match(self.data, end, size)) is not None:
                number += self.data.count(b"\n", end, breaks.end())
                end = breaks.end()
            if end >= size:
                return
            begin, end = end, self.end_of(end)
            for line in self.lines_at(begin, end, number) if begin < end else ():
                yield self.start + begin, line

    def above(self, begin: int, number: int) -> Iterator[LineAt]:
        """Lines before the one that begins at `begin`, which stands on line `number`, nearest first."""
        while begin > 0:
            before = begin
            if self.data[begin - 1] in b"\r\n":
                block = self.copy(max(begin - _BLOCK, 0), begin)
                left = len(block.rstrip(b"\r\n"))
                number -= block.count(b"\n", left)
                before -= len(block) - left
            begin = self.bounds(before)[0] if before > 0 else 0
            for line in reversed(self.lines_at(begin, before, number)) if begin < before else ():
                yield self.start + begin, line

    def lines(self, begin: int, end: int) -> Iterator[LineAt]:
        """All lines that touch data[begin:end]."""
        position = self.bounds(max(begin, 0))[0]
        number = self.number_at(position)
        stop = self.end_of(position)
        for line in self.lines_at(position, stop, number):
            yield self.start + position, line
        for offset, line in self.below(stop, number):
            if offset - self.start >= end:
                return
            yield offset, line
