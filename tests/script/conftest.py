"""Writes launch files into a folder of their own and reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.script.document import EditRequest, Value
from advisor.script.edit import rewrite
from advisor.script.launch import Launch, Script
from advisor.script.proof import check
from advisor.script.reader import read_script

Read = Callable[..., Script]
Edited = Callable[..., str]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads text as a file of the given name."""

    def reader(text: str | bytes, name: str = "run.sh", **options: tuple[str, ...]) -> Script:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_script(path, **options)

    return reader


@pytest.fixture
def edited(read: Read) -> Edited:
    """The text after changes; every check of the proof must hold."""

    def editor(text: str | bytes, *wanted: EditRequest, name: str = "run.sh", launch: int = 0) -> str:
        script = read(text, name)
        rewrites = rewrite(script, launch, wanted)
        failed = [item for item in check(script, launch, wanted, rewrites) if item.held is False]
        assert not failed
        assert [item.document.path.name for item in rewrites] in ([], [name])
        return rewrites[0].new.decode() if rewrites else script.documents[0].data.decode()

    return editor


def values(launch: Launch) -> dict[str, Value | None]:
    """key → value in force."""
    return {key: setting.value for key, setting in launch.effective().items()}
