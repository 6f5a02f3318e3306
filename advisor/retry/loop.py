"""Runs a watched command, and again with a script that fits as long as it dies of memory and may be changed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from advisor.hostile import clean_line
from advisor.language import listed, say
from advisor.report.phrases import verdict
from advisor.retry.attempt import (
    History,
    NextAttempt,
    RetryRequest,
    death_in,
    next_attempt,
    no_launch,
    open_run,
    resume_in,
)
from advisor.retry.declined import Declined, NotRetried, decline
from advisor.retry.leftovers import wait_until_gone
from advisor.session import State
from advisor.watch.launch_word import script_place, with_script
from advisor.watch.launcher import WatchResult, watch
from advisor.watch.listing import add_told
from advisor.watch.notify import EventCommand
from advisor.watch.request import Notify, WatchRequest
from advisor.watch.spawn import STOPPING

_SHELL_SIGNAL = 128
"""A shell adds this to the signal by which its command ended."""


class RetriedRun(NamedTuple):
    """How the last attempt went, and why none followed."""

    result: WatchResult
    declined: Declined
    script: Path | None
    """Of the last attempt; None: the command names none."""


class _Stops:
    """Between two attempts, signals by which somebody asks us to end are kept instead of obeyed at once."""

    def __init__(self) -> None:
        self.by = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Stops:
        for number in STOPPING:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._keep)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _keep(self, number: int, _: FrameType | None) -> None:
        self.by = number


class _Attempts(Struct):
    """The attempts of one run so far."""

    first: WatchRequest
    asked: RetryRequest
    events: EventCommand
    tell: Notify
    began: float
    """Epoch seconds."""
    place: int | None
    """Which word of the command is its script."""
    script: Path | None
    """Of the newest attempt."""
    history: History = History()

    def run(self) -> RetriedRun:
        """Until it ends well, or no attempt may follow."""
        if self.asked.most:
            self.tell(self._outlook())
        request = self.first
        while True:
            self.events.send("start", command=list(request.argv), **request.chain)
            result = watch(request, self.tell)
            with _Stops() as stops:
                found = self._after(result, stops)
                if isinstance(found, NextAttempt) and stops.by:
                    found = decline(NotRetried.STOPPED, signal=_signal_name(stops.by))
            if isinstance(found, Declined):
                self._end(result, found)
                return RetriedRun(result, found, self.script)
            request = self._request(found, result)

    def _outlook(self) -> str:
        """What a death would cost, said before the first start."""
        if self.script is None:
            return no_launch(None).sentence
        state = open_run(self.script, None, self.first.knowledge)
        return state.sentence if isinstance(state, Declined) else resume_in(state).sentence()

    def _after(self, result: WatchResult, stops: _Stops) -> NextAttempt | Declined:
        """What follows the end of an attempt."""
        if result.not_started or result.folder is None:
            return decline(NotRetried.NOT_STARTED, why=clean_line(result.not_started))
        ended = _ended(result)
        if result.status == 0:
            return decline(NotRetried.ENDED_WELL)
        if result.status is None:  # nobody knows whether it has ended: there may be a copy of it that runs
            return decline(NotRetried.NOT_PROVEN)
        self.events.send("death", record=str(result.folder), **ended)
        if stopped_by := _stopped_by(result):
            return decline(NotRetried.STOPPED, signal=_signal_name(stopped_by))
        if self.script is None or self.place is None:
            return no_launch(self.script)
        state = open_run(self.script, result.folder, self.first.knowledge)
        if isinstance(state, Declined):
            return state
        self._diagnosed(state, result.folder)
        self.history = replace(self.history, deaths=(*self.history.deaths, death_in(state)))
        original = Path(self.first.argv[self.place])
        found = next_attempt(state, original, self.asked, self.history, self.began)
        if isinstance(found, NextAttempt):
            seconds = self.asked.wait_s
            if left := wait_until_gone(result.left, seconds, lambda: bool(stops.by)):
                return decline(NotRetried.LEFTOVERS, seconds=round(seconds), names=listed(left))
        return found

    def _diagnosed(self, state: State, record: Path) -> None:
        crash, sentence, death = state.crash, verdict(state), death_in(state)
        told = {"verdict": crash.verdict, "memory": state.diagnosis.memory, "phase": death.phase}
        add_told(record, **told)
        self.events.send("diagnosis", record=str(record), step=death.step, sentence=sentence, **told)
        if self.asked.most:
            self.tell(sentence)

    def _request(self, found: NextAttempt, result: WatchResult) -> WatchRequest:
        """The next start, in a record that names the one before."""
        assert result.folder is not None
        assert self.place is not None
        number, changed = len(self.history.deaths) + 1, found.words()
        step = found.goes_on.step if found.goes_on is not None else None
        named = {"number": number, "file": clean_line(str(found.script)), "changes": listed(changed)}
        self.tell(say("attempt {number}: {file} ({changes})", **named))
        if found.goes_on is not None:
            where = {"step": "?" if step is None else step, "folder": clean_line(str(found.goes_on.folder))}
            self.tell(say("it goes on from step {step} ({folder})", **where))
        elif not found.place_known:
            self.tell(say("it goes on from what was saved; where that lies is not known here"))
        else:
            self.tell(say("it starts from the beginning: there is no whole checkpoint"))
        self.events.send("retry", script=str(found.script), changed=list(changed), from_step=step)
        self.history = replace(self.history, made=self.history.made | found.made)
        self.script = found.script
        folder = self.first.folder
        return self.first._replace(
            argv=with_script(self.first.argv, self.place, found.script),
            folder=folder.with_name(f"{folder.name}-{number}") if folder is not None else None,
            chain={"attempt": number, "after": result.folder.name, "changed": list(changed), "from_step": step},
        )

    def _end(self, result: WatchResult, found: Declined) -> None:
        if result.folder is not None and result.status != 0:
            add_told(result.folder, not_retried=found.why.value)
        if self.asked.most:
            self.tell(found.sentence)
        self.events.send("end", why=found.why.value, sentence=found.sentence, **_ended(result))


def run_with_retries(first: WatchRequest, asked: RetryRequest, events: EventCommand, tell: Notify) -> RetriedRun:
    """Run the command, and again as long as that may help. The end of the last attempt is the command's."""
    place = script_place(first.argv)
    script = Path(first.argv[place]) if place is not None else None
    return _Attempts(first, asked, events, tell, time.time(), place, script).run()


def _ended(result: WatchResult) -> dict[str, int]:
    """How an attempt ended, as records have it."""
    if result.status is None:
        return {}
    if os.WIFSIGNALED(result.status):
        return {"signal": os.WTERMSIG(result.status)}
    return {"code": os.WEXITSTATUS(result.status)}


def _stopped_by(result: WatchResult) -> int:
    """The signal by which somebody ended it, also where a shell in between turned it into an exit code; 0: none."""
    if result.stopped_by:
        return result.stopped_by
    ended = _ended(result)
    number = ended.get("signal", ended.get("code", 0) - _SHELL_SIGNAL)
    return number if number in STOPPING or result.was_sent_away else 0


def _signal_name(number: int) -> str:
    return signal.Signals(number).name
