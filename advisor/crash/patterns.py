"""Makes signatures ready to match, their printed sizes as bytes, and searches a log for the literals of their anchors.

How long a search takes depends on how many literals there are: some fifty are told apart by their first bytes with
vector instructions, beyond sixty-four the search falls back to an automaton many times slower (measured with
ahocorasick_rs 1.0.3), so more of them are searched for in several passes. A trigger is short, begins with letters that
are rare in logs, and stands for several anchors; which of them is meant is looked up on the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import ceil

import ahocorasick_rs
from msgspec import Struct

from advisor.crash.lines import ByteWindow
from advisor.knowledge.schema import Signature, Signatures
from advisor.regex import compiled, regex
from advisor.units import read_size

_SIZE = r"\d{1,20}(?:\.\d{1,20})? ?(?:bytes|[KMGTPE]i?B)"
_NUM = r"\d{1,20}(?:\.\d{1,20})?"
_BLANK = regex(r"(\[(?:\\.|[^\]\\])*\]|\\.)| \??")
"""A character class or an escaped character, which stays, or a blank of a pattern."""
FieldValue = int | float | str
_ANYWHERE = 1 << 20
_LONGEST_NUMBER = 24
"""Digits of a size; what is longer is none."""
_BILLION = "e9"
"""The unit of sizes that a program divided by 10^9, where "GB" is read as 2^30 elsewhere."""


class Ready(Struct, frozen=True, eq=False):
    """A signature and its regex, which is compiled when it is first needed."""

    signature: Signature
    pattern: str

    @property
    def regex(self) -> re.Pattern[str]:
        return compiled(self.pattern)

    @property
    def edges(self) -> tuple[tuple[str, int, int], ...]:
        """(anchor, most characters before it, most after it on its line) where a wrap may have split the message.
        Further from both ends of its line, the anchor would stand in a message that is complete or none."""
        return _edges(self.pattern, self.signature.sample, self.signature.anchors)


class Catalogue:
    """All signatures, look-alikes first, and the few literals that cover their anchors."""

    def __init__(self, signatures: Signatures) -> None:
        self.signatures = signatures
        ordered = sorted(signatures.signatures, key=lambda signature: signature.rank)
        self.ready = tuple(Ready(signature, expand(signature)) for signature in ordered)
        owners: dict[str, list[Ready]] = {}
        for ready in self.ready:
            for anchor in ready.signature.anchors:
                owners.setdefault(anchor, []).append(ready)
        self.triggers = trigger_set(owners)
        self._owners = list(owners.values())
        self._anchors = ahocorasick_rs.BytesAhoCorasick(
            [anchor.encode() for anchor in owners], matchkind=ahocorasick_rs.MatchKind.Standard
        )
        self._known: dict[frozenset[int], tuple[Ready, ...]] = {}

    def candidates(self, raw: bytes) -> tuple[Ready, ...]:
        """Signatures whose anchors the bytes hold, in the order they are to be tested."""
        found = self._anchors.find_matches_as_indexes(raw, overlapping=True)
        if not found:
            return ()
        hits = frozenset([anchor for anchor, _, _ in found])
        known = self._known.get(hits)
        if known is None:
            owners = {id(ready) for hit in hits for ready in self._owners[hit]}
            known = self._known[hits] = tuple(ready for ready in self.ready if id(ready) in owners)
        return known


_last: list[Catalogue] = []
"""The catalogue that was made last: a log is read up to four times (its end, its whole, both unwrapped)."""


def catalogue_of(signatures: Signatures) -> Catalogue:
    """The catalogue of these signatures; made once where one reading follows another."""
    if not _last or _last[0].signatures is not signatures:
        _last[:] = [Catalogue(signatures)]
    return _last[0]


@lru_cache(maxsize=1024)
def _edges(pattern: str, sample: str, anchors: tuple[str, ...]) -> tuple[tuple[str, int, int], ...]:
    begin, end = _core(compiled(pattern), sample)
    edges = []
    for anchor in anchors:
        at = sample.find(anchor, begin)
        inside = 0 <= at < end
        up = 16 + (at - begin) * 5 // 4 if inside else _ANYWHERE
        edges.append((anchor, up, 24 + (end - at - len(anchor)) * 5 // 4 if inside else _ANYWHERE))
    return tuple(edges)


def _core(regex: re.Pattern[str], sample: str) -> tuple[int, int]:
    """The shortest beginning of the sample's message that the pattern knows: what must be there of any message."""
    low, high = 1, len(sample)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if regex.search(sample[:middle]) else (middle + 1, high)
    match = regex.search(sample[:low])
    return (match.start() if match else 0), low


