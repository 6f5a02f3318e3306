"""What a cell prints, evaluated, is what it holds: in the stories, the published rows, and runs made up at random."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import pytest

from advisor.crash.evidence import NOTHING
from advisor.language import CHINESE, speak
from advisor.memory.amount import Amount
from advisor.memory.cells import Cell, Ledger, total
from advisor.memory.inputs import read_inputs
from advisor.memory.ledger import build_ledger
from advisor.memory.states import gradients_cells, weights_cell
from advisor.session import SessionRequest, open_session
from advisor.units import GIB
from advisor.words import weakest
from tests.measured.published import ledger_of, rows
from tests.replacing import replace
from tests.stories.told import RUNS, STORIES

from .evaluate import evaluate
from .made_runs import made_run
from .runs import box, easyr1

MADE = range(100)
ROUNDING = 2e-3
"""Of a printed number, and of every number of a difference."""


@lru_cache(maxsize=1)
def ledgers() -> tuple[tuple[str, Ledger], ...]:
    """All of them, with the names of their runs."""
    published = [(f"row {row.id}", ledger_of(row.run)) for row in rows()]
    made = [(f"made {seed}", build_ledger(*made_run(seed), NOTHING)) for seed in MADE]
    told = []
    for story in STORIES.values():
        folder = RUNS / story.folder
        gpus = story.machine[story.machine.index("--gpus") + 1]
        asked = SessionRequest(script=folder / story.script, logs=(folder / story.log,), gpus=gpus)
        told.append((story.name, open_session(asked).ledger))
    return tuple((name, ledger) for name, ledger in (*published, *made, *told) if ledger is not None)


def cells() -> Iterator[tuple[str, Cell]]:
    for name, ledger in ledgers():
        for phase in (*ledger.gpu, *ledger.host):
            yield from ((f"{name}, {phase.phase} on the {phase.place}, {cell.owner}", cell) for cell in phase.cells)


def leaves(amount: Amount) -> Iterator[Amount]:
    """Everything the value is computed from; not what bounds it."""
    if not amount.op:
        yield amount
    for each in amount.args[:1] if amount.op == "within" else amount.args:
        yield from leaves(each)


def nodes(amount: Amount) -> Iterator[Amount]:
    yield amount
    for each in amount.args:
        yield from nodes(each)


def magnitude(amount: Amount) -> float:
    """The largest value on the way to it: what rounding is relative to."""
    return max(abs(each.value) for each in nodes(amount) if each is amount or each.op or each.unit == "bytes")


evaluated = lru_cache(maxsize=None)(evaluate)
"""Many cells print what another one prints."""


@pytest.mark.parametrize("language", ["en", CHINESE])
def test_the_printed_text_evaluated_gives_the_printed_bytes(language: str) -> None:
    speak(language)
    wrong = []
    for where, cell in islice(cells(), 0, None, 1 if language == "en" else 5):  # the words alone differ
        text = cell.amount.text()
        found = max(0.0, evaluated(text))
        allowed = ROUNDING * (cell.expected if "−" not in text else magnitude(cell.amount)) + 1
        if abs(found - cell.expected) > allowed:
            wrong.append(f"{where}: {text} = {found:.6g}, not {cell.expected}")
        assert text in cell.formula
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def test_a_text_stands_for_one_number_of_bytes() -> None:
    for name, ledger in ledgers():
        held: dict[tuple[Any, ...], int] = {}
        for cell in (cell for phase in (*ledger.gpu, *ledger.host) for cell in phase.cells):
            other = held.setdefault((cell.owner, cell.formula), cell.expected)
            assert other == pytest.approx(cell.expected, rel=ROUNDING, abs=2), (name, cell.formula)


def test_what_is_expected_lies_in_its_interval() -> None:
    assert [where for where, cell in cells() if not 0 <= cell.low <= cell.expected <= cell.high] == []


def test_a_cell_is_as_sure_as_the_weakest_thing_it_is_computed_from() -> None:
    for where, cell in cells():
        assert weakest(cell.basis, *(leaf.own_basis for leaf in leaves(cell.amount))) == cell.basis, where


def test_the_unit_of_bytes_is_never_the_letter_of_billions() -> None:
    assert [where for where, cell in cells() if " B " in f" {cell.formula} "] == []


def test_the_tree_has_the_value_that_the_cell_has() -> None:
    for where, cell in cells():
        tree = cell.amount.as_tree()
        assert max(0, round(tree["value"])) == cell.expected, where


def test_a_bound_that_is_a_formula_stands_behind_the_text_of_what_is_expected() -> None:
    """ "swap space: 4 GiB x 8 GPUs" stood for 0 bytes and for 32 GiB."""
    host = build_ledger(easyr1(), box(8, 40, 760), NOTHING).phase("host", "rollout_generate")
    assert host is not None
    swap = next(cell for cell in host.cells if cell.owner == "swap")
    text = "vLLM's V0 engine: 0 bytes of swap space; at most 4 GiB of swap space × 8 GPUs of a node"
    assert (swap.formula, swap.low, swap.expected, swap.high) == (text, 0, 0, 32 * GIB)


def test_what_a_dialect_does_not_state_makes_a_guess_of_what_is_computed_from_it() -> None:
    inputs = read_inputs(easyr1(), box(8, 40, 760))
    unsaid = replace(inputs, assumed_mechanics=frozenset({"weight_bytes"}))
    assert (weights_cell(inputs).basis, weights_cell(unsaid).basis) == ("computed", "estimated")
    before, after = gradients_cells(inputs), gradients_cells(unsaid)
    assert (total(after), after[0].basis) == (total(before), "computed")
