"""docs/keys.md says what the app does."""

from . import keys_page


def test_the_page_of_keys_is_that_of_the_bindings() -> None:
    assert keys_page.FILE.read_text(encoding="utf-8") == keys_page.text().rstrip() + "\n", (
        "python -m tests.tui.keys_page --write"
    )
