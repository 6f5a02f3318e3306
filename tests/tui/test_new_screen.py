"""A new screen is a class and its test: what it declares is bound, opens, closes, and stands in help and palette."""

from __future__ import annotations

import pytest
from textual.binding import Binding

from advisor.tui.keys import hints
from advisor.tui.screen import SCREENS, Overlay, keys_of_every_screen
from advisor.tui.ui_text import Row, paragraph
from advisor.tui.verdict import VerdictScreen

from .made_state import MadeDriver
from .screen_text import opened, press, screen_text


@pytest.fixture
def weather(monkeypatch: pytest.MonkeyPatch) -> type[Overlay]:
    """A screen that nobody else knows of."""
    for name in ("before", "weather"):  # so that it is gone afterwards
        monkeypatch.setitem(SCREENS, name, VerdictScreen)

    class WeatherView(Overlay):
        OPENED_BY = Binding("z", "weather", "weather", tooltip="how hot the cards are")
        TITLE_WORDS = "The weather"
        ENTER_CLOSES = True

        def main_rows(self, width: int) -> list[Row]:
            return paragraph("fair, 61 degrees", width)

    monkeypatch.delitem(SCREENS, "before")
    return WeatherView


async def test_its_key_opens_and_closes_it(weather: type[Overlay]) -> None:
    async with opened() as pilot:
        for back in ("z", "enter", "escape"):
            await press(pilot, "z")
            assert isinstance(pilot.app.screen, weather)
            assert "fair, 61 degrees" in screen_text(pilot.app)
            await press(pilot, back)
            assert isinstance(pilot.app.screen, VerdictScreen)


async def test_help_and_palette_know_it(weather: type[Overlay]) -> None:
    async with opened(size=(100, 60)) as pilot:
        await press(pilot, "question_mark")
        assert "how hot the cards are" in screen_text(pilot.app)
        await press(pilot, "escape", ":", *"weather", "enter")
        assert isinstance(pilot.app.screen, weather)
    assert "how hot the cards are" in [hint.explained for hint in hints(keys_of_every_screen())], "docs/keys.md"


async def test_without_a_state_it_is_not_offered(weather: type[Overlay]) -> None:
    driver = MadeDriver(early=None)
    async with opened(driver=driver) as pilot:
        pilot.app.ui.state = None  # type: ignore[attr-defined]
        assert not pilot.app.check_action("look", ("weather",))
        weather.NEEDS_STATE = False
        assert pilot.app.check_action("look", ("weather",))


async def test_the_user_may_give_it_another_key(weather: type[Overlay]) -> None:
    async with opened(keymap={"weather": "f2"}) as pilot:
        await press(pilot, "z")
        assert isinstance(pilot.app.screen, VerdictScreen)
        await press(pilot, "f2")
        assert isinstance(pilot.app.screen, weather)


def test_a_screen_that_a_thread_loads_meanwhile_does_not_end_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        @property
        def OPENED_BY(self) -> None:  # noqa: N802: as a screen has it
            monkeypatch.setitem(SCREENS, "meanwhile", VerdictScreen)

    monkeypatch.setitem(SCREENS, "slow", Slow())
    assert keys_of_every_screen()
