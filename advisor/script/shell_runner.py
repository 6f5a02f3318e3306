"""What a builtin of the shell may ask of the one that runs it."""

from __future__ import annotations

from typing import Protocol

from advisor.script.shell_command import Assignment, Simple
from advisor.script.shell_expand import Expander
from advisor.script.shell_state import Field, State
from advisor.script.shell_test import Condition
from advisor.script.shell_text import Piece, Pieces, Place
from advisor.script.shell_trace import Flow


class Runner(Protocol):
    """Whoever follows a script."""

    last: bool | None
    """How the last statement ended: success, failure, or not known."""
    at_exit: Pieces
    """What the script runs when it ends (`trap … EXIT`)."""
    capture: list[Piece] | None
    """What a command substitution has printed so far; None outside of one."""

    def assign(
        self, assignment: Assignment, expander: Expander, exported: bool = False, value: Pieces | None = None
    ) -> None:
        """Carry out one assignment; `value` where it has been expanded already."""

    def used(self, places: tuple[Place, ...], label: str) -> None:
        """Note that literals have a part in something that is no command."""

    def nested(self, pieces: Pieces, state: State, home: Place | None = None) -> Flow:
        """Run a string as shell text; `home` is the word that it comes from."""

    def follow(self, path: Pieces, state: State) -> Flow:
        """Run another script in `state`."""

    def as_given(self, state: State) -> State:
        """For conditions: arguments that were not given are empty."""

    def decide(self, condition: Condition) -> bool | None:
        """Answer a condition; None where it cannot be known."""

    def write(self, path: Pieces, body: Pieces, append: bool, state: State) -> None:
        """What a file of the script holds from here on."""

    def external(self, command: Simple, fields: tuple[Field, ...], expander: Expander) -> tuple[Flow, bool | None]:
        """A command that is no builtin."""
