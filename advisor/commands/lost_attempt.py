"""Finds the attempt of this very command whose watcher was killed with it: the next start goes on from there."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from advisor.commands.retry_choice import RunDeath
from advisor.commands.watched_run import script_of
from advisor.hostile import clean_line, readable
from advisor.redact import redact_words
from advisor.watch.attempts import attempts_of
from advisor.watch.listing import ListedRecord, list_records, settings_of, written_at
from advisor.watch.record_files import SAMPLES, rank
from advisor.watch.request import WatchRequest

_PATIENCE = 3.0
"""Seconds after which a record that does not change has no watcher."""


class LostAttempt(Struct, frozen=True):
    """The newest record under the name that was asked for: it has no end, and nobody writes it."""

    record: Path
    asked: WatchRequest
    """As that attempt was started."""
    number: int
    began: float
    """Epoch seconds, of the first attempt."""
    from_step: int | None
    changes: tuple[tuple[str, str | None], ...]
    deaths: tuple[RunDeath, ...]
    """Of the attempts before it."""


def lost_attempt(asked: WatchRequest) -> LostAttempt | None:
    """None where there is none, it ran another command, or its script was written after it: somebody changed that.

    Nor of one rank of many: under one name lie the records of all.
    """
    if asked.folder is None or rank():
        return None
    try:
        beside = list_records(asked.folder.absolute().parent)
    except OSError:
        return None
    name = asked.folder.name
    numbered = re.compile(re.escape(name) + r"(?:-\d+)*")
    ours = [each for each in beside if numbered.fullmatch(each.folder.name)]
    if not ours or ours[-1].end is not None or _is_written(ours[-1]):
        return None
    last = ours[-1]
    chain = [each.record for each in attempts_of(last.folder)] or [last]
    argv = _started(asked.argv, chain[0], last)
    script = script_of([*argv], last.folder) if argv else None
    if not argv or script is None or _is_newer(script, last.folder):
        return None
    deaths = tuple(RunDeath(each.phase, each.step or 0, settings_of(each.folder)) for each in chain[:-1])
    place = asked.folder.with_name(last.folder.name)
    of_last = asked._replace(argv=argv, folder=place)
    return LostAttempt(
        last.folder, of_last, last.attempt, chain[0].began, last.from_step, settings_of(last.folder), deaths
    )


def _started(argv: tuple[str, ...], first: ListedRecord, last: ListedRecord) -> tuple[str, ...]:
    """The words of the last attempt, with what records leave out of them; () where the first was another command."""
    told = tuple(clean_line(readable(word), 200) for word in redact_words(argv)[:64])
    if told != first.command:
        return ()
    if len(last.command) != len(told):
        return last.command
    words = zip(argv, told, last.command, strict=False)
    return (*(word if shown == now else now for word, shown, now in words), *argv[64:])


def _is_written(record: ListedRecord) -> bool:
    """Whether its watcher lives, perhaps in another container: it writes twice a second."""
    before, until = written_at(record.folder), time.monotonic() + _PATIENCE
    while record.runs and time.monotonic() < until:
        if written_at(record.folder) != before:
            return True
        time.sleep(0.1)
    return False


def _is_newer(script: Path, record: Path) -> bool:
    with suppress(OSError):
        return script.stat().st_mtime > os.stat(record / SAMPLES).st_mtime
    return True
