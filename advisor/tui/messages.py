"""What the app's workers tell it, and where its gauges come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from textual.message import Message

if TYPE_CHECKING:
    from advisor.machine.live import GaugeSnapshot


class NobodyWaitsError(Exception):
    """What is being read is not wanted any more."""


class GaugeSource(Protocol):
    """Where gauges come from; `machine.live.Gauges` is one."""

    def poll(self, now: float) -> GaugeSnapshot:
        """The gauges at `now` on a clock that never goes back."""
        ...


class GaugesRead(Message):
    """A worker read the gauges."""

    def __init__(self, snapshot: GaugeSnapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


class Noticed(Message):
    """The session says what it is reading."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
