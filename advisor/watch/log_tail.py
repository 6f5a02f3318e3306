"""Tails the log file that the command writes, and shows it where the command's output would have gone."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_CHUNK = 1 << 16
_SURE = 4096
"""Bytes that a pipe takes at once when it says that it can be written to (PIPE_BUF)."""
_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What costs the text, as it would cost the command's, but not the reader."""


class LogTail(Struct):
    """Follows one file and shows it on one descriptor; `on_data` is called with what is read. The file is the buffer: a
    reader that is slow holds up neither the command nor the watcher."""

    source: int
    target: int | None
    """None: nobody looks."""
    on_data: Callable[[bytes], None] | None = None
    broken: bool = False
    """The reader of `target` has gone."""
    until: int | None = None
    """Bytes of the file that are ours to show; None: all."""
    cooked: bool = False
    """The text came through a terminal already, and goes through a second one: its line ends are made there."""
    _place: int = 0
    _waiting: memoryview = memoryview(b"")
    _poll: select.poll | None = None
    """For the target; None where it takes all at once (a file)."""

    @classmethod
    def follow(cls, path: Path, target: int | None, at_end: bool = False) -> LogTail:
        """From the file's beginning, or from its end. Raises OSError."""
        source = os.open(path, os.O_RDONLY)
        place = os.lseek(source, 0, os.SEEK_END) if at_end else 0
        poll = None
        if target is not None and not _is_file(target):
            poll = select.poll()
            poll.register(target, select.POLLOUT)
        return cls(source, target, _place=place, _poll=poll)

    @property
    def shown(self) -> int:
        return self._place - len(self._waiting)

    @property
    def waits(self) -> bool:
        """Something is read that could not be shown yet."""
        return bool(self._waiting)

    def pump(self) -> int:
        """Pass on what is there, as far as the reader takes it: so many bytes, about."""
        moved = 0
        for _ in range(64):
            if self._waiting:
                moved += 1
            elif data := self._read():
                moved += len(data)
            else:
                return moved
            if self._waiting and not self._show():
                return moved
        return moved

    def _read(self) -> bytes:
        most = _CHUNK if self.until is None else min(_CHUNK, self.until - self._place)
        data = os.read(self.source, most) if most > 0 else b""
        self._place += len(data)
        if data and self.on_data is not None:
            self.on_data(data)
        if data and self.target is not None:
            self._waiting = memoryview(data.replace(b"\r\n", b"\n") if self.cooked else data)
        return data

    def drain(self) -> None:
        """All that is left, waiting for the reader."""
        while not self.broken:
            before = self._place
            self.pump()
            if self._waiting and self.target is not None:
                select.select([], [self.target], [], 1.0)
            elif self._place == before:
                return

    def _show(self) -> bool:
        assert self.target is not None
        try:
            while self._waiting:
                if self._poll is not None and not self._poll.poll(0):
                    return False
                some = self._waiting if self._poll is None else self._waiting[:_SURE]
                self._waiting = self._waiting[os.write(self.target, some) :]
        except BlockingIOError:
            return False
        except OSError as error:
            self._waiting = memoryview(b"")
            if error.errno not in _LOST:
                self.broken, self.target = True, None
            return not self.broken
        return True


def _is_file(fd: int) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(os.fstat(fd).st_mode)
    return False
