"""Holds what the screens share: the state of the session, and where in it we are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from advisor.language import say, sentences
from advisor.tui.breadcrumb import Stage
from advisor.tui.driver import Preview, Saved, SessionDriver
from advisor.tui.ui_text import COUNTED_FROM_THE_END

if TYPE_CHECKING:
    from advisor.crash.evidence import Crash
    from advisor.machine.cluster.live import ClusterGauges
    from advisor.machine.live import GaugeSnapshot
    from advisor.recent import Recent
    from advisor.saved_fix import SavedFix
    from advisor.session import ChosenSet
    from advisor.state import State


MakeDriver = Callable[[], SessionDriver]
"""Makes a driver, or gives the one it made before: what a driver needs is loaded only when it is first asked."""


class Offers(Struct, frozen=True):
    """What the app can open besides what it was started with; None: it does not offer it."""

    demo: MakeDriver | None = None
    """Gives the driver of the bundled crash."""
    files: Callable[[Path | None, tuple[Path, ...]], SessionDriver] | None = None
    """Gives the driver of a script and logs that the user chose."""
    recent: Callable[[], Recent] | None = None
    """Looks for runs in the present folder."""
    ending: Callable[[Path], Crash | None] | None = None
    """Reads how a log ended; None where that cannot be looked at beforehand. Raises what `expected_trouble` names."""
    pasted: Callable[[str], Path] | None = None
    """Keeps pasted text as a file. Raises OSError."""
    written: Callable[[State], SavedFix | None] | None = None
    """Gives the fix that was written for a run and of which nobody has said whether it helped."""


SessionKeeper = Callable[["State", "UiState"], bool]
"""Keeps the session: the state, and where the user is and what they switched; returns whether it is one to be kept.

Raises OSError.
"""


class UiState(Struct):
    """Only the app changes it; screens read it and ask the app."""

    driver: MakeDriver
    plain_ascii: bool = False
    state: State | None = None
    """None while the files are being read."""
    stage: Stage = "machine"
    question: int = 0
    """Index into the diagnosis' path."""
    asked: dict[str, None] = field(default_factory=dict)
    """Questions that were shown on the way to the plan, in order; "I don't know" is an answer, too."""
    reading: str = ""
    """What is being read just now; "" once all of it is."""
    ends: Crash | None = None
    """What the ends of the logs prove, until a State says more."""
    note: str = ""
    """One line: what the last answer or toggle changed, or why something could not be done."""
    snapshot: GaugeSnapshot | None = None
    """The last gauges; None before the first, and where there are none."""
    no_gauges: str = ""
    """Why there are no gauges."""
    cluster: ClusterGauges | None = None
    """The Ray cluster that was named, live."""
    preview: Preview | None = None
    """None: not made for the present plan yet."""
    saved: Saved | None = None
    offers: Offers = field(default_factory=Offers)
    cursors: dict[str, str | None] = field(default_factory=dict)
    """Stage → where its cursor stood."""
    switched: dict[str, bool] = field(default_factory=dict)
    """Steps that the user switched by hand since the last answer."""
    earlier: list[tuple[State, dict[str, bool]]] = field(default_factory=list)
    """State and switches before each change of the plan since the last answer, for undo."""
    sets: dict[str, ChosenSet] = field(default_factory=dict)
    """Name → the set of changes that the user keeps under it."""
    keymap: Mapping[str, str] = field(default_factory=dict)
    """Name of an action → the user's own key for it."""
    chosen_script: Path | None = None
    chosen_logs: tuple[Path, ...] = ()
    """Files picked in the app, before they are opened."""
    keeper: SessionKeeper | None = None
    resumed: str = ""
    """Which run a session that was taken up is of: one line; "" elsewhere."""

    run_ended: float | None = None
    """When the logs were last written (epoch seconds); None: no run is known to have died."""

    @property
    def behind(self) -> str:
        """One line while only the end of a long log is shown, and the rest of it is being read."""
        if self.state is None or not self.state.crash.preliminary:
            return ""
        end = say(COUNTED_FROM_THE_END)
        return sentences([end, self.reading[:1].upper() + self.reading[1:]])

    @property
    def question_id(self) -> str:
        """The question that is shown; "" where the path became shorter."""
        path = self.known.diagnosis.path
        return path[self.question].question if self.question < len(path) else ""

    def number_of(self, question: str) -> int:
        """Where a question stands on the path; -1 where it does not."""
        return next((at for at, step in enumerate(self.known.diagnosis.path) if step.question == question), -1)

    @property
    def to_ask(self) -> tuple[str, ...]:
        """Open questions that decide something and were not shown yet."""
        return tuple(one for one in self.known.to_ask() if one not in self.asked and self.number_of(one) >= 0)

    @property
    def known(self) -> State:
        """The state, on screens that exist only once there is one."""
        assert self.state is not None
        return self.state


def nothing_given(state: State) -> bool:
    """Neither a script nor a log."""
    return state.asked.script is None and not state.asked.logs
