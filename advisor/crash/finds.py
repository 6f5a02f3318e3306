"""Stores what a scan found: some matches of each signature, the bytes around them, and their form as evidence."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Evidence, EvidenceRole, TopUser
from advisor.crash.lines import ByteWindow, LineAt, LogLine
from advisor.crash.match import SignatureMatch
from advisor.crash.patterns import FieldValue, fields_of
from advisor.hostile import clean
from advisor.knowledge.schema import Signature
from advisor.redact import redact
from advisor.words import Memory, Verdict

_FIRST, _LAST, _BETWEEN = 20, 20, 120
"""Finds of one signature that are kept: the first, the last, and of readings some in between."""
_WITH_CONTEXT = 8
"""Finds of one signature whose surroundings are kept: traceback, table, what led there."""
WRAPPER = "wrapper"
"""Field of a line in which Ray wraps torch's and its own OutOfMemoryError alike: what stands elsewhere decides."""
FAILURES = ("cause", "hint", "pointer")
"""Roles of lines that speak of a failure."""
BEFORE, _BEFORE_HINT = 96 << 10, 16 << 10
"""Bytes kept before what may have been the cause (its traceback, between the lines of other processes), or a hint."""
AFTER = 24 << 10
"""Bytes kept after a find."""
_MOST = 3 << 20
"""Bytes kept of one log around finds."""
_LINES, _ALL_LINES = 3_000, 30_000
"""Lines given before or after one find, and of one log altogether."""
_TEXT = 4_000
"""Characters of a message that are shown."""


class Find(Struct, frozen=True):
    """A signature that matched, with its surroundings."""

    signature: Signature
    fields: dict[str, FieldValue]
    first: LogLine
    last_number: int
    text: str
    """The printed lines it covers."""
    offset: int
    """Bytes from the start of the (decompressed) log."""
    column: int = 0
    """Characters before it on its line."""
    before: tuple[LogLine, ...] = ()
    after: tuple[LogLine, ...] = ()


class LogFind(Struct, frozen=True):
    """A find and the log it stands in (by order of reading)."""

    log: int
    find: Find

    @property
    def id(self) -> str:
        return self.find.signature.id

    @property
    def role(self) -> str:
        return self.find.signature.role

    @property
    def verdict(self) -> Verdict | None:
        return self.find.signature.verdict

    @property
    def memory(self) -> Memory:
        return self.find.signature.memory

    @property
    def is_shortage(self) -> bool:
        return self.role == "cause" and self.verdict == "oom"

    @property
    def number(self) -> int:
        """The line on which it begins."""
        return self.find.first.number

    @property
    def place(self) -> tuple[int, int, int, int]:
        """(log, line, offset, column): finds made on lines alone know no offset."""
        return self.log, self.find.first.number, self.find.offset, self.find.column


