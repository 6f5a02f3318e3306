"""docs/ledger.md names every owner, and every constant with its source."""

from advisor.memory import constants
from advisor.memory.cells import OWNERS

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
    for owner, row in OWNERS.items():
        words = row.title.lower()
        assert any(words in line or owner.replace("_", " ") in line for line in lines), (owner, words)
        assert any(f"{row.letter.lower()}" in line for line in lines), owner
