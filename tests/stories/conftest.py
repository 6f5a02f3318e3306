"""A story's session is opened once for all tests that read it: every copy of its folder has the same in it."""

from __future__ import annotations

from typing import Any

import pytest

from advisor import session
from advisor.language import spoken
from advisor.session import SessionRequest, State

_OPENED: dict[tuple[object, ...], State] = {}
_open = session.open_session


@pytest.fixture(autouse=True)
def _opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def once(asked: SessionRequest, *told: Any, **how: bool) -> State:
        files = [file for file in (asked.script, *asked.logs) if file is not None]
        if told or any(file.is_absolute() or not file.is_file() for file in files):  # `told`: the app looks on
            return _open(asked, *told, **how)
        read = repr((asked, sorted(how.items()))), spoken(), *(file.read_bytes() for file in files)
        return _OPENED[read] if read in _OPENED else _OPENED.setdefault(read, _open(asked, **how))

    monkeypatch.setattr(session, "open_session", once)
