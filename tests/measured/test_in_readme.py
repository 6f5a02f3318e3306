"""The README says of accuracy what docs/accuracy.md says."""

from tests.measured import in_readme


def test_the_readme_has_the_figures_of_the_accuracy_page() -> None:
    for file, table in in_readme.tables().items():
        told = in_readme.BEGINS + table + in_readme.ENDS
        assert told in file.read_text(encoding="utf-8"), "python -m tests.measured.in_readme --write"
