"""The palette: every command by its words, done on the screen it was opened from."""

from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from advisor.config import THEMES
from advisor.tui.app import HIGH_CONTRAST
from advisor.tui.evidence_view import EvidenceView
from advisor.tui.gauges_view import GaugesView
from advisor.tui.keys import Hint
from advisor.tui.page import LEGIBLE, readable, times_as_bright
from advisor.tui.palette import Palette, matching
from advisor.tui.plan_view import PlanScreen
from advisor.tui.save_view import DiffScreen
from advisor.tui.verdict import VerdictScreen
from tests.loops import each

from .screen_text import opened, press, screen_text


def hint(words: str, explained: str = "") -> Hint:
    return Hint("x", words, explained or words, True, words)


def test_every_typed_word_must_stand_in_it_and_beginnings_come_first() -> None:
    commands = [hint("why not", "causes that were ruled out"), hint("gauges", "all GPUs"), hint("open line")]
    assert [one.words for one in matching(commands, "ruled why")] == ["why not"]
    assert [one.words for one in matching(commands, "o")] == ["open line", "why not"]
    assert matching(commands, "nothing of the kind") == []
    assert matching(commands, "") == commands


async def test_a_command_of_the_app_and_one_of_the_screen_are_done() -> None:
    async with opened() as pilot:
        await press(pilot, ":", *"gau", "enter")
        assert isinstance(pilot.app.screen, GaugesView)
        await press(pilot, "escape", "ctrl+p", *"open", "enter")
        assert isinstance(pilot.app.screen, EvidenceView)


async def test_arrows_choose_letters_are_typed_and_escape_changes_nothing() -> None:
    async with opened() as pilot:
        await press(pilot, ":", "p")
        assert isinstance(pilot.app.screen, Palette)
        assert "▸ plan" in screen_text(pilot.app)
        await press(pilot, "backspace", "down", "down")
        assert "▸ case" in screen_text(pilot.app)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, VerdictScreen)


async def test_what_fits_no_command_says_so() -> None:
    async with opened() as pilot:
        await press(pilot, ":", *"zzz")
        assert "no command goes by these words" in screen_text(pilot.app)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, Palette)


async def test_the_colours_can_be_changed_there() -> None:
    async with opened() as pilot:
        await press(pilot, ":", *"light", "enter")
        assert pilot.app.theme == "textual-light"


async def test_colours_are_tried_on_under_the_cursor_and_left_as_they_were() -> None:
    async with opened() as pilot:
        before = pilot.app.theme
        await press(pilot, ":", *"contrast")
        assert pilot.app.theme == "contrast"
        await press(pilot, "escape")
        assert pilot.app.theme == before
        await press(pilot, ":", *"nord", "enter")
        assert pilot.app.theme == "nord"
        await press(pilot, ":", *"quit", "backspace", "escape")
        assert pilot.app.theme == "nord"


async def test_a_step_is_found_by_its_key_and_the_cursor_stands_on_it() -> None:
    async with opened() as pilot:
        await press(pilot, ":", *"rollout_batch", "enter")
        shown = screen_text(pilot.app)
        assert "Plan ●" in shown
        assert "▸ [ ] data.rollout_batch_size" in shown


async def test_stages_and_steps_are_found_by_their_names_and_keys() -> None:
    async with opened() as pilot:
        await press(pilot, ":", *"offload_params", "enter")
        assert isinstance(pilot.app.screen, PlanScreen)
        await press(pilot, ":", *"save", "enter")
        assert isinstance(pilot.app.screen, DiffScreen)
        await press(pilot, ":", *"crash", "enter")
        assert isinstance(pilot.app.screen, VerdictScreen)


@each("theme", [BUILTIN_THEMES.get(name, HIGH_CONTRAST) for name in THEMES.values() if not name.startswith("ansi")])
def test_every_tone_is_legible_in_every_theme(theme: Theme) -> None:
    colors = theme.to_color_system().generate()
    ground = Color.parse(colors["panel"])
    for kind in ("primary", "success", "warning", "error", "accent"):
        assert times_as_bright(readable(Color.parse(colors[f"text-{kind}"]), ground), ground) >= LEGIBLE
