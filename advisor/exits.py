"""How a command ends: the exit codes of the contract, and the one way to refuse."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    """The tool itself failed; a report of it lies in the temporary folder."""
    UNUSABLE = 2
    """Wrong usage or unreadable input; one sentence on stderr says which file, line and why."""
    DOES_NOT_FIT = 3
    """`estimate`: the run needs more than the machine has. `fix`: no file was written that might fit."""
    NOTHING_FOUND = 4
    """No crash to diagnose."""
    CANNOT_BE_SAID = 5
    """`estimate --strict`: whether the run fits cannot be said."""
    INTERRUPTED = 130


class Refusal(Exception):  # noqa: N818 - it is an answer, not a fault of the program
    """One sentence for stderr, and the code to leave with. Nothing has been printed or written."""

    def __init__(self, sentence: str, code: Exit = Exit.UNUSABLE) -> None:
        super().__init__(sentence)
        self.code = code
