"""The README's table of systems is that of the knowledge."""

from tests.knowledge import systems


def test_the_readme_names_the_systems_that_the_knowledge_has() -> None:
    for file, table in systems.tables().items():
        told = systems.BEGINS + table + systems.ENDS
        assert told in file.read_text(encoding="utf-8"), "python -m tests.knowledge.systems --write"
