"""The first moments: what the ends of the logs prove already, and what is still being read, calmly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget

from advisor.language import mark, say
from advisor.tui.frame import Frame
from advisor.tui.ui_text import BLANK, BOX, Row, flow, heading, paragraph

if TYPE_CHECKING:
    from advisor.machine.inventory import Machine
    from advisor.machine.live import GaugeSnapshot


KEPT_KEYS = {"enter", "up", "down", "o", "w", "y", "m", "d"}
"""Keys of the verdict that mean nothing before it is there."""


class LoadingScreen(Frame):
    """Until the session is open. q leaves at any time."""

    NEEDS_STATE = False
    TITLE_WORDS = mark("Reading")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.leave", "stop", tooltip="stop reading and quit"),
    ]

    def panes(self) -> Iterable[Widget]:
        """One page."""
        yield self.page("main_rows", "main")

    def on_key(self, event: events.Key) -> None:
        """Who reads the glance and knows what comes presses on: the verdict gets these keys when it is there."""
        if self.sitting.glance is not None and event.key in KEPT_KEYS:
            event.stop()
            self.sitting.typed.append(event)

    def main_rows(self, width: int) -> list[Row]:
        """The glance, as the verdict will look; below it what is being read."""
        reading = paragraph(self.sitting.reading or say("reading …"), width, tone="strong")
        glance = self.sitting.glance
        if glance is None:
            return reading
        from advisor.tui.proof import headline, proof_rows

        top = paragraph(headline(glance.crash), width, tone="strong")
        proof = proof_rows(glance.crash, glance.titles, width, 3)
        return [*top, BLANK, *proof, *box_rows(glance.machine, self.sitting.snapshot, width), BLANK, *reading]


def box_rows(described: Machine, live: GaugeSnapshot | None, width: int) -> list[Row]:
    """The machine as the user described it, else as its gauges show it."""
    from advisor.tui.facts import gpu_words, host_words

    gpus, host = described.gpus, described.host
    if live is not None:
        gpus = gpus or tuple(gauge.gpu for gauge in live.gpus)
        host = host if host.total_bytes is not None else live.host
    box = replace(described, gpus=gpus, host=host)
    return [heading(say(BOX)), *flow([gpu_words(box), host_words(box)], width, 2, gap=" · ")]
