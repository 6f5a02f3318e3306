"""Scans a stream of log bytes in two stages: literals over bytes at grep's speed, then regexes on lines around a hit.

Memory is bounded whatever the log: a window of about 1.5 MiB of bytes, the beginning and the end as lines, and the
first and last few finds of each signature with the lines around them. Signatures without anchors are looked for only
on the lines that were kept.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

import ahocorasick_rs
from msgspec import Struct, field
from msgspec.structs import replace

from advisor.crash.finds import AFTER, BEFORE, FAILURES, ContextStore, Find, FindStore, LogFind
from advisor.crash.lines import SEGMENT_LIMIT, TEXT_LIMIT, ByteWindow, LogLine, glued_bar, without_codes
from advisor.crash.log_reader import LogReader
from advisor.crash.match import (
    Flood,
    SignatureMatch,
    Surroundings,
    Throttle,
    beside,
    flood_of,
    match_around,
    tries_in_vain,
)
from advisor.crash.patterns import Catalogue, FieldValue, Ready, Searcher, fields_of
from advisor.crash.sources import LogSource
from advisor.crash.statements import told_in
from advisor.crash.tracebacks import frame_in
from advisor.crash.verdict import ENDS
from advisor.knowledge.schema import Signature
from advisor.language import say
from advisor.regex import regex
from advisor.words import Memory

CHUNK = 256 << 10
"""Bytes read and searched at a time, once a log has shown that it is long."""
_FIRST = 64 << 10
"""Bytes read at first: most of what is read is a few lines, and room is not had for nothing."""
_ROOM = 8 * CHUNK
"""Bytes of the window at most: what is still of use is moved to its beginning only where this is used up."""
LINE_INDEX_STEP = 64 << 20
"""Bytes between two places of which it is remembered how many lines stand before them."""
HEAD = 512 << 10
TAIL = 256 << 10
_LINES = 8_000
"""Lines kept of the beginning and of the end."""
_REACH, _BEFORE_A_HIT = TEXT_LIMIT // 2, 200
"""Bytes before a hit from which on a line is not read from its beginning, as its text would end before the hit; bytes
that are read before it then."""
_NEAR_AFTER = AFTER + 2 * SEGMENT_LIMIT
"""Bytes that are there behind a hit when it is looked at, or the log ends: all that is kept after a find."""
_NEWLINE = 10
_UNBROKEN = 16
"""Stretches of one endless line that are looked at; what follows in it is passed over."""
_ALIKE, _SHAPES = 3, 4_096
"""Lines that read alike and were looked at in vain before the next ones are not; how many such."""
_ANY_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_NUMBER, _WORD_BEGINS = regex(r"\d+"), regex(r"(?<!\S)\S")
_LEAST_REST = 24
"""Characters of a message that break off at the end of a log and still tell which one it was: three words or more."""
_LAST_LINES = 12
"""Lines before the end of a log in which an ordinary exception may be what ended the run."""


class Scanned(Struct):
    """What a scan kept of one log."""

    name: str
    finds: list[Find] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    head: list[LogLine] = field(default_factory=list)
    around: list[LogLine] = field(default_factory=list)
    """Lines before and after finds, in order."""
    tail: list[LogLine] = field(default_factory=list)
    lines_read: int = 0
    bytes_read: int = 0
    line_index: list[tuple[int, int]] = field(default_factory=list)
    """(lines before, offset) of some lines' beginnings, LINE_INDEX_STEP or more apart."""
    doubts: list[str] = field(default_factory=list)
    """What of the log was not read or looked at, in sentences."""

    def kept_lines(self) -> list[LogLine]:
        """Every line that was kept, in order and once: beginning, surroundings of finds, end."""
        found: dict[tuple[int, str], LogLine] = {}
        for line in (*self.head, *self.around, *(find.first for find in self.finds), *self.tail):
            found.setdefault((line.number, line.printed), line)
        return sorted(found.values(), key=lambda line: line.number)


def scan(source: LogSource, catalogue: Catalogue, progress: Callable[[int], None] | None = None) -> Scanned:
    """Read a whole log. Raises LogError where it cannot be read. Time is linear in its size. `progress` is called now
    and then with the bytes read so far."""
    run = _Scan(catalogue, head=0 if source.is_part else HEAD)
    searcher = Searcher(catalogue.triggers)
    with LogReader(source) as reader:
        while run.step(reader, searcher):
            if progress is not None:
                progress(run.searched)
    scanned = run.finish(source.name)
    scanned.doubts += [reader.broke_off] if reader.broke_off else []
    return scanned


