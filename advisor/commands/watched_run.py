"""Tells of a watched run: while it lives which phase peaked where and what would be full first, then how it ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from advisor.exits import Refusal
from advisor.language import say

if TYPE_CHECKING:
    from advisor.state import State
    from advisor.watch.events import Notifier
    from advisor.watch.measured import Measured
    from advisor.watch.request import Notify, WatchRequest

PROGRAM = "rl-oom-advisor watch"
_SHELLS = ("bash", "sh", "zsh", "dash")
_SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")


class Finished(NamedTuple):
    """How to leave: like the command, after the app was shown where that is wanted."""

    status: int | None
    """As waitpid gives it."""
    code: int | None = None
    """Where there is no command to leave like."""
    record: Path | None = None
    show: bool = False
    """It died of memory, and there is a terminal."""
    script: Path | None = None


def script_of(argv: list[str], folder: Path) -> Path | None:
    """The launch script among the words of a command; else the command itself, as the record keeps it."""
    if len(argv) == 2 and os.path.basename(argv[0]) in _SHELLS and Path(argv[1]).is_file():
        return Path(argv[1])
    if len(argv) == 1 and Path(argv[0]).suffix in _SCRIPTS and Path(argv[0]).is_file():
        return Path(argv[0])
    from advisor.watch.record_files import COMMAND

    return folder / COMMAND if (folder / COMMAND).is_file() else None


def longest_answer(asked: WatchRequest) -> int | None:
    """The most tokens that an answer may have, by the launch script; None where it does not say so, or is not there."""
    script = script_of([*asked.argv], Path.cwd())
    if script is None:
        return None
    from advisor.session import SessionRequest, open_session

    try:
        state = open_session(SessionRequest(script=script, knowledge=asked.knowledge))
    except Exception:  # noqa: BLE001 - the run is watched all the same
        return None
    tokens = None if state.situation is None else state.situation.predictor.built().run.number("data.response_tokens")
    return None if tokens is None else int(tokens)


def opened(finished: Finished, knowledge: tuple[Path, ...]) -> State | None:
    """The session of a record, with the script where it is one; None, once it is said why, where it cannot be read."""
    from msgspec.structs import replace

    from advisor.commands.streams import usable
    from advisor.session import SessionRequest, open_session
    from advisor.watch.recording import logs_in

    assert finished.record is not None
    logs = logs_in(finished.record)
    asked = SessionRequest(script=finished.script, logs=logs, record=finished.record, knowledge=knowledge)
    if finished.script is not None:
        with suppress(Refusal):  # a command that is no launch script: its log must do
            state = usable(lambda: open_session(asked))
            if state.launch is not None:
                return state
    try:
        return usable(lambda: open_session(replace(asked, script=None)))
    except Refusal as refusal:
        narrate(str(refusal))
        return None


def tell_death(notifier: Notifier, finished: Finished) -> None:
    """Hand over that the command died, and how, as its record says; {}: the record does not."""
    from advisor.watch.recording import RecordError, read_record

    assert finished.record is not None
    end: dict[str, object] = {}
    with suppress(RecordError, OSError):
        end = read_record(finished.record).end or {}
    notifier.send("death", record=str(finished.record), end=end)


def tell_diagnosis(notifier: Notifier, state: State, step: int) -> None:
    found, verdict = state.diagnosis, state.crash.verdict
    notifier.send("diagnosis", phase=found.phase, step=step, verdict=verdict, cause=found.cause, title=found.title)


def died_at(state: State, from_step: int = 0) -> int:
    """The last step that record or log show of a run that began at `from_step`."""
    last = state.measured.last_step if state.measured is not None else None
    return max(state.crash.steps_done or 0, from_step) if last is None else last


def narrate(sentence: str) -> None:
    """A terminal that was closed meanwhile costs the words, not the command's own end."""
    encoding = sys.stderr.encoding or "ascii"
    with suppress(OSError):
        print(f"{PROGRAM}: {sentence}".encode(encoding, "replace").decode(encoding), file=sys.stderr, flush=True)


_ANSWERS = "answers"
_HIGHER = 1.02
"""Times the peak that was told last: below it nothing new is told."""


class LiveEvents:
    """Reads the record as it stands, whenever enough steps were done since the last time."""

    def __init__(self, notifier: Notifier, tell: Notify, longest: Callable[[], int | None] = lambda: None) -> None:
        """`longest`: the most tokens that an answer may have; asked once, when answers grow."""
        self._notifier, self._tell, self._longest = notifier, tell, longest
        self._peaks: dict[tuple[str, str], int] = {}
        self._foreseen: set[str] = set()

    def alert(self, gauge: str, share: float) -> None:
        """A gauge passed the level of --alert."""
        self._notifier.send("alert", gauge=gauge, share=round(share, 4))

    def look(self, record: Path) -> None:
        """Send what is new; a record that cannot be read costs the events."""
        from advisor.watch.measured import measured_in
        from advisor.watch.recording import RecordError

        with suppress(RecordError, OSError):
            measured = measured_in(record)
            self._send_peaks(measured)
            self._send_forecast(measured)
            self._send_answers(measured)

    def _send_peaks(self, measured: Measured) -> None:
        risen = [one for one in measured.peaks if one.bytes > _HIGHER * self._peaks.get((one.place, one.phase), 0)]
        self._peaks |= {(one.place, one.phase): one.bytes for one in risen}
        told = [
            {
                "place": one.place,
                "phase": one.phase,
                "bytes": one.bytes,
                "capacity": one.capacity,
                "gauge": one.gauge,
                "most": one.owners[0].owner if one.owners else None,
            }
            for one in risen
        ]
        if told:
            self._notifier.send("phase_peak", steps=measured.steps, peaks=told)

    def _send_forecast(self, measured: Measured) -> None:
        first = measured.first
        if first is None or first.gauge in self._foreseen:
            return
        from advisor.diagnosis.from_record import forecast_sentence

        self._foreseen.add(first.gauge)
        soon, late = (round(steps, 1) for steps in first.steps)
        told = {"gauge": first.gauge, "phase": first.phase, "steps_left": [soon, late]}
        self._notifier.send("forecast", **told, seconds_per_step=round(first.seconds_per_step, 3))
        self._tell(forecast_sentence(first))

    def _send_answers(self, measured: Measured) -> None:
        """Answers that grow toward their cap: every pass will hold more than it did until they are there."""
        growth = measured.answers
        if growth is None or not growth.leaks or _ANSWERS in self._foreseen:
            return
        self._foreseen.add(_ANSWERS)
        cap = self._longest()
        if cap is None or (left := growth.steps_left(cap)) is None:
            return
        soon, late = (round(steps, 1) for steps in left)
        self._notifier.send("longer_answers", tokens=round(growth.level), cap=cap, steps_left=[soon, late])
        told = {"tokens": f"{growth.level:.0f}", "cap": cap, "soon": f"{soon:.0f}", "late": f"{late:.0f}"}
        self._tell(
            say(
                "The longest answers grow: {tokens} of {cap} tokens, all of them after {soon} to {late} more steps.",
                **told,
            )
        )
