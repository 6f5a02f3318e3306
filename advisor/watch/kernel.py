"""What the kernel says of memory while a run ends: its log, its counters. Both only where we may read them."""

from __future__ import annotations

import os
from contextlib import suppress

from advisor.hostile import clean_line

_RECORD = 8192
_MOST = 4000
_OF_MEMORY = ("oom", "Out of memory", "out of memory", "Killed process", "NVRM", "Xid", "segfault")


class KernelLog:
    """/dev/kmsg from now on."""

    def __init__(self, fd: int = -1) -> None:
        self.fd = fd

    @classmethod
    def open(cls) -> KernelLog:
        """At its end; without the right to read it, nothing will be heard of it."""
        try:
            fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(fd, 0, os.SEEK_END)
        except OSError:
            return cls()
        return cls(fd)

    @property
    def readable(self) -> bool:
        """Whether silence means that nothing was said."""
        return self.fd >= 0

    def lines(self) -> list[str]:
        """What of it speaks of memory or of the cards, since the last call. A line is "prefix;text"."""
        said: list[str] = []
        for _ in range(_MOST if self.readable else 0):
            try:
                data = os.read(self.fd, _RECORD)
            except BrokenPipeError:  # overwritten meanwhile; the next one is there
                continue
            except OSError:
                break
            text = data.decode("utf-8", "replace").partition(";")[2].split("\n", 1)[0]
            if any(word in text for word in _OF_MEMORY):
                said.append(clean_line(text))
        return said

    def close(self) -> None:
        if self.fd >= 0:
            with suppress(OSError):
                os.close(self.fd)
        self.fd = -1


def kills_of_the_node() -> int | None:
    """The kernel's count of all processes it killed for want of memory, in every group; None where it does not say."""
    try:
        with open("/proc/vmstat", "rb", 0) as file:
            data = file.read()
    except OSError:
        return None
    found = data.partition(b"\noom_kill ")[2].split(b"\n", 1)[0]
    return int(found) if found.isdigit() else None
