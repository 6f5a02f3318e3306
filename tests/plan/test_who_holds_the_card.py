"""Ranks that share a card are given their own; a card that nvidia-smi shows taken before the start is looked at."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned
from tests.plan.test_failing_line import BARE, first

LOADING = (
    'Traceback (most recent call last):\n  File "/x/transformers/modeling_utils.py", line 4400, in from_pretrained\n'
    "    ) = cls._load_pretrained_model(\n"
)
CARD = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 260.00 MiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 100.00 MiB is free. {others} Of the allocated memory 17.40 GiB is allocated by PyTorch, and 20.00 MiB is "
    "reserved by PyTorch but unallocated.\n"
)
ROW = "| N/A   33C    P0    62W / 400W |  {used:>5}MiB / 81920MiB |      0%      Default |\n"
BARE_ERROR = (
    'Traceback (most recent call last):\n  File "/w/train.py", line 9, in <module>\n    model.to("cuda")\n'
    "RuntimeError: CUDA error: out of memory\n"
)


def held(*sizes: float) -> str:
    return " ".join(f"Process {number} has {size:.2f} GiB memory in use." for number, size in enumerate(sizes, 101))


@pytest.mark.parametrize(
    ("sizes", "leads"),
    [((15.2, 15.2, 15.1, 15.0, 18.0), "map-devices"), ((55.0, 2.0, 2.0, 18.0), "clear-leftovers")],
)
def test_ranks_on_one_card_are_told_from_a_stranger(planned: Planned, sizes: tuple[float, ...], leads: str) -> None:
    assert first(planned(BARE, LOADING + CARD.format(others=held(*sizes)))) == leads


@pytest.mark.parametrize(
    ("used", "taken"), [((71243, 4), True), ((71243,), True), ((900, 4), False), ((71243, 70999), False)]
)
def test_a_card_that_was_taken_before_is_looked_at(planned: Planned, used: tuple[int, ...], taken: bool) -> None:
    table = "".join(ROW.format(used=one) for one in used)
    assert (first(planned(BARE, table + BARE_ERROR)) == "clear-leftovers") is taken


def test_a_table_below_the_failure_says_nothing_of_what_was_before(planned: Planned) -> None:
    assert first(planned(BARE, BARE_ERROR + ROW.format(used=71243))) != "clear-leftovers"
