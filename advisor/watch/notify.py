"""Runs the user's own command for every event of a watched run, and never waits for it.

The command gets one JSON object on its standard input. It runs in a session of its own, without our output, and is
ended after `LIMIT_S` seconds.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from time import monotonic as clock
from typing import Any, Literal

from advisor.hostile import clean_line
from advisor.language import say
from advisor.redact import redact
from advisor.watch.request import Notify
from advisor.words import os_words

LIMIT_S = 30
"""Seconds that the command may take."""
EventName = Literal["start", "death", "diagnosis", "retry", "end"]


class EventCommand:
    """The user's command, and those of its processes that still run. "" runs nothing."""

    def __init__(self, command: str, tell: Notify) -> None:
        """Raises ValueError where the command cannot be split into words or is not there."""
        self.argv = shlex.split(command)
        self.tell = tell
        self._running: list[tuple[float, subprocess.Popen[bytes]]] = []
        if self.argv and shutil.which(self.argv[0]) is None:
            raise ValueError(say("{command}: there is no such command", command=clean_line(self.argv[0])))

    def send(self, event: EventName, **facts: Any) -> None:
        """Start the command with this event. What it does, and whether it fails, changes nothing here."""
        self._end_late()
        if not self.argv:
            return
        told = {"event": event, "time": round(time.time(), 3), "host": os.uname().nodename, **facts}
        try:
            with tempfile.TemporaryFile() as given:
                given.write(redact(json.dumps(told, ensure_ascii=False)).encode("utf-8", "replace") + b"\n")
                given.seek(0)
                process = subprocess.Popen(  # noqa: S603 - it is the user's own command
                    self.argv,
                    stdin=given,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    preexec_fn=_end_in_time,
                )
        except OSError as error:
            self.tell(say("{command}: {why}", command=clean_line(self.argv[0]), why=os_words(error)))
            return
        self._running.append((clock(), process))

    def _end_late(self) -> None:
        """Take notice of those that ended, and end those that are late with all that they started."""
        for begun, process in self._running:
            if process.poll() is None and clock() - begun > LIMIT_S:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
        self._running = [(begun, process) for begun, process in self._running if process.returncode is None]


def _end_in_time() -> None:
    """In the new process: the kernel ends it in time, also where we have gone."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIMIT_S)
