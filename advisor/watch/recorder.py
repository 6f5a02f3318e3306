"""The record of a command that runs: opened, kept and closed around its course."""

from __future__ import annotations

import gc
import os
import shlex
import time
from contextlib import suppress
from time import monotonic as clock

from advisor.redact import readable, redact
from advisor.watch.begun import Opened, Started, Tell, Watch
from advisor.watch.cards import GpuGauges
from advisor.watch.course import Course
from advisor.watch.gauges import HostGauges
from advisor.watch.marks import Watched
from advisor.watch.names import COMMAND, ERRORS, OUTPUT, RAY_LOGS
from advisor.watch.outlet import Outlet
from advisor.watch.people import People
from advisor.watch.ray_logs import keep_ends, session_logs
from advisor.watch.record import Record
from advisor.watch.sampler import Sampler
from advisor.watch.terminal import Terminal
from advisor.watch.words import Ending, write_words


def record_of(asked: Watch, started: Started, opened: Opened, tell: Tell) -> int | None:
    """Follow a command that was started to its end, and write its record. Returns its status, as waitpid has it."""
    kernel = opened.kernel
    outlets = [Outlet.follow(asked.folder / OUTPUT, 1)]
    if started.separate:
        outlets.append(Outlet.follow(asked.folder / ERRORS, 2))
    terminal = Terminal(0) if os.isatty(0) else None
    course = Course(started.pid, started.woken, outlets, started.kept, started.poured, terminal)
    sampler = _sampler(asked, course, opened, tell)
    gc.freeze()  # what is there now stays: no collection need look at it
    gc.set_threshold(50_000, 20, 20)
    course.run(sampler)
    sampler.finish(clock(), course.status != 0)
    sampler.record.mark(sampler.latest, end=_end_of(course.status))
    write_words(asked.folder, sampler, Ending(course.status, kernel, opened.before.node))
    sampler.close()
    kernel.close()
    logs = session_logs(sampler.people.raylet) if course.status != 0 else None
    if logs is not None:
        keep_ends(logs, asked.folder / RAY_LOGS, opened.begun)
    return course.status


def _sampler(asked: Watch, course: Course, opened: Opened, tell: Tell) -> Sampler:
    def said(sentence: str) -> None:
        raw = course.terminal is not None and course.terminal.is_raw
        tell(f"\r{sentence}\r" if raw else sentence)

    watched = Watched.by(asked.knowledge)
    for outlet in course.outlets:
        outlet.told = watched.feed
    record = _new_record(asked, opened)
    began = clock() - (time.time() - opened.begun)
    host, people = HostGauges(course.pid, groups=list(opened.before.groups)), People(course.pid)
    sampler = Sampler(record, host, GpuGauges(), people, watched, began, asked.alert, said, opened.before)
    with suppress(OSError):  # without a ring there is still the record
        sampler.open()
    return sampler


def _new_record(asked: Watch, opened: Opened) -> Record:
    about = {
        "began": round(opened.begun, 3),
        "command": [readable(word) for word in asked.argv[:64]],
        "host": os.uname().nodename,
        "watcher": os.getpid(),
    }
    record = Record.create(asked.folder, about, opened.samples)
    with suppress(OSError), open(asked.folder / COMMAND, "w", encoding="utf-8", errors="replace") as file:
        file.write(f"{redact(shlex.join(asked.argv))}\n")
    return record


def _end_of(status: int | None) -> dict[str, object]:
    if status is None:
        return {"unknown": True}
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"code": os.WEXITSTATUS(status)}