class FindStore:
    """The finds of one signature that are kept. Of readings also some in between, evenly thinned."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._first: list[SignatureMatch] = []
        self._between: list[SignatureMatch] = []
        self._last: deque[SignatureMatch] = deque(maxlen=_LAST)
        self._seen, self._stride = 0, 1

    def wants_context(self) -> bool:
        """Whether the surroundings of the next find are to be kept."""
        return len(self._first) < _WITH_CONTEXT and self._signature.role in FAILURES

    def add(self, matched: SignatureMatch) -> None:
        """Keep it, or let go of one that is in the way."""
        if len(self._first) < _FIRST:
            self._first.append(matched)
            return
        if len(self._last) == _LAST and self._signature.role == "telemetry":
            self._seen += 1
            if self._seen % self._stride == 0:
                self._between.append(self._last[0])
            if len(self._between) > _BETWEEN:
                self._between = self._between[1::2]
                self._stride *= 2
        self._last.append(matched)

    def finds(self) -> Iterator[Find]:
        """What was kept, in order."""
        for matched in (*self._first, *self._between, *self._last):
            offset, first = matched.lines[0]
            text = "\n".join(line.printed for _, line in matched.lines)
            fields = fields_of(self._signature, matched.match)
            last = matched.lines[-1][1].number
            yield Find(self._signature, fields, first, last, text, offset, matched.column)


class _KeptBytes(Struct):
    start: int
    number: int
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class ContextStore:
    """The surroundings of finds, taken while their bytes are at hand, each byte once however many finds it is near."""

    def __init__(self) -> None:
        self._kept: list[_KeptBytes] = []
        self._held = 0
        self._lasts: dict[int, int] = {}
        """Offset of a find → that of its last line."""

    def take(self, window: ByteWindow, signature: Signature, first: int, last: int) -> None:
        """Keep what stands around a find that begins at offset `first` and whose last line begins at `last`."""
        if self._held > _MOST:
            return
        position = window.bounds(max(first - _reach_before(signature) - window.start, 0))[0]
        end = min(window.end_of(last - window.start) + AFTER, window.size)
        latest = self._kept[-1] if self._kept else None
        if latest is not None and latest.start <= window.start + position <= latest.end:
            fresh = window.copy(latest.end - window.start, end) if latest.end - window.start < end else b""
            latest.data += fresh
        else:
            fresh = window.copy(position, end)
            self._kept.append(_KeptBytes(window.start + position, window.number_at(position), fresh))
        self._held += len(fresh)
        self._lasts[first] = last

    def give(self, finds: list[Find]) -> list[LogLine]:
        """Put the lines before and after them into `finds`; all lines, in order, come back."""
        every: list[LogLine] = []
        for kept in self._kept:
            window = ByteWindow(kept.data, kept.start, kept.number)
            lines = list(islice(window.lines(0, len(kept.data)), max(_ALL_LINES - len(every), 0)))
            offsets = [offset for offset, _ in lines]
            for index, find in enumerate(finds):
                if find.offset in self._lasts and kept.start <= find.offset < kept.end:
                    finds[index] = _surrounded(find, self._lasts[find.offset], lines, offsets)
            every.extend(line for _, line in lines)
        return every


def _reach_before(signature: Signature) -> int:
    return BEFORE if signature.role == "cause" else _BEFORE_HINT


def _surrounded(find: Find, last: int, lines: Sequence[LineAt], offsets: Sequence[int]) -> Find:
    until, begin = bisect_left(offsets, find.offset), bisect_right(offsets, last)
    from_ = bisect_left(offsets, find.offset - _reach_before(find.signature), 0, until)
    before = tuple(line for _, line in lines[max(from_, until - _LINES) : until])
    end = bisect_left(offsets, last + AFTER)
    return replace(find, before=before, after=tuple(line for _, line in lines[begin : min(end, begin + _LINES)]))


# --- Finds as evidence -----------------------------------------------------------------------------------------------


def as_evidence(
    one: LogFind, names: Sequence[str], role: EvidenceRole | None = None, rows: Iterable[LogLine] = ()
) -> Evidence:
    """A find as evidence, in `role` unless it is a hint. `names`: of the logs; `rows`: of Ray's table of users."""
    find, signature = one.find, one.find.signature
    text = "\n".join([find.text, *(row.printed for row in rows)]) if one.id == "ray-top-users" else find.text
    shown = redact(clean(text, _TEXT))
    if WRAPPER in find.fields and role != "cause":
        return Evidence(one.id, "pointer", names[one.log], one.number, shown, process=find.first.process)
    return Evidence(
        signature=one.id,
        role=role if role and signature.role != "hint" else signature.role,  # type: ignore[arg-type]
        file=names[one.log],
        line=one.number,
        text=shown,
        memory=signature.memory,
        phase=signature.phase,
        fields=find.fields,
        process=find.first.process,
        repeats=find.first.repeats,
    )


def victims(cause: Evidence, users: Sequence[TopUser]) -> list[Evidence]:
    """The killed Ray task, where it did not fill the node: a larger process exists, or it held under a quarter."""
    held, pid, node = (cause.fields.get(name) for name in ("task_bytes", "pid", "node_used_bytes"))
    if not isinstance(held, int) or not isinstance(node, int):
        return []
    if held > node // 4 and not any(user.pid != pid and user.used_bytes > held for user in users):
        return []
    fields = {name: cause.fields[name] for name in ("task", "task_bytes", "pid") if name in cause.fields}
    return [replace(cause, role="victim", fields=fields)]


def deduplicated(
    rest: Sequence[LogFind], cause: LogFind | None, names: Sequence[str], first: list[Evidence]
) -> list[Evidence]:
    """The other finds, equal ones (numbers aside) as one with a count; repeats of the cause count on first[0]."""
    seen: dict[tuple[str, str], tuple[list[Evidence], int]] = {}
    unique: list[Evidence] = []
    if cause is not None:
        seen[cause.id, _masked(cause.find.text)] = first, 0
    for one in rest:
        key = one.id, _masked(one.find.text)
        if key not in seen:
            seen[key] = unique, len(unique)
            echoes = cause is not None and (one.role, one.verdict, one.memory) == ("cause", cause.verdict, cause.memory)
            unique.append(as_evidence(one, names, "echo" if echoes else None))
            continue
        where, at = seen[key]
        repeats = where[at].repeats + 1 + one.find.first.repeats
        latest = one.role == "telemetry" and where is unique  # of readings the latest tells most
        where[at] = replace(as_evidence(one, names) if latest else where[at], repeats=repeats)
    return unique


def _masked(text: str) -> str:
    """A message without its numbers and without Ray's count of repeats."""
    return re.sub(r"\d+(?:\.\d+)?", "#", text.partition(" [repeated ")[0])[:600]
