"""Waits until nothing of a dead run is left, and ends what does not go by itself: only what descends from the run."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from advisor.watch.process_tree import role_of, stat_fields, tree_of

if TYPE_CHECKING:
    from advisor.watch.recording import Recording

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""
_RAYS = frozenset({"raylet", "gcs_server", "log_monitor.py", "monitor.py", "dashboard.py", "main.py", "agent.py"})
"""Roles of Ray's own processes, which serve other jobs, too."""
_NOTHING = 0
"""The signal that only asks whether a process is there."""
_LOOK = 0.05
"""Seconds between two looks."""


def adopt_orphans() -> None:
    """From now on what the run leaves behind becomes our child, so that it can be told from what others run. Without it
    a process whose parent died is the child of process 1, and nobody knows any more whose it was."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def wait_for_leftovers(limit: float, grace: float, but: Callable[[], Collection[int]]) -> tuple[list[str], list[str]]:
    """Wait up to `limit` seconds for what the run left, then end it (`grace` seconds between asking and killing).

    Returns the roles of what is left all the same, and those of Ray's own processes, which are left alone. `but`:
    children of ours that are no part of the run.
    """
    for number, patience in ((_NOTHING, limit), (signal.SIGTERM, grace), (signal.SIGKILL, grace)):
        own, rays = _left(but())
        for pid in own:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        end = time.monotonic() + patience
        while own and time.monotonic() < end:
            time.sleep(_LOOK)
            own, rays = _left(but())
        if not own:
            return [], sorted({role_of(pid) for pid in rays})
    return sorted({role_of(pid) for pid in own}), sorted({role_of(pid) for pid in rays})


def _left(but: Collection[int]) -> tuple[list[int], list[int]]:
    """Process ids of the run that live, and those of Ray's own with all below them."""
    children = [pid for pid in tree_of(os.getpid()) if pid != os.getpid() and pid not in but]
    below = [pid for pid in children if _lives(pid)]
    for pid in set(children) - set(below):  # take leave of those that ended
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    rays = {one for pid in below if role_of(pid) in _RAYS for one in tree_of(pid)}
    return [pid for pid in below if pid not in rays], [pid for pid in below if pid in rays]


def _lives(pid: int) -> bool:
    words = stat_fields(pid)
    return bool(words) and words[0] not in (b"Z", b"X")


def others_on_cards(recording: Recording) -> list[tuple[str, int]]:
    """Role and bytes of the processes that still held memory of a card when a record ended and are none of ours."""
    own = set(tree_of(os.getpid()))
    held: dict[int, int] = {}
    for one in recording.of_kind("gpu_process"):
        pid, size = one.gauge.pid, one.sizes[-1] if one.sizes else -1
        if pid is not None and size > 0 and pid not in own and _lives(pid):
            held[pid] = held.get(pid, 0) + size
    return [(role_of(pid), size) for pid, size in sorted(held.items(), key=lambda item: -item[1])]
