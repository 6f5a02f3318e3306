"""The words of a formula, said when somebody reads them: a plan computes thousands of ledgers and reads few of them."""

from __future__ import annotations

from collections.abc import Callable

Words = Callable[[], str]


def read(formula: str | Words) -> str:
    """The text, in the language in force when it is read."""
    return formula if isinstance(formula, str) else formula()