class _Scan:
    """One pass over one log: what is read is searched for literals, then the lines of the hits are looked at."""

    def __init__(self, catalogue: Catalogue, head: int) -> None:
        """`head`: bytes of the beginning whose lines are kept; none where the log does not begin there."""
        self.catalogue, self.longest_head = catalogue, head
        self.window = ByteWindow()
        self.head = bytearray()
        self.pending: deque[int] = deque()
        self.searched = 0
        """Offset up to which all hits are known."""
        self.done = -1
        """Offset up to which hits are accounted for."""
        self.unbroken = 0
        """Looks in a row at a line too long to see both ends of."""
        self.counts: Counter[str] = Counter()
        self.finds: dict[str, FindStore] = {}
        self.contexts = ContextStore()
        self.passed_over = False
        """Whether a stretch of an endless line was not looked at."""
        self.floods: dict[tuple[Ready, ...], Flood] = {}
        self.vain = Throttle(_ALIKE, _SHAPES)
        """Lines on which nothing matched, by what they read like but for their numbers."""
        self.pieces = tries_in_vain()
        self.line_index: list[tuple[int, int]] = []

    def step(self, reader: LogReader, searcher: Searcher) -> bool:
        """Go on with what can be read next; False at the end of the log."""
        window = self.window
        length = min(CHUNK, max(_FIRST, window.end))
        if window.size + length > _ROOM:
            self._forget()
        begin = window.size
        room = window.room(length)
        window.extend(reader.read_into(room))
        if len(self.head) < self.longest_head:
            self.head += room[: min(self.longest_head - len(self.head), window.size - begin)]
        room.release()
        begin = self._passed_over(begin)
        if begin < window.size:
            self.pending.extend(searcher.search(window, begin))
        more = self.searched < window.end
        self.searched = window.end
        self._look(self.searched - _NEAR_AFTER)
        return more

    def _forget(self) -> None:
        """Make room by what nobody will look at any more."""
        window = self.window
        oldest = min(self.pending[0] if self.pending else self.searched, self.searched - TAIL)
        spare = oldest - BEFORE - SEGMENT_LIMIT - window.start
        if spare > 0:
            window.drop(spare)
            self._index_lines()

    def _index_lines(self) -> None:
        """Remember the first line that begins in the window, where the last one remembered is a step back."""
        window = self.window
        if window.start - (self.line_index[-1][1] if self.line_index else 0) >= LINE_INDEX_STEP:
            newline = window.data.find(b"\n", 0, window.size)
            if newline >= 0:
                self.line_index.append((window.number, window.start + newline + 1))

    def _passed_over(self, begin: int) -> int:
        """Where in the window the search has to go on: an endless line is passed over to its end, if it has one."""
        window = self.window
        last = self.done - window.start
        if self.unbroken <= _UNBROKEN or last < 0:
            return begin
        end = window.next_break(last)
        if end >= window.size:
            self.done = window.end
        return max(begin, end)

    def finish(self, name: str) -> Scanned:
        """Look at the rest, and put together what was kept."""
        window = self.window
        self._look(self.searched + 1)
        self._last_of_floods()
        size = window.size
        scanned = Scanned(name, counts=self.counts, bytes_read=window.end, line_index=self.line_index)
        ends_open = size > 0 and window.data[size - 1] != _NEWLINE
        scanned.lines_read = window.number_at(size) - 1 + ends_open
        covered = len(self.head) - window.start
        if covered < size:
            scanned.tail = list(deque((line for _, line in window.lines(max(size - TAIL, covered), size)), _LINES))
        del window
        self.window = ByteWindow()  # its room is wanted now for lines
        head, self.head = ByteWindow(self.head), bytearray()
        scanned.head = [line for _, line in islice(head.lines(0, head.size), _LINES)] if head.size else []
        finds = (find for store in self.finds.values() for find in store.finds())
        if self.passed_over:
            scanned.doubts = [say("Not all of {file} was looked at: one line of it has no end.", file=name)]
        scanned.finds = sorted(finds, key=lambda find: (find.offset, find.first.number, find.column))
        scanned.around = self.contexts.give(scanned.finds)
        return scanned

    def _look(self, until: int) -> None:
        while self.pending and self.pending[0] < until:
            offset = self.pending.popleft()
            if offset > self.done:
                self._look_at(offset)

    def _look_at(self, offset: int) -> None:
        """Test the signatures on the line at `offset`."""
        window = self.window
        at = offset - window.start
        if self.unbroken and window.next_break(max(self.done - window.start, 0)) < at:
            self.unbroken = 0
        begin, end = window.bounds(at)
        self.done = window.start + end
        self.unbroken = self.unbroken + 1 if end - begin > SEGMENT_LIMIT else 0
        if self.unbroken > _UNBROKEN:
            self.passed_over = True
            return
        begin = begin if at - begin < _REACH else at - _BEFORE_A_HIT
        raw = window.copy(begin, end)
        shape = hash(raw.translate(_ANY_DIGIT))
        if self.vain.exhausted(shape):
            return
        candidates = self.catalogue.candidates(without_codes(raw))
        if candidates and self._is_flood(candidates, window.start + begin, raw):
            return
        if not candidates or not self._matches(begin, end, candidates):
            self.vain.note(shape)

    def _matches(self, begin: int, end: int, candidates: tuple[Ready, ...]) -> bool:
        """Test the signatures on every line between two ends; whether one matched."""
        window, number, matches = self.window, self.window.number_at(begin), False
        for index in range(len(window.lines_at(begin, end, number))):
            around = Surroundings(window, begin, end, number, index)
            matched = match_around(around, candidates, self.pieces)
            for one in (matched, *beside(matched, around, candidates)) if matched is not None else ():
                self._keep(one)
            matches = matches or matched is not None
        return matches

    def _keep(self, matched: SignatureMatch) -> None:
        window, signature = self.window, matched.ready.signature
        last = matched.lines[-1][0]
        self.done = max(self.done, window.start + window.end_of(last - window.start))
        self.counts[signature.id] += 1 + matched.lines[0][1].repeats
        store = self.finds.setdefault(signature.id, FindStore(signature))
        if store.wants_context():
            self.contexts.take(window, signature, matched.lines[0][0], last)
        store.add(matched)

    def _is_flood(self, candidates: tuple[Ready, ...], offset: int, raw: bytes) -> bool:
        """Whether so many lines like this one came that it is only counted; every now and then one is looked at."""
        flood = self.floods.get(candidates)
        if flood is None:
            flood = self.floods[candidates] = flood_of(candidates)
        if flood.passes():
            return False
        flood.last.append((offset, self.window.number_at(offset - self.window.start), raw[:SEGMENT_LIMIT]))
        flood.skipped += 1
        return True

    def _last_of_floods(self) -> None:
        """Look at the last lines that were only counted."""
        for candidates, flood in self.floods.items():
            matched = None
            for offset, number, raw in flood.last:
                around = Surroundings(ByteWindow(raw, offset, number), 0, len(raw), number)
                matched = match_around(around, candidates, tries_in_vain()) or matched
                if matched is not None:
                    signature = matched.ready.signature
                    self.finds.setdefault(signature.id, FindStore(signature)).add(matched)
            if matched is not None:
                self.counts[matched.ready.signature.id] += flood.skipped


