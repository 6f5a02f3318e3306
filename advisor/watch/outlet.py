"""From the log file that the command writes to where its output would have gone."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_CHUNK = 1 << 16
_SURE = 4096
"""Bytes that a pipe takes at once when it says that it can be written to (PIPE_BUF)."""


def _unheard(_: bytes) -> None:
    return


class Outlet(Struct):
    """Follows one file and shows it on one descriptor; what is shown is also told to `told`.

    The file is the buffer: a reader that is slow holds up neither the command nor the watcher.
    """

    source: int
    target: int | None
    """None: nobody looks."""
    told: Callable[[bytes], None] = _unheard
    broken: bool = False
    """Whoever read us has gone."""
    _waiting: bytes = b""

    @classmethod
    def follow(cls, path: Path, target: int | None, at_end: bool = False) -> Outlet:
        """From the file's beginning, or from its end. Raises OSError."""
        source = os.open(path, os.O_RDONLY)
        if at_end:
            os.lseek(source, 0, os.SEEK_END)
        return cls(source, target)

    @property
    def waits(self) -> bool:
        """Something is read that could not be shown yet."""
        return bool(self._waiting)

    def pump(self, most: int = 64) -> int:
        """Pass on what is there, as far as the reader takes it: so many bytes, about."""
        moved = 0
        for _ in range(most):
            if not self._waiting:
                data = os.read(self.source, _CHUNK)
                if not data:
                    return moved
                self.told(data)
                self._waiting = data if self.target is not None else b""
                moved += len(data)
            else:
                moved += 1
            if self._waiting and not self._show():
                return moved
        return moved

    def drain(self) -> None:
        """All that is left, waiting for the reader."""
        while not self.broken:
            before = os.lseek(self.source, 0, os.SEEK_CUR)
            if not self.pump() and not self._waiting and os.lseek(self.source, 0, os.SEEK_CUR) == before:
                return
            if self._waiting and self.target is not None:
                select.select([], [self.target], [], 1.0)

    def _show(self) -> bool:
        assert self.target is not None
        try:
            while self._waiting:
                poll = select.poll()
                poll.register(self.target, select.POLLOUT)
                if not poll.poll(0):
                    return False
                self._waiting = self._waiting[os.write(self.target, self._waiting[:_SURE]) :]
        except BlockingIOError:
            return False
        except OSError:
            self.broken, self.target, self._waiting = True, None, b""
            return False
        return True

    def close(self) -> None:
        with suppress(OSError):
            os.close(self.source)
