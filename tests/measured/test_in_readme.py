"""The README says of accuracy what docs/accuracy.md says."""

from tests.measured import in_readme


def test_the_readme_has_the_figures_of_the_accuracy_page() -> None:
    readme = in_readme.FILE.read_text(encoding="utf-8")
    assert in_readme.BEGINS + in_readme.text() + in_readme.ENDS in readme, "python -m tests.measured.in_readme --write"
