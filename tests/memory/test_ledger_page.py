"""docs/ledger.md names every owner, and every constant with its source."""

from typing import get_args

from advisor.memory import constants
from advisor.memory.cells import LETTERS, Owner
from advisor.tui.memory_bars import OWNER_WORDS

from . import ledger_page


def test_the_constants_are_those_of_the_code() -> None:
    assert ledger_page.FILE.read_text(encoding="utf-8").endswith(ledger_page.text()), (
        "python -m tests.memory.ledger_page --write"
    )


def test_every_constant_is_told() -> None:
    told = ledger_page.text()
    assert [name for name in vars(constants) if name.isupper() and f"`{name}`" not in told] == ["GIB", "KIB", "MIB"]


def test_every_owner_has_its_line() -> None:
    page = ledger_page.FILE.read_text(encoding="utf-8").lower()
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    for owner in get_args(Owner):
        words = OWNER_WORDS.get(owner, owner.replace("_", " ")).replace("’", "'").lower()
        assert any(words in line or owner.replace("_", " ") in line for line in lines), (owner, words)
        assert any(f"{LETTERS[owner].lower()}" in line for line in lines), owner
