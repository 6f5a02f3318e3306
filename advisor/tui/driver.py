"""What the app needs from the session: six verbs. The app calls nothing else below it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from advisor.session import State

Notice = Callable[[str], None]
"""Told what is being read: "reading train.log, 212 MB"."""
Early = Callable[["State"], None]
"""Given a first State while the rest of long logs is still to be read."""


def expected_trouble() -> tuple[type[Exception], ...]:
    """What a driver may raise: one sentence for the user. Anything else is a bug and ends the app with a traceback.

    A function, because the rooms that raise are loaded after the first frame stands.
    """
    from advisor.crash.sources import LogError
    from advisor.knowledge.load import KnowledgeError
    from advisor.script.document import EditRefused, ScriptError

    return (ScriptError, LogError, KnowledgeError, EditRefused, ValueError, OSError)


class Preview(Struct, frozen=True):
    """What saving would write. `diff` is a unified diff; empty: no step of the plan edits a file."""

    diff: str
    proof: tuple[str, ...] = ()
    """What was verified: "read back equal to the plan", "bash -n clean"."""
    destination: Path | None = None
    """Where it would be written; None: there is no script to write."""
    refused: str = ""
    """One sentence where the edit cannot be made exactly; `diff` is then empty."""
    by_hand: tuple[str, ...] = ()
    """Selected steps that no file edit carries out (versions, machines): one sentence each."""
    report: Path | None = None
    """Where the report alone could be written when no file changes; None: it cannot."""


class Saved(Struct, frozen=True):
    """What was written, and the one command that comes next."""

    path: Path
    """The report itself, where nothing else was written."""
    report: Path
    next_command: str
    """"" where there is none to name."""
    by_hand: tuple[str, ...] = ()
    """What must be done by hand before it: one sentence each."""
    notes: tuple[str, ...] = ()
    """What is worth a word about the file: a link that was followed, attributes that were not copied."""


class Driver(Protocol):
    """One sitting. Each call gives a new State and may take seconds: the app calls it from a worker thread."""

    def open(self, notice: Notice, early: Early | None = None) -> State:
        """Read what was asked for and diagnose it. Of long logs `early` is given what their ends prove."""
        ...

    def carry_over(self, before: State, now: State) -> State:
        """`now` with the answers and switches that the user made in `before`."""
        ...

    def answer(self, state: State, question: str, choice: str | None) -> State:
        """Answer one question; None takes the user's answer back."""
        ...

    def toggle(self, state: State, step_id: str) -> State:
        """Switch one step of the plan on or off."""
        ...

    def preview(self, state: State) -> Preview:
        """The patch of the selected steps; writes nothing."""
        ...

    def save(self, state: State, destination: Path, force: bool) -> Saved:
        """Write script and report (`Preview.report` as the destination: the report alone).

        Raises FileExistsError where the destination exists and `force` is False.
        """
        ...
