"""Tells while a run lives which phase peaked where, and what would be full first: what its record says so far."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.language import say
from advisor.watch.events import Notifier

if TYPE_CHECKING:
    from advisor.watch.measured import Measured
    from advisor.watch.request import Notify

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