def expand(signature: Signature) -> str:
    """The regex with `{size}` and `{num}` filled in; where a message may wrap, spaces match any white space or none."""
    pattern = signature.pattern.replace("{size}", _SIZE).replace("{num}", _NUM)
    return _BLANK.sub(lambda kept: kept[1] or r"\s{0,9}", pattern) if signature.span_lines > 1 else pattern


def fields_of(signature: Signature, match: re.Match[str]) -> dict[str, FieldValue]:
    """What the message printed: sizes as bytes under their field names, numbers as numbers, the rest as text."""
    found: dict[str, FieldValue] = {}
    for group, text in match.groupdict().items():
        if text is None:
            continue
        rule = signature.sizes.get(group)
        name = rule.split()[0] if rule else group.rstrip("_")
        value = _bytes(text, rule) if rule else _scalar(text)
        if value is not None:
            found[name] = value
    return found


def _bytes(text: str, rule: str) -> int | None:
    unit = rule.partition(" ")[2]
    compact = re.sub(r"\s+", "", text)
    if unit == _BILLION:
        return round(float(compact) * 10**9) if len(compact) < _LONGEST_NUMBER else None
    return read_size(compact + unit)


def _scalar(text: str) -> FieldValue:
    compact = text.strip()
    if compact.isascii() and compact.isdigit() and len(compact) < 19:
        return int(compact)
    if re.fullmatch(r"\d{1,15}\.\d{1,15}", compact):
        return float(compact)
    return compact


FAST = 48
"""Literals up to which one pass stays quick."""
TRIGGERS = (
    *("f memory", "f-memory", "OUT_OF_M", "STATUS_", "ried to alloc", "nable to ", "annot all", "PyTorch", "capac"),
    *("CUDA", "CPUAlloc", "cumem", "bad_alloc", "torch_mem", "xpandable", "virtual", "mem=", " GiB", "(GB)"),
    *("KV cache", "cache blo", "seq len (", "desired GPU", "Free memo", "Not enough", "Error in m", "ng manager"),
    *("ak detec", "Memory", "emory us", "Spilled", "StoreFull", "ray.exc", "dError", "esource", "ry limit"),
    *("DUE TO", "CANCELLED", "Kille", "kille", "illegal mem", " SIG", "(SIG", ".SIGK", "sigquit", "exit", "Exit"),
    *("oom-k", "oom_k", "Traceback", "hared me", "dev/shm", "space le", "Bus err", "Segmentation", "Too many", "NVRM"),
    *("CCL WARN", "nccl", "unhandled", "tchdog", "failed to start", "graph failed", "tion failed", "EL0004"),
    *("rtMalloc", "cache flu"),
)
COLOURED = (
    *("mmemory", "m memory", "mblocks", "m blocks", "menough", "m enough", "mallocate", "m allocate", "mspace"),
    *("mleft", "mleak", "mdetected", "mSIG", "mcache", "m cache", "mfailed", "m failed", "mWARN", "m WARN", "merror"),
    *("0m error", "9m error", "mmanager", "m manager"),
)
"""What is left of a trigger of two words where one of them is printed in colour: the code before a word ends in m."""
_DENSE = 4_096
"""Hits in one search after which the next ones take small pieces: a hit takes more memory than the text it is for."""
_PIECE = 1 << 16
"""Bytes of such a piece."""
_TEXT_PIECE = 1 << 15
"""Characters searched at a time: the memory for their hits is soon given back."""


def trigger_set(anchors: Iterable[str]) -> tuple[bytes, ...]:
    """The triggers that stand in some anchor, what colours leave of them, and the anchors in which none stands."""
    every = set(anchors)
    useful = [trigger for trigger in TRIGGERS if any(trigger in anchor for anchor in every)]
    return tuple(text.encode() for text in [*useful, *COLOURED, *uncovered(every)])


