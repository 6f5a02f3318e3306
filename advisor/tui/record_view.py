"""Draws the record of `watch` over time: host and fullest GPU as curves, the phases as a band, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from itertools import groupby
from typing import ClassVar

from textual.binding import Binding, BindingType

from advisor.diagnosis.from_record import record_sentences
from advisor.language import mark, say
from advisor.report.record_report import attempt_sentences
from advisor.tui.memory_bars import GAP, with_letters
from advisor.tui.plot import AXIS, plot
from advisor.tui.screen import Overlay
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import BLANK, Row, Tone, flow, line, pad_left, paragraph, plain, span
from advisor.units import show_clock
from advisor.watch.listing import AttemptTold, attempts_of, joined
from advisor.watch.measured import recording_in
from advisor.watch.recording import (
    Band,
    Curve,
    RecordError,
    Recording,
    Series,
    axis_top,
    downsampled,
    phase_bands,
    plotted_series,
)
from advisor.words import PHASE_TITLES, Phase

LETTERS: dict[Phase, str] = {
    "model_load": "M",
    "rollout_init": "I",
    "rollout_generate": "G",
    "weight_sync": "W",
    "log_prob": "L",
    "actor_update": "A",
    "critic_update": "C",
    "optimizer_step": "O",
    "checkpoint": "K",
    "validation": "V",
    "data": "D",
    "unknown": "·",
}
TONES: dict[Phase, Tone] = {
    **dict.fromkeys(("rollout_init", "rollout_generate", "validation"), "engine"),
    **dict.fromkeys(("log_prob", "actor_update", "critic_update"), "batch"),
    "unknown": "dim",
}
"""The colours that the bars give what a phase fills the card with; what moves the model has the model's."""


def fullest(curves: Sequence[Curve]) -> Curve:
    """Of several cards, in each column the one that has the most of its own in use."""
    first = curves[0]
    most = [max((one.values[at] or 0 for one in curves), default=0) or None for at in range(len(first.values))]
    return Curve(
        first.name if len(curves) == 1 else say("the fullest of {count} cards", count=len(curves)),
        "gpu",
        first.total,
        tuple(most),
    )


def band_letters(of: Sequence[Band], begin: float, end: float, columns: int) -> str:
    """One letter a column: the phase that has most of its time."""
    letters = []
    width = (end - begin) / columns
    at = 0
    for column in range(columns):
        left, right = begin + column * width, begin + (column + 1) * width
        while at + 1 < len(of) and of[at].end <= left:
            at += 1
        share: dict[Phase, float] = {}
        for band in of[at:]:
            if band.begin >= right:
                break
            share[band.phase] = share.get(band.phase, 0.0) + min(right, band.end) - max(left, band.begin)
        letters.append(LETTERS[max(share, key=lambda phase: share[phase])] if share else " ")
    return "".join(letters)


def time_rows(of: Sequence[Band], begin: float, end: float, width: int) -> list[Row]:
    """The band of phases, and when they were."""
    columns = width - AXIS
    letters = band_letters(of, begin, end, columns)
    left, right = show_clock(begin), show_clock(end)
    gap = " " * max(1, columns - len(left) - len(right))
    tones = {letter: TONES.get(phase, "model") for phase, letter in LETTERS.items()}
    found = [phase for phase, letter in LETTERS.items() if letter in letters and phase != "unknown"]
    told = flow((f"{LETTERS[phase]} {PHASE_TITLES[phase]}" for phase in found), width, AXIS, "dim", gap=GAP)
    bands = (span("".join(same), tones.get(letter, "plain")) for letter, same in groupby(letters))
    return [
        Row(line(span(pad_left(say("phase"), AXIS - 1), "dim"), " ", *bands)),
        Row(line(" " * AXIS, span(f"{left}{gap}{right}", "dim"))),
        *(Row(with_letters(plain(row.line), tones)) for row in told),
    ]


