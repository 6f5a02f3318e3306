"""Checks a table in one test, which names the rows that failed: a test for each row costs more than the row does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

PARAM = type(pytest.param())


def each(
    names: str | tuple[str, ...], rows: Iterable[Any], ids: Callable[[Any], str] | None = None
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """As `pytest.mark.parametrize`, for tests that take nothing else and leave nothing behind. `ids`: how a row is
    called, or one of its values."""
    several = not isinstance(names, str) or "," in names

    def in_a_loop(test: Callable[..., None]) -> Callable[[], None]:
        every = [row.values if isinstance(row, PARAM) else tuple(row) if several else (row,) for row in rows]

        def loop() -> None:
            assert every
            wrong = []
            for values in every:
                told = ids(values[0]) if ids is not None and not several else ", ".join(map(repr, values))[:300]
                try:
                    test(*values)
                except (AssertionError, pytest.fail.Exception) as error:
                    wrong.append(f"{told}: {error}")
                except Exception as error:  # no finding of the table's: it ends the loop, and the row is named
                    raise AssertionError(f"{told}: {error!r}") from error
            assert not wrong, "\n".join([f"{len(wrong)} of {len(every)} rows", *wrong])

        loop.__name__, loop.__doc__, loop.__module__ = test.__name__, test.__doc__, test.__module__
        return loop

    return in_a_loop
