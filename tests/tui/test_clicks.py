"""The mouse works where a person would click: on keys, stages, and rows."""

from textual.pilot import Pilot

from advisor.hostile import cells
from advisor.tui.help_view import HelpView
from advisor.tui.plan_view import PlanScreen
from advisor.tui.question import QuestionScreen
from advisor.tui.verdict import VerdictScreen

from .screen_text import opened, press, screen_text, settle


async def click(pilot: Pilot[int], words: str) -> None:
    """Click in the middle of the first place where `words` stand."""
    lines = screen_text(pilot.app).splitlines()  # type: ignore[arg-type]
    y, found = next((y, line) for y, line in enumerate(lines) if words in line)
    await pilot.click(offset=(cells(found[: found.index(words)]) + cells(words) // 2, y))
    await settle(pilot)


async def test_keys_and_stages_can_be_clicked() -> None:
    async with opened() as pilot:
        await click(pilot, "enter plan")
        assert isinstance(pilot.app.screen, PlanScreen)
        before = screen_text(pilot.app)
        await click(pilot, "space toggle")
        assert screen_text(pilot.app) != before
        await click(pilot, "? help")
        assert isinstance(pilot.app.screen, HelpView)
        await click(pilot, "esc back")
        assert isinstance(pilot.app.screen, PlanScreen)
        await click(pilot, "Crash ✓")
        assert isinstance(pilot.app.screen, VerdictScreen)
        await click(pilot, "Questions ·")
        assert isinstance(pilot.app.screen, QuestionScreen)
        await click(pilot, "easyr1")
        assert isinstance(pilot.app.screen, QuestionScreen), "what is no stage leads nowhere"


async def test_the_palette_leads_to_every_stage() -> None:
    async with opened() as pilot:
        await press(pilot, ":", *"plan", "space", *"stage", "enter")
        await settle(pilot)
        assert isinstance(pilot.app.screen, PlanScreen)
