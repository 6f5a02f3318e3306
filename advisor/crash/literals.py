"""Searches a log for the few literals that every anchor of every signature holds, and a text for those of regexes.

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

from advisor.crash.window import ByteWindow

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

    Neighbours begin alike, which the search likes: 0.36 s for a gigabyte against 0.50 s with every second one.
    """
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
    return next((match for line in lines if (match := re.search(pattern, line))), None)


def lines_with(text: str, groups: Sequence[Sequence[str]]) -> list[Iterator[str]]:
    """For each group of literals the lines that hold one of them, in order; for a group without any, every line."""
    owners: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        for literal in group:
            owners.setdefault(literal, []).append(place)
    spans = _spans(text, owners, len(groups))
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