def uncovered(anchors: Iterable[str]) -> list[str]:
    """Anchors that hold no trigger: each is one more literal to search for."""
    return sorted(anchor for anchor in set(anchors) if not any(trigger in anchor for trigger in TRIGGERS))


def passes(literals: Sequence[bytes]) -> list[list[bytes]]:
    """The literals in as few groups, of the same size, as can each be searched for quickly; neighbours stay together.
    Neighbours begin alike, which the search likes: 0.36 s for a gigabyte against 0.50 s with every second one."""
    count = max(ceil(len(literals) / FAST), 1)
    size = ceil(len(literals) / count)
    return [list(literals[at : at + size]) for at in range(0, max(len(literals), 1), max(size, 1))]


class Searcher:
    """Finds literals in a window that grows, also across the borders of what is read at a time."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._finders = [_finder(tuple(group)) for group in passes(literals)]
        self._overlap = max(map(len, literals), default=1) - 1
        self._dense = True

    def search(self, window: ByteWindow, begin: int) -> list[int]:
        """Offsets in the log, in order, at which the literals begin that end in data[begin:] of the window."""
        from_ = max(begin - self._overlap, 0)
        with memoryview(window.data)[from_ : window.size] as view:
            found = [self._search(finder, view, begin - from_, window.start + from_) for finder in self._finders]
        hits = sorted(hit for each in found for hit in each)
        self._dense = len(hits) > _DENSE
        return hits

    def _search(self, finder: ahocorasick_rs.BytesAhoCorasick, view: memoryview, first: int, at: int) -> list[int]:
        """Hits that end behind view[:first], which was searched before; view[0] is at offset `at` of the log."""
        piece = _PIECE if self._dense else len(view)
        hits: list[int] = []
        for begin in range(first, len(view), piece):
            from_ = max(begin - self._overlap, 0)
            known = begin - from_
            found = finder.find_matches_as_indexes(view[from_ : begin + piece])
            hits += [at + from_ + start for _, start, end in found if end > known]
        return hits


@lru_cache(maxsize=8)
def _finder(literals: tuple[bytes, ...]) -> ahocorasick_rs.BytesAhoCorasick:
    """Built once for all logs that are searched for the same literals: building costs more than a short log."""
    return ahocorasick_rs.BytesAhoCorasick(literals, matchkind=ahocorasick_rs.MatchKind.LeftmostFirst)


@lru_cache(maxsize=16)
def _text_finder(literals: tuple[str, ...]) -> ahocorasick_rs.AhoCorasick:
    return ahocorasick_rs.AhoCorasick(literals, matchkind=ahocorasick_rs.MatchKind.Standard)


def first_match(pattern: str, lines: Iterator[str]) -> re.Match[str] | None:
    """The first match on any of the lines."""
    return next((match for line in lines if (match := compiled(pattern).search(line))), None)


def lines_with(text: str, groups: Sequence[Sequence[str]], searched: str = "") -> list[Iterator[str]]:
    """For each group of literals the lines that hold one of them, in order; for a group without any, every line.
    `searched`: the same text in small letters, as the literals are."""
    owners: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        for literal in group:
            owners.setdefault(literal, []).append(place)
    spans = _spans(searched or text, owners, len(groups))
    whole = [(0, len(text))]
    return [(text[a:b] for a, b in (spans[place] if group else whole)) for place, group in enumerate(groups)]


def _spans(text: str, owners: dict[str, list[int]], count: int) -> list[list[tuple[int, int]]]:
    spans: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    search = _text_finder(tuple(owners))
    places = list(owners.values())
    done = [-1] * count
    for at, piece in _pieces(text):
        for literal, start, _ in search.find_matches_as_indexes(piece, overlapping=True):
            for place in places[literal]:
                if at + start > done[place]:
                    begin, end = text.rfind("\n", 0, at + start) + 1, text.find("\n", at + start)
                    done[place] = end if end >= 0 else len(text)
                    spans[place].append((begin, done[place]))
    return spans


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Whole lines, with where they begin."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + _TEXT_PIECE) + 1 or len(text)
        yield begin, text[begin:end]
        begin = end
