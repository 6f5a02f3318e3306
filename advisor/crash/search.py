"""The literal search over a stream of chunks, a step ahead of whoever looks at the hits.

The search runs without Python's lock, so on a second core it costs no time at all.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator, Sequence

import ahocorasick_rs

_INLINE = 4
"""Chunks after which a second thread is worth its start."""
_AHEAD = 2
_PATIENCE = 0.2
"""Seconds after which a thread asks whether anybody still listens."""
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
    """The same, read and searched by a second thread."""
    done = threading.Event()
    ready: queue.Queue[Searched | BaseException | None] = queue.Queue(_AHEAD)

    def work() -> None:
        try:
            for chunk in chunks:
                if not _hand_over(ready, searcher.search(chunk), done):
                    return
            _hand_over(ready, None, done)
        except BaseException as problem:  # noqa: BLE001  (handed to the reader, which raises it)
            _hand_over(ready, problem, done)

    threading.Thread(target=work, name="log search", daemon=True).start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        done.set()


def _hand_over(
    ready: queue.Queue[Searched | BaseException | None], item: Searched | BaseException | None, done: threading.Event
) -> bool:
    """Put the item where it is waited for; False when nobody waits any more."""
    while not done.is_set():
        with contextlib.suppress(queue.Full):
            ready.put(item, timeout=_PATIENCE)
            return True
    return False
