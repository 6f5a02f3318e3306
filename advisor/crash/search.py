"""The literal search over what is read next, beside whoever looks at the hits of what was read before.

It runs without Python's lock, so on a second core it costs no time at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

import ahocorasick_rs

from advisor.crash.triggers import passes
from advisor.crash.window import Window

_INLINE = 4
"""Searches after which a second thread is worth its start."""
_DENSE = 4_096
"""Hits in one search after which the next ones take small pieces: a hit takes more memory than the text it is for."""
_PIECE = 1 << 16
Finder = ahocorasick_rs.BytesAhoCorasick


class Searcher:
    """Finds literals in a window that grows, also across the borders of what is read at a time. `with` ends it."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._finders = [
            ahocorasick_rs.BytesAhoCorasick(group, matchkind=ahocorasick_rs.MatchKind.LeftmostFirst)
            for group in passes(literals)
        ]
        self._overlap = max(map(len, literals), default=1) - 1
        self._searches = 0
        self._dense = True
        self._pool: ThreadPoolExecutor | None = None
        self._under_way = Lock()
        self._under_way.acquire()

    def __enter__(self) -> Searcher:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def begin(self, window: Window, begin: int) -> Callable[[], list[int]]:
        """Search data[begin:] of the window, which must not move meanwhile.

        What comes back waits for the search, and gives the offsets in the log where literals begin, in order.
        """
        self._searches += 1
        view = memoryview(window.data)[max(begin - self._overlap, 0) : window.size]
        first = min(begin, self._overlap)
        at = window.start + begin - first
        if self._searches <= _INLINE:
            hits = sorted(hit for finder in self._finders for hit in self._search(finder, view, first, at))
            view.release()
            return lambda: hits
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(self._finders), thread_name_prefix="log search")
        found = [self._hand_over(finder, view, first, at) for finder in self._finders]
        return lambda: self._gathered(view, found)

    def _hand_over(self, finder: Finder, view: memoryview, first: int, at: int) -> Future[list[int]]:
        assert self._pool is not None
        future = self._pool.submit(self._begun, finder, view, first, at)
        self._under_way.acquire()
        return future

    def _begun(self, finder: Finder, view: memoryview, first: int, at: int) -> list[int]:
        """In another thread: it holds Python's lock now and is about to let go of it."""
        self._under_way.release()
        return self._search(finder, view, first, at)

    def _gathered(self, view: memoryview, found: Sequence[Future[list[int]]]) -> list[int]:
        """Wait for all literals; the window may move again."""
        hits = sorted(hit for future in found for hit in future.result())
        view.release()
        self._dense = len(hits) > _DENSE
        return hits

    def _search(self, finder: Finder, view: memoryview, first: int, at: int) -> list[int]:
        """Hits that end behind view[:first], which was searched before; view[0] is at offset `at` of the log."""
        piece = _PIECE if self._dense else len(view)
        hits: list[int] = []
        for begin in range(first, len(view), piece):
            from_ = max(begin - self._overlap, 0)
            known = begin - from_
            found = finder.find_matches_as_indexes(view[from_ : begin + piece])
            hits += [at + from_ + start for _, start, end in found if end > known]
        return hits
