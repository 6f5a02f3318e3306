"""What the app's workers tell it, and where its gauges and its first glance come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from textual.message import Message

if TYPE_CHECKING:
    from advisor.glance import Glance
    from advisor.machine.cluster.live import ClusterSnapshot
    from advisor.machine.live import GaugeSnapshot

Glancing = Callable[[], "Glance | None"]
"""Waits for what the ends of the logs prove; None where that is not known in time."""


class NobodyWaitsError(Exception):
    """What is being read is not wanted any more."""


class GaugeSource(Protocol):
    """Where gauges come from; `machine.live.Gauges` is one."""

    def poll(self, now: float) -> GaugeSnapshot:
        """The gauges at `now` on a clock that never goes back."""
        ...


class ClusterSource(Protocol):
    """Where the nodes of a cluster come from; `machine.cluster_live.ClusterGauges` is one."""

    def look(self) -> ClusterSnapshot:
        """The nodes as last told, without waiting; who looks keeps the asking going."""
        ...


class GaugesRead(Message):
    """A worker read the gauges."""

    def __init__(self, snapshot: GaugeSnapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


class Glanced(Message):
    """A worker has the glance, or knows that there is none."""

    def __init__(self, glance: Glance | None) -> None:
        super().__init__()
        self.glance = glance


class Noticed(Message):
    """The session says what it is reading."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
