"""Commands on a real pseudo-terminal: what is typed when, and what comes back."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path

WATCH = (sys.executable, "-m", "advisor", "watch")
PATIENCE = 60.0


def talk(argv: Sequence[str], script: Sequence[tuple[bytes, bytes]], cwd: Path) -> tuple[int, str]:
    """Run on a new terminal; for each (wait for this, type that) in turn. Returns the wait status and all output.

    A shell echoes what is typed: what is waited for must not stand in it. Raises AssertionError where it never ends.
    """
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
        os.environ["TERM"] = "dumb"
        os.execvp(argv[0], list(argv))
    said, seen, steps, until = b"", 0, list(script), time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if select.select([fd], [], [], 0.05)[0]:
            try:
                data = os.read(fd, 4096)
            except OSError:
                break
            if not data:
                break
            said += data
        if steps and steps[0][0] in said[seen:]:
            seen = said.index(steps[0][0], seen) + len(steps[0][0])
            os.write(fd, steps.pop(0)[1])
    else:
        os.kill(pid, 9)
        steps = [*steps, (b"its end", b"")]
    os.close(fd)
    status = os.waitpid(pid, 0)[1]
    assert not steps, (f"waited {PATIENCE:g} s for", steps[0][0], said)
    return status, said.decode(errors="replace")
