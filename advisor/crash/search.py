"""The literal search over a stream of chunks, a step ahead of whoever looks at the hits.

The search runs without Python's lock, so on a second core it costs no time at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import ahocorasick_rs

_INLINE = 4
"""Chunks after which a second thread is worth its start."""
_AHEAD = 2
Searched = tuple[bytes, list[int]]
"""A chunk and where, counted from the beginning of the log, literals begin in it (or just before it)."""


class Searcher:
    """Finds literals in consecutive chunks, also across their borders."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._find = ahocorasick_rs.BytesAhoCorasick(
            list(literals), matchkind=ahocorasick_rs.MatchKind.LeftmostFirst
        ).find_matches_as_indexes
        self._overlap = max(map(len, literals), default=1) - 1
        self._last = b""
        self._at = 0

    def search(self, chunk: bytes) -> Searched:
        """The hits of the chunk that follows the last one. Time is linear in its size."""
        border = self._last + chunk[: self._overlap]
        from_ = self._at - len(self._last)
        hits = [from_ + begin for _, begin, end in self._find(border) if end > len(self._last)] if self._last else []
        at = self._at
        hits += [at + hit[1] for hit in self._find(chunk)]
        self._at += len(chunk)
        self._last = (self._last + chunk[-self._overlap :])[-self._overlap :]
        return chunk, hits


def searched(chunks: Iterator[bytes], literals: Sequence[bytes]) -> Iterator[Searched]:
    """Each chunk with its hits, in order. What reading raises is raised here."""
    searcher = Searcher(literals)
    for count, chunk in enumerate(chunks, start=1):
        yield searcher.search(chunk)
        if count == _INLINE:
            yield from _ahead(chunks, searcher)
            return


def _ahead(chunks: Iterator[bytes], searcher: Searcher) -> Iterator[Searched]:
    """The same, read and searched by a second thread; one thread, so in order."""

    def following() -> Searched | None:
        chunk = next(chunks, None)
        return None if chunk is None else searcher.search(chunk)

    pool = ThreadPoolExecutor(1, thread_name_prefix="log search")
    try:
        coming = deque(pool.submit(following) for _ in range(_AHEAD))
        while (item := coming.popleft().result()) is not None:
            yield item
            coming.append(pool.submit(following))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
