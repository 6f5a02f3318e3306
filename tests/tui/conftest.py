"""The app in tests: no animation, no cursor that blinks, no clock that moves."""

import pytest


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("advisor.tui.gauges_view.time", lambda: 1000.0)
