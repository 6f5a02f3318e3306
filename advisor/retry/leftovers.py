"""Waits until the processes of a dead run have given back their memory. Ends none of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from advisor.watch.process_tree import role_of, still_there

WAIT_S = 60.0
"""Seconds that are waited: engines and workers that lost their driver end within a few."""
_LOOK_S = 0.2
_RAY_SERVICES = ("raylet", "gcs_server")
_RAY_PATHS = (b"/ray/dashboard/", b"/ray/autoscaler/", b"/ray/_private/log_monitor", b"/ray/_private/runtime_env/")
"""In the command lines of what Ray keeps running between jobs: it holds no memory of the run."""


def wait_until_gone(left: Mapping[int, int], limit_s: float, stopped: Callable[[], bool]) -> tuple[str, ...]:
    """Wait for the processes (id → when it began); those of Ray itself stay.

    Returns the roles and ids of those that are still there in the end; () where all have gone, or `stopped` holds.
    """
    until = time.monotonic() + limit_s
    waited = {pid: begun for pid, begun in left.items() if not is_rays_own(pid)}
    while waited := still_there(waited):
        if stopped():
            return ()
        if time.monotonic() >= until:
            break
        time.sleep(_LOOK_S)
    return tuple(f"{role_of(pid)} {pid}" for pid in waited)


def is_rays_own(pid: int) -> bool:
    """Whether a process belongs to the Ray cluster, not to a job on it."""
    if role_of(pid) in _RAY_SERVICES:
        return True
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb", 0) as file:
        words = file.read(4096)
        return any(path in words for path in _RAY_PATHS)
    return False
