"""docs/ten-crashes.md says what the cases say."""

from . import crashes_page


def test_the_page_of_crashes_is_that_of_the_cases() -> None:
    written = crashes_page.FILE.read_text(encoding="utf-8")
    assert written == crashes_page.text(), "python -m tests.knowledge.crashes_page --write"


def test_ten_confirmed_crashes_of_many_frameworks_say_what_died_and_what_worked() -> None:
    cases = crashes_page.chosen()
    assert len({case.id for case in cases}) == 10
    assert len({case.situation.get("framework") for case in cases}) >= 5
    assert all(case.source.startswith("https://") for case in cases)
