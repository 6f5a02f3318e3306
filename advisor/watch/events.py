"""Hands events of a watched run to the user's own command: one JSON object on its standard input for each."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from contextlib import suppress

from advisor.redact import redact

_PATIENCE = 10.0
"""Seconds that a command may take for one event."""
_MOST = 8
"""Commands under way at once; further events are dropped meanwhile."""
_MOST_BYTES = 60_000
"""What a pipe takes at once, so that writing never waits for the reader."""


class Notifier:
    """Starts the command for each event and never waits for it while the run lives."""

    def __init__(self, command: str | None) -> None:
        """`command`: words as a shell splits them; no shell reads it. Raises ValueError where they cannot be split."""
        self._argv = shlex.split(command) if command else []
        self._running: list[tuple[subprocess.Popen[bytes], float]] = []
        self.attempt: int | None = None
        """Told with every event; None: it is not one of several."""
        self.failed = ""
        """The first error, as the system puts it."""

    def send(self, event: str, **about: object) -> None:
        """Tell of one event; what goes wrong costs the event, nothing else."""
        self._sweep()
        if not self._argv or len(self._running) >= _MOST:
            return
        which = {} if self.attempt is None else {"attempt": self.attempt}
        public = {name: _public(each) for name, each in about.items()}
        told = {"event": event, "time": round(time.time(), 3), **which, **public}
        text = json.dumps(told, ensure_ascii=False)
        if len(text.encode()) > _MOST_BYTES:
            text = json.dumps({"event": event, "time": round(time.time(), 3)})
        try:
            started = subprocess.Popen(  # noqa: S603 - it is the user's own
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self.failed = self.failed or (error.strerror or str(error))
            return
        self._running.append((started, time.monotonic()))
        assert started.stdin is not None
        with suppress(OSError):
            os.write(started.stdin.fileno(), text.encode() + b"\n")
        with suppress(OSError):
            started.stdin.close()

    def pids(self) -> set[int]:
        """Those under way: children of ours that are no part of the run."""
        return {running.pid for running, _ in self._running}

    def finish(self) -> None:
        """Wait for the last ones, no longer than each may take."""
        while self._running:
            self._sweep()
            time.sleep(0.02 if self._running else 0)

    def _sweep(self) -> None:
        left = []
        for running, begun in self._running:
            if running.poll() is not None:
                continue
            if time.monotonic() - begun > _PATIENCE:
                with suppress(OSError):
                    os.killpg(running.pid, 9)
                running.wait()
                continue
            left.append((running, begun))
        self._running = left


def _public(value: object) -> object:
    """The value without tokens, keys and passwords: an event is made to be sent on."""
    if isinstance(value, dict):
        return {str(name): _public(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_public(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float)) else redact(str(value))
