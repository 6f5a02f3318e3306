"""Memory, phase by phase: one bar a line, now and after, and the arithmetic one key away."""

import pytest

from advisor.tui.explain import ArithmeticView
from advisor.tui.memory_view import MemoryView, memory_rows
from advisor.tui.ui_text import texts
from tests.replacing import replace

from .made_state import gpu_crash, host_crash
from .screen_text import opened, press, same_as_golden, screen_text


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 15)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_it_looks_as_it_should_and_begins_where_the_run_died(size: tuple[int, int]) -> None:
    async with opened(size=size) as pilot:
        await press(pilot, "m")
        assert isinstance(pilot.app.screen, MemoryView)
        same_as_golden(f"memory-{size[0]}x{size[1]}", screen_text(pilot.app))


async def test_enter_opens_the_arithmetic_of_the_marked_phase_and_escape_returns() -> None:
    async with opened(gpu_crash()) as pilot:
        await press(pilot, "m", "up", "enter")
        assert isinstance(pilot.app.screen, ArithmeticView)
        assert "The arithmetic of generating rollouts" in screen_text(pilot.app)
        await press(pilot, "escape", "escape")
        assert not isinstance(pilot.app.screen, MemoryView)


def test_every_phase_has_its_bar_and_what_does_not_change_is_drawn_once() -> None:
    plan = host_crash().plan
    shown = texts(memory_rows(plan, "actor_update", 78))
    assert (shown.count("GPU  now"), shown.count("GPU  both")) == (1, 1), "the actor update's GPU is as it was"
    assert (shown.count("host now"), shown.count("after")) == (2, 3)
    assert "the run died here" in shown
    assert "W weights" in shown
    assert "| is the limit" in shown


async def test_without_a_ledger_it_says_what_is_missing_and_is_no_dead_end() -> None:
    state = host_crash()
    async with opened(state.with_plan(replace(state.plan, before=None, after=None))) as pilot:
        await press(pilot, "m")
        assert "Memory cannot be counted; what is missing" in screen_text(pilot.app)
        await press(pilot, "enter", "a")
        assert isinstance(pilot.app.screen, MemoryView)
        await press(pilot, "escape")
        assert "Host RAM ran out" in screen_text(pilot.app)
