"""The table of choices in docs/retry.md is what the program chooses."""

from tests.watch.choices import BEGINS, ENDS, FILE, table


def test_the_page_has_the_choices_that_are_made() -> None:
    assert BEGINS + table() + ENDS in FILE.read_text(encoding="utf-8"), "python -m tests.watch.choices --write"
