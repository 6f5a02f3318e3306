"""Relays the command's output, where it is no terminal, from pipes into the log files, in a process of its own.

A file alone would do, were it not that a full disk would then meet the command, which without a watcher would not have
noticed; and that what is printed after the command's end, by a process that it left behind, must still reach the reader
of its output. A watcher that is killed changes nothing for the command: its output goes on into the log.

The watcher asks in single bytes: a stream's number (its reader has gone: so has the command's, then), or `ENDED`, which
is answered by "sizes A B\\n": so many bytes of each log are the watcher's to show, what comes later is shown from here.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from advisor.watch.spawn import FORWARDED

ENDED = b"e"
_CHUNK = 1 << 16
_CATCH_UP = 256
"""Chunks that are taken at most before the sizes are told: more than a pipe holds."""
_ANSWER_TIMEOUT_S = 5.0


class Stream(NamedTuple):
    """One of the command's streams."""

    log: int
    """Descriptor of its log file, opened for appending."""
    target: int
    """Descriptor of where it would have gone."""


class OutputRelay(NamedTuple):
    """The watcher's side."""

    ask: int
    """Descriptor on which the relay is asked."""
    answer: int
    """Descriptor on which it answers."""
    ends: tuple[int, ...]
    """The pipes to write to, one a stream."""

    def close_ends(self) -> None:
        """Only the command and its children may hold these once it has started."""
        for end in self.ends:
            os.close(end)

    def lose_reader(self, place: int) -> None:
        """Nobody reads this stream any more: the command meets a broken pipe when it writes next."""
        with suppress(OSError):
            os.write(self.ask, str(place).encode())

    def sizes(self) -> list[int]:
        """The command has ended: how much of each log was written until then; [] where it is all there is."""
        answer = b""
        with suppress(OSError):
            os.write(self.ask, ENDED)
            while not answer.endswith(b"\n") and select.select([self.answer], [], [], _ANSWER_TIMEOUT_S)[0]:
                data = os.read(self.answer, 200)
                if not data:
                    return []
                answer += data
        return [int(word) for word in answer.split()[1:]]


def start_output_relay(streams: Sequence[Stream]) -> OutputRelay:
    """Start the relay. Raises OSError."""
    asked, ask = os.pipe()
    answer, tell = os.pipe()
    reads, writes = zip(*(os.pipe() for _ in streams), strict=True)
    if os.fork() == 0:
        try:
            for fd in (ask, answer, *writes):
                os.close(fd)
            _OutputRelayProcess(asked, tell, streams, reads).run()
        finally:
            os._exit(0)  # what the parent has to do at its end is not the child's
    for fd in (asked, tell, *reads):
        os.close(fd)
    return OutputRelay(ask, answer, writes)


class _OutputRelayProcess:
    """The process apart. `shows`: what comes now is shown from here; `alone`: the watcher is gone."""

    def __init__(self, asked: int, tell: int, streams: Sequence[Stream], pipes: Sequence[int]) -> None:
        self.asked, self.tell, self.streams, self.pipes = asked, tell, streams, pipes
        self.open = dict(zip(pipes, streams, strict=True))
        self.shows = self.alone = False
        self.poll = select.poll()

    def run(self) -> None:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (*FORWARDED, signal.SIGTTOU, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        for fd in {0, 1, 2} - {stream.target for stream in self.streams}:
            with suppress(OSError):
                os.close(fd)
        for fd in (*self.pipes, self.asked):
            self.poll.register(fd, select.POLLIN)
        while self.open:
            for fd, _ in self.poll.poll():
                if fd == self.asked:
                    self._answer()
                elif fd in self.open:
                    self._relay(fd)

    def _relay(self, pipe: int) -> None:
        data = os.read(pipe, _CHUNK)
        if not data:
            self._close(pipe)
            return
        stream = self.open[pipe]
        rest = data[written(stream.log, data) :]  # on a full disk it is shown at least
        shown = data if self.shows else rest
        if shown and not self.alone and written(stream.target, shown) < len(shown) and self.shows:
            self._close(pipe)

    def _answer(self) -> None:
        asked = os.read(self.asked, 16)
        if not asked:
            self._end_without_watcher()
        for byte in asked:
            self._catch_up()
            if bytes([byte]) == ENDED:
                sizes = " ".join(str(os.fstat(stream.log).st_size) for stream in self.streams)
                self.shows = True
                with suppress(OSError):
                    os.write(self.tell, f"sizes {sizes}\n".encode())
            else:
                self._close(self.pipes[byte - ord("0")])

    def _catch_up(self) -> None:
        """Relay what the pipes hold now."""
        for _ in range(_CATCH_UP):
            ready = [fd for fd, _ in self.poll.poll(0) if fd in self.open]
            for fd in ready:
                self._relay(fd)
            if not ready:
                return

    def _end_without_watcher(self) -> None:
        """The watcher has ended. Killed, it takes the streams with it that were shown; else we have them now."""
        self.poll.unregister(self.asked)
        if not self.shows:
            self.alone = True
            for stream in self.streams:
                with suppress(OSError):
                    os.close(stream.target)

    def _close(self, pipe: int) -> None:
        if self.open.pop(pipe, None) is not None:
            self.poll.unregister(pipe)
            os.close(pipe)


def written(fd: int, data: bytes) -> int:
    """Bytes that could be written: a full disk loses output but never stops the run."""
    at = 0
    with suppress(OSError):
        while at < len(data):
            at += os.write(fd, data[at:] if at else data)
    return at


def wire_to(ends: Sequence[int]) -> Callable[[], None]:
    """For `spawn`: standard output on the first of these, errors on the last."""

    def wire() -> None:
        os.dup2(ends[0], 1)
        os.dup2(ends[-1], 2)

    return wire
