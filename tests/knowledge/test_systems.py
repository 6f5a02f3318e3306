"""The README's table of systems is that of the knowledge."""

from tests.knowledge import systems


def test_the_readme_names_the_systems_that_the_knowledge_has() -> None:
    readme = systems.FILE.read_text(encoding="utf-8")
    assert systems.BEGINS + systems.text() + systems.ENDS in readme, "python -m tests.knowledge.systems --write"
