"""`watch --attach PID`: joins a run that is going already; its output is read where it goes to a file."""

from __future__ import annotations

import os
import signal
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path
from time import monotonic as clock

from advisor.language import say
from advisor.watch.begun import Tell
from advisor.watch.cards import GpuGauges
from advisor.watch.gauges import HostGauges, shown_name
from advisor.watch.kernel import KernelLog, kills_of_the_node
from advisor.watch.marks import Watched
from advisor.watch.names import ERRORS, OUTPUT, RAY_LOGS
from advisor.watch.outlet import Outlet
from advisor.watch.people import People, role_of
from advisor.watch.ray_logs import keep_ends, session_logs
from advisor.watch.record import Record
from advisor.watch.sampler import Sampler
from advisor.watch.words import Ending, write_words


def attach(pid: int, folder: Path, alert: float | None, knowledge: tuple[Path, ...], tell: Tell) -> None:
    """Record until the process ends, or until we are told to stop (SIGINT, SIGTERM), which it does not notice.

    Raises ProcessLookupError where there is no such process, OSError where no record can be written.
    """
    born = _started(pid)
    if born is None:
        raise ProcessLookupError(pid)
    begun = time.time()
    about = {"began": round(begun, 3), "command": [role_of(pid)], "host": socket.gethostname(), "attached": pid}
    record = Record.create(folder, about)
    watched = Watched.by(knowledge)
    outlets = list(_outputs(pid, folder, watched))
    kernel, kills = KernelLog.open(), kills_of_the_node()
    sampler = Sampler(record, HostGauges(pid), GpuGauges(), People(pid), watched, clock(), alert, tell)
    sampler.open()
    joined = {"pid": pid, "role": shown_name(role_of(pid))}
    if outlets:
        tell(say("joined process {pid} ({role})", **joined))
    else:
        tell(say("joined process {pid} ({role}); its output goes to no file, so phases are not known", **joined))
    ended = _follow(pid, born, sampler, outlets)
    sampler.finish(clock(), ended)
    record.mark(sampler.latest, end={"unknown": True} if ended else {"left": True})
    write_words(folder, sampler, Ending(None, kernel, kills))
    sampler.close()
    logs = session_logs(sampler.people.raylet) if ended else None
    if logs is not None:
        keep_ends(logs, folder / RAY_LOGS, begun)


def _follow(pid: int, born: int, sampler: Sampler, outlets: list[Outlet]) -> bool:
    """Whether the process ended; False: we were told to stop."""
    told: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: told.append(number))
    while not told:
        sampler.tick(clock())
        for outlet in outlets:
            outlet.pump()
        if _started(pid) != born:
            return True
        time.sleep(min(0.1, sampler.wait(clock())) or 0.001)
    return False


def _started(pid: int) -> int | None:
    """When the process began, in the kernel's ticks; None where it is gone or only waits to be buried."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            words = file.read(1024).rpartition(b") ")[2].split()
    except OSError:
        return None
    return None if len(words) < 20 or words[0] in (b"Z", b"X") else int(words[19])


def _outputs(pid: int, folder: Path, watched: Watched) -> list[Outlet]:
    """The files that its output goes to, linked into the record."""
    found: list[Outlet] = []
    seen: set[tuple[int, int]] = set()
    for number, name in ((1, OUTPUT), (2, ERRORS)):
        with suppress(OSError):
            there = os.stat(f"/proc/{pid}/fd/{number}")
            target = os.readlink(f"/proc/{pid}/fd/{number}")
            if not stat.S_ISREG(there.st_mode) or (there.st_dev, there.st_ino) in seen:
                continue
            seen.add((there.st_dev, there.st_ino))
            outlet = Outlet.follow(Path(target), None, at_end=True)
            outlet.told = watched.feed
            found.append(outlet)
            (folder / name).symlink_to(target)
    return found
