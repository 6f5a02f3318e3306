"""Writes the end of a run whose watcher was killed with it: what its record and the kernel's counter still show.

So it is where the kernel kills a whole control group at once: memory.oom.group of version 2, which Kubernetes sets for
every container since 1.28.
"""

from __future__ import annotations

import signal
from pathlib import Path

from advisor.watch.end_of_run_log import ended_words, fullest_words, kills_words, write_counted, write_words
from advisor.watch.kernel_log import boot, kills_of_the_node
from advisor.watch.recording import Recording, read_record

_LAST = 2.0
"""Seconds before the last reading that count as just before the end."""


def write_lost_end(folder: Path) -> None:
    """Write the words of a record that has no end, where the kernel killed for want of memory since it began.

    Where it kills a whole group and counted more than the run had processes, that is proof; else it is decided as of
    every run that was killed, by how full memory was. Raises RecordError, OSError.
    """
    recording, kills = read_record(folder), kills_of_the_node()
    counted = recording.node_kills
    if recording.end is not None or not recording.boot or recording.boot != boot():
        return
    if kills is None or counted is None or kills <= counted:
        return
    if recording.grouped and kills - counted > _alive(recording):
        write_counted(folder, kills - counted)
    phase = recording.phases[-1][1] if recording.phases else "unknown"
    write_words(
        folder,
        [
            kills_words(kills - counted),
            *fullest_words(_at_the_end(recording)),
            ended_words(int(signal.SIGKILL), recording.length, phase),
        ],
    )


def _alive(recording: Recording) -> int:
    """Processes of the run at the last reading: a kill of the whole group counts each, and the watcher."""
    return sum(bool(one.sizes) and one.sizes[-1] >= 0 for one in recording.of_kind("rss"))


def _at_the_end(recording: Recording) -> list[tuple[int, int]]:
    """The most of each kind of host memory in the last moments, and its size."""
    found = []
    for one in (*recording.of_kind("host"), *recording.of_kind("limit")):
        near = [size for at, size in zip(one.times, one.sizes, strict=True) if at >= recording.length - _LAST]
        most = max(near, default=one.sizes[-1] if one.sizes else -1)
        if one.gauge.total and most >= 0:
            found.append((most, one.gauge.total))
    return found
