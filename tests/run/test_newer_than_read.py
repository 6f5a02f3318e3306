"""A version newer than what was read is answered, and said, with one step less of certainty."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework, NewestRead
from advisor.session import SessionRequest, State, open_session
from tests.knowledge.minimal_launch import minimal_launch

READ: list[tuple[Framework, NewestRead]] = [
    (dialect, dialect.newest_read)
    for dialect in load_knowledge().frameworks
    if dialect.newest_read is not None and dialect.newest_read.version
]


@pytest.mark.parametrize(("dialect", "read"), READ, ids=[dialect.framework for dialect, _ in READ])
def test_a_newer_version_is_said_and_makes_the_sums_an_estimate(
    dialect: Framework, read: NewestRead, tmp_path: Path
) -> None:
    launch = minimal_launch(dialect, dialect.eras[0].id, dialect.eras[0].versions)
    script = tmp_path / launch.name
    script.write_text(launch.text)

    def opened(version: str) -> State:
        library = f"{dialect.package}={version}"
        machine = {"gpus": "8xA100-80GB", "host_ram": "900GB", "libraries": (library,)}
        return open_session(SessionRequest(script, **machine, planned=False))  # type: ignore[arg-type]

    newer = f"{Version(read.version).major + 1}.0.0"
    says = (
        f"{dialect.title} {newer} is newer than what is known ({read.version}, {read.month}): settings may have moved."
    )
    told, known = opened(newer), opened(read.version)
    assert says in told.run.doubts
    assert told.ledger.basis == "estimated"
    assert not any("is newer than what is known" in doubt for doubt in known.run.doubts)
    assert told.run.era == known.run.era


def test_every_dialect_says_up_to_where_it_was_read() -> None:
    assert [dialect.framework for dialect in load_knowledge().frameworks if dialect.newest_read is None] == []