# --- Signatures without anchors, on the lines that were kept ---------------------------------------------------------


class _UnanchoredSignatures:
    """Signatures without anchors, and the literals that show which of them a line may match."""

    def __init__(self, catalogue: Catalogue) -> None:
        every, self.words = catalogue.ready, catalogue.signatures.statements
        entries = [ready for ready in every if not ready.signature.anchors]
        self.always = [entry for entry in entries if not entry.signature.within]
        self._literals = [(literal, entry) for entry in entries for literal in entry.signature.within]
        self._search = ahocorasick_rs.AhoCorasick(
            [literal for literal, _ in self._literals], matchkind=ahocorasick_rs.MatchKind.Standard
        )
        self._known: dict[frozenset[int], Sequence[Ready]] = {}
        self._shortages = [_shape(ready.signature.sample) for ready in every if ready.signature.verdict == "oom"]

    def may_be_cut(self, text: str) -> bool:
        """Whether an exception's text may be the beginning of a message that tells of a shortage."""
        shape = _shape(text.rstrip())
        return any(sample.startswith(shape) for sample in self._shortages)

    def told(self, line: LogLine, candidates: Sequence[Ready]) -> Memory | None:
        """The memory that a line tells ran out in plain words, where some of the candidates stand for that."""
        asked = any(one.signature.account for one in candidates)
        told = told_in(line.text, self.words.account, line.number) if self.words and asked else None
        return told[0] if told is not None else None

    def of(self, text: str) -> Sequence[Ready]:
        """The entries to test on a line, in their order."""
        hits = frozenset(index for index, _, _ in self._search.find_matches_as_indexes(text, overlapping=True))
        if not hits:
            return self.always
        if hits not in self._known:
            chosen = {id(entry): entry for _, entry in (self._literals[index] for index in sorted(hits))}
            self._known[hits] = sorted([*chosen.values(), *self.always], key=lambda entry: entry.signature.rank)
        return self._known[hits]