class RecordView(Overlay):
    """Curves over the chosen stretch of time; + and - choose how long it is, the arrows where."""

    TITLE_WORDS = mark("The record over time")
    OPENED_BY = Binding("t", "record", "over time", tooltip="what `watch` recorded of the run, over time")
    RANK = 50
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus,equals_sign", "closer", "closer", key_display="+", tooltip="half the stretch of time"),
        Binding("minus", "wider", "wider", key_display="-", tooltip="twice the stretch of time"),
        Binding("left", "shift(-1)", "earlier", tooltip="earlier"),
        Binding("right", "shift(1)", "later", tooltip="later"),
        Binding("a", "attempts", "attempts", tooltip="all attempts of a run that came back, or this one alone"),
    ]
    share: float = 1.0
    """Of the record's length that is shown."""
    begin: float = 0.0
    """Seconds."""
    alone: bool = False
    """Of several attempts only the one whose record was opened is shown."""

    @property
    def recording(self) -> Recording | None:
        """What is looked at; None where the session has no record."""
        measured = self.state.measured
        if measured is None:
            return None
        if not self.alone and self._attempts:
            with suppress(RecordError, OSError):
                return joined(self._attempts)
        return recording_in(measured.folder)

    @cached_property
    def _attempts(self) -> tuple[AttemptTold, ...]:
        measured = self.state.measured
        return attempts_of(measured.folder) if measured is not None else ()

    @classmethod
    def can_show(cls, ui: UiState) -> bool:
        return ui.state is not None and ui.state.measured is not None

    def main_rows(self, width: int) -> list[Row]:
        recording, measured = self.recording, self.state.measured
        if recording is None or measured is None:
            return paragraph(say(NO_RECORD), width)
        end = self.begin + max(recording.length, 0.1) * self.share
        height = max(3, (self.app.size.height - 16) // 2)
        out: list[Row] = []
        for title, many in _groups(plotted_series(recording)):
            curves = [downsampled(one, width - AXIS, self.begin, end) for one in many]
            one = fullest(curves)
            told = say("{place}: {name}, GiB", place=title, name=one.name)
            out += plot(told, one.values, one.total, axis_top([one]), (height, width))
        out += time_rows(phase_bands(recording), self.begin, end, width)
        said = [*attempt_sentences(measured.folder), *record_sentences(measured)]
        return [*out, BLANK, *(row for sentence in said for row in paragraph(sentence, width))]

    def action_closer(self) -> None:
        self._look_at(self.share / 2, 0.25)

    def action_wider(self) -> None:
        self._look_at(self.share * 2, -0.5)

    def action_shift(self, by: int) -> None:
        self._look_at(self.share, by * 0.25)

    def action_attempts(self) -> None:
        if self._attempts:
            self.alone, self.share, self.begin = not self.alone, 1.0, 0.0
            self.reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The key is there where there are several."""
        return bool(self._attempts) if action == "attempts" else super().check_action(action, parameters)

    def _look_at(self, share: float, moved: float) -> None:
        recording = self.recording
        if recording is None:
            return
        length = max(recording.length, 0.1)
        begin = self.begin + moved * self.share * length
        self.share = min(1.0, max(share, min(1.0, 10 / length)))
        self.begin = min(max(0.0, begin), length * (1 - self.share))
        self.reload()


NO_RECORD = mark(
    "There is no record of this run. Started with rl-oom-advisor watch -- bash run.sh, the next one leaves one behind: "
    "memory over time, phase by phase, to the moment it dies."
)


def _groups(many: Sequence[Series]) -> list[tuple[str, list[Series]]]:
    """Cards, and the host memory that binds."""
    cards = [one for one in many if one.gauge.kind == "gpu"]
    host = [one for one in many if one.gauge.kind in ("limit", "host")][:1]
    return [(title, found) for title, found in ((say("GPU"), cards), (say("Host"), host)) if found]
