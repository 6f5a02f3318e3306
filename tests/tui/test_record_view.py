"""The record over time, in the app."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.tui.plot import drawn
from advisor.tui.record_view import RecordView, band_letters
from advisor.watch.measured import measured_in
from advisor.watch.recording import Band
from tests.replacing import replace
from tests.watch.made_record import made_record

from .made_state import host_crash
from .screen_text import opened, press, same_as_golden, screen_text


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> object:
    return measured_in(made_record(tmp_path_factory.mktemp("made") / "record", steps=12))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_record_looks_as_it_should(measured: object, size: tuple[int, int]) -> None:
    async with opened(replace(host_crash(), measured=measured), size) as pilot:
        await press(pilot, "t")
        assert isinstance(pilot.app.screen, RecordView)
        same_as_golden(f"record-{size[0]}x{size[1]}", screen_text(pilot.app))


async def test_the_stretch_of_time_can_be_chosen(measured: object) -> None:
    async with opened(replace(host_crash(), measured=measured)) as pilot:
        await press(pilot, "t", "plus", "plus")
        view = pilot.app.screen
        assert isinstance(view, RecordView)
        assert view.share == pytest.approx(0.25)
        before = view.begin
        await press(pilot, "right")
        assert view.begin > before
        await press(pilot, "minus", "minus", "minus")
        assert (view.share, view.begin) == (1.0, 0.0)
        await press(pilot, "t")
        assert not isinstance(pilot.app.screen, RecordView)


async def test_without_a_record_there_is_nothing_to_open() -> None:
    async with opened() as pilot:
        await press(pilot, "t")
        assert not isinstance(pilot.app.screen, RecordView)


@given(st.lists(st.none() | st.integers(0, 100), min_size=1, max_size=60), st.integers(1, 12))
def test_a_curve_is_as_high_and_wide_as_asked_and_never_higher_above_lower_values(
    values: list[int | None], height: int
) -> None:
    lines = drawn(values, height, 100)
    assert len(lines) == height
    assert {len(one) for one in lines} == {len(values)}
    for column, value in enumerate(values):
        signs = "".join(one[column] for one in lines)
        assert signs.strip() == signs.lstrip(), "a bar stands on the floor"
        assert bool(signs.strip()) == bool(value)


def test_each_column_of_the_band_is_the_phase_that_has_most_of_it() -> None:
    of = [Band(0, 4, "rollout_generate"), Band(4, 5, "log_prob"), Band(5, 10, "actor_update")]
    assert band_letters(of, 0, 10, 10) == "GGGGLAAAAA"
    assert band_letters(of, 0, 10, 2) == "GA"