_unanchored = lru_cache(maxsize=1)(_UnanchoredSignatures)


def unanchored_finds(catalogue: Catalogue, logs: Sequence[Sequence[LogLine]]) -> list[LogFind]:
    """Finds of signatures without anchors. An ordinary end without a traceback only warns, at the end."""
    entries = _unanchored(catalogue)
    return [LogFind(index, find) for index, lines in enumerate(logs) for find in _unanchored_in(entries, lines)]


def cut_finds(catalogue: Catalogue, logs: Sequence[Sequence[LogLine]]) -> list[LogFind]:
    """Finds in last lines that break off inside a message: what is left of it agrees with the sample of a signature."""
    samples = [(_shape(ready.signature.sample), ready.signature) for ready in catalogue.ready]
    ends = [(index, lines[-1]) for index, lines in enumerate(logs) if lines]
    return [LogFind(index, find) for index, line in ends for find in _cut_in(line, samples)]


def _cut_in(line: LogLine, samples: Sequence[tuple[str, Signature]]) -> Iterator[Find]:
    """The longest rest that one verdict's samples alone hold; the signature that is tested first gives it its name."""
    text, longest = line.text.rstrip(), max((len(sample) for sample, _ in samples), default=0)
    shape = _shape(text)
    for word, shaped in zip(_WORD_BEGINS.finditer(text), _WORD_BEGINS.finditer(shape), strict=True):
        rest = shape[shaped.start() :]
        if len(rest) < _LEAST_REST:
            return
        if len(rest) > longest:
            continue
        holding = [one for sample, one in samples if one.role in FAILURES and _breaks_off(rest, sample, one.anchors)]
        if len({(one.verdict, one.memory) for one in holding}) == 1:
            first = min(holding, key=lambda one: one.rank)
            yield Find(first, {}, line, line.number, line.printed, line.number, word.start())
            return


def _breaks_off(rest: str, sample: str, anchors: Sequence[str]) -> bool:
    """Whether the rest ends inside a word of the sample, and has a literal by which the message is known."""
    at = f" {sample}".find(f" {rest}")
    following = sample[at + len(rest) :][:1] if at >= 0 else ""
    return following.isalpha() and rest[-1:].isalpha() and any(_shape(anchor) in rest for anchor in anchors)


def _unanchored_in(entries: _UnanchoredSignatures, lines: Sequence[LogLine]) -> Iterator[Find]:
    in_trace: set[str] = set()
    flush = [line.number for line in lines if not line.text[:1].isspace()]  # the frames of a traceback are indented
    late = flush[-_LAST_LINES:][0] if flush else 0
    for line in lines:
        if bar := glued_bar(line):
            yield from _unanchored_in(entries, [replace(line, text=bar, printed=bar)])
        below = line.process in in_trace
        if frame_in(line):
            in_trace.add(line.process)
            continue
        if below and not line.text[:1].isspace():
            in_trace.discard(line.process)
        candidates = entries.of(line.text)
        told = entries.told(line, candidates)
        for entry in candidates:
            ordinary = entry.signature.id in ENDS and not below
            if ordinary and line.number < late:
                continue
            match = entry.regex.search(line.text)
            cut = entry.signature.id in ENDS and entries.may_be_cut(line.text)
            tells = not entry.signature.account or told == entry.signature.memory
            if match is not None and tells and not cut:
                yield _find(replace(entry.signature, role="warning") if ordinary else entry.signature, match, line)


def _shape(text: str) -> str:
    return _NUMBER.sub("0", text)


def _find(signature: Signature, match: re.Match[str], line: LogLine) -> Find:
    fields: dict[str, FieldValue] = {name: text for name, text in match.groupdict().items() if text}
    if signature.role != "progress":
        fields = fields_of(signature, match)
    return Find(signature, fields, line, line.number, line.printed, line.number, match.start())
