"""Sets of changes: kept under a name, compared in two columns, taken again."""

import pytest

from advisor.session import ChosenSet
from advisor.tui.plan_view import PlanScreen
from advisor.tui.sets_view import SetsView

from .made_state import MadeDriver
from .screen_text import opened, press, same_as_golden, screen_text


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 15)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_two_sets_stand_side_by_side(size: tuple[int, int]) -> None:
    async with opened(size=size) as pilot:
        await press(pilot, "enter", "space", "s")
        assert isinstance(pilot.app.screen, SetsView)
        same_as_golden(f"sets-{size[0]}x{size[1]}", screen_text(pilot.app))


async def test_what_is_on_is_kept_under_a_name_and_taken_again() -> None:
    async with opened() as pilot:
        await press(pilot, "enter", "space", "s", "n", *"half off", "enter")
        assert pilot.app.ui.sets == {"half off": ChosenSet(("param-offload-off",))}  # type: ignore[attr-defined]
        await press(pilot, "escape", "space", "down", "space", "s", "end")
        shown = screen_text(pilot.app)
        assert "▸ half off" in shown
        there = next(one for one in shown.splitlines() if "offload_params" in one)
        assert there.split()[-2:] == ["–", "false"]
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, PlanScreen)
        on = [step.id for step in pilot.app.ui.known.plan.selected()]  # type: ignore[attr-defined]
        assert on == ["param-offload-off"]
        await press(pilot, "u")
        assert [step.id for step in pilot.app.ui.known.plan.selected()] == ["optimizer-offload-off"]  # type: ignore[attr-defined]


async def test_a_set_is_forgotten_and_the_programs_own_cannot_be() -> None:
    async with opened() as pilot:
        await press(pilot, "enter", "s", "x")
        assert "as proposed" in screen_text(pilot.app)
        await press(pilot, "n", *"mine", "enter", "end", "x")
        assert "mine" not in screen_text(pilot.app)
        assert pilot.app.ui.sets == {}  # type: ignore[attr-defined]


async def test_a_name_can_be_left_unwritten_and_hostile_letters_are_letters() -> None:
    async with opened() as pilot:
        await press(pilot, "enter", "s", "n", "x", "escape")
        assert isinstance(pilot.app.screen, SetsView)
        assert pilot.app.ui.sets == {}  # type: ignore[attr-defined]
        await press(pilot, "n", *"[red]q", "enter")
        assert "[red]q" in screen_text(pilot.app)


async def test_what_was_taken_can_be_resumed_switch_by_switch() -> None:
    kept = []
    async with opened(keeper=lambda *all_of_it: kept.append(all_of_it)) as pilot:
        await press(pilot, "enter", "space", "down", "down", "space", "s", "n", *"mine", "enter", "end", "enter")
    state, switched = kept[-1][0], kept[-1][1].switched
    assert switched == {"optimizer-offload-off": False, "ray-threshold": True}
    again = MadeDriver().open(lambda _: None)
    for step, on in switched.items():
        if next(one for one in again.plan.steps if one.id == step).selected != on:
            again = MadeDriver().toggle(again, step)
    assert [step.id for step in again.plan.selected()] == [step.id for step in state.plan.selected()]
