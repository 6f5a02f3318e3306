"""Memory bars: letters in proportion, the limit in its place."""

import re

from hypothesis import given
from hypothesis import strategies as st

from advisor.memory.amount import in_bytes
from advisor.memory.cells import OWNERS, TITLES, Cell, PhaseSum
from advisor.memory.fit import PLACES, Fit
from advisor.tui.memory_bars import (
    first_phase,
    fit_words,
    legend,
    pair,
    phase_rows,
    scale_of,
    stacked,
    unexplained,
)
from advisor.tui.ui_text import plain, texts
from tests.replacing import replace

from .made_state import G, cells, ledger, plan_of, steps

DRAWN = st.sampled_from(sorted(OWNERS))
SIZES = st.lists(st.tuples(DRAWN, st.integers(0, 200 * G)), max_size=8)


def made(parts: list[tuple[str, int]]) -> PhaseSum:
    return PhaseSum(
        "actor_update",
        "gpu",
        tuple(Cell(owner, in_bytes("", n)) for owner, n in parts),  # type: ignore[arg-type]
    )


def test_every_owner_of_the_ledger_has_a_name() -> None:
    assert all(TITLES[owner] for owner in OWNERS)


def test_a_bar_shows_each_owner_in_proportion() -> None:
    of = cells("actor_update", "gpu", weights=10, optimizer=20, activations=5)
    assert stacked(of, 40 * G, 40 * G, 40) == "W" * 10 + "O" * 20 + "A" * 5 + "·" * 4 + "|"


def test_what_passes_the_limit_stands_behind_the_mark() -> None:
    of = cells("actor_update", "gpu", weights=30, kv_cache=30)
    bar = stacked(of, 40 * G, 60 * G, 60)
    assert bar == "W" * 30 + "K" * 10 + "|" + "K" * 19


@given(SIZES, st.integers(1, 300 * G), st.integers(8, 120))
def test_a_bar_always_has_its_width_and_never_draws_an_absent_owner(
    parts: list[tuple[str, int]], capacity: int, width: int
) -> None:
    of = made(parts)
    bar = stacked(of, capacity, scale_of(of, None, capacity), width)
    assert len(bar) == width
    assert "|" in bar
    assert set(bar) <= {OWNERS[cell.owner].letter for cell in of.cells} | set("·| ")


@given(SIZES, st.integers(1, 300 * G))
def test_a_larger_sum_never_draws_fewer_letters(parts: list[tuple[str, int]], more: int) -> None:
    scale = sum(size for _, size in parts) + more + 1
    small = stacked(made(parts), None, scale, 50)
    large = stacked(made([*parts, ("buffers", more)]), None, scale, 50)
    assert small.count("·") >= large.count("·")


def test_now_and_after_share_one_scale() -> None:
    rows = pair(plan_of(steps()), "host", "actor_update", 78)
    now, after = (plain(row.line) for row in rows)
    assert now.index("|") == after.index("|")
    assert "723 of 760 G" in now
    assert "tight" in now
    assert "632 of 760 G" in after


def test_a_sum_that_would_be_too_much_with_the_unexplained_once_more_is_never_said_to_fit() -> None:
    rows = pair(plan_of(steps()), "host", "actor_update", 78)
    assert plain(rows[1].line).endswith("unsure")
    known = tuple(
        replace(of, cells=tuple(c for c in of.cells if c.owner != "unexplained")) for of in ledger(False, False).host
    )
    explained = replace(plan_of(steps()), after=replace(ledger(False, False), host=known))
    assert plain(pair(explained, "host", "actor_update", 78)[1].line).endswith("fits")


def test_the_judgement_is_in_words() -> None:
    plan = plan_of(steps())
    small = replace(ledger(False, False), gpu_capacity=20 * G)
    assert "too much" in texts(pair(replace(plan, before=small), "gpu", "actor_update", 78))


def test_an_unknown_capacity_draws_no_limit_and_judges_nothing() -> None:
    unknown = replace(ledger(False, False), gpu_capacity=None)
    shown = texts(pair(replace(plan_of(steps()), before=unknown), "gpu", "actor_update", 78))
    assert "|" not in shown.splitlines()[0]
    assert "fits" not in shown.splitlines()[0]


def test_the_legend_names_only_letters_that_are_drawn() -> None:
    shown = texts(legend(plan_of(steps()), ["actor_update"], 78))
    assert "W weights" in shown
    assert "? unexplained" in shown
    assert "KV cache" not in shown


def test_colours_say_whose_it_is_and_what_nothing_explains_is_never_good() -> None:
    plan = plan_of(steps())
    drawn = {
        letter: part.tone
        for place in PLACES
        for row in pair(plan, place, "actor_update", 78)
        for part in row.line[1:-2]
        for letter in part.text[:1]
        if letter.isalpha() or letter == "?"
    }
    assert drawn["?"] == "bad"
    host = plain(pair(plan, "host", "actor_update", 78)[0].line)
    assert re.search(r"\? unexplained \d+ ░░", host), "named where it fits, and hatched"
    assert re.search(r"p█+E█+R█*", host), "each block is begun by its owner's letter"
    assert drawn["W"] != drawn["A"]
    assert "good" not in drawn.values()
    told = [part for row in legend(plan, ["actor_update"], 200) for part in row.line]
    letters = {part.text: part.tone for part in told if len(part.text) == 1}
    assert letters == drawn, "the legend has each letter as the bars have it"


def test_the_phase_that_died_is_shown_first_else_the_fullest() -> None:
    plan = plan_of(steps())
    assert first_phase(plan, "rollout_generate") == "rollout_generate"
    assert first_phase(plan, "validation") == "actor_update"
    assert "the actor update" in texts(phase_rows(plan, "actor_update", 78))


def test_without_a_ledger_the_missing_inputs_are_named() -> None:
    missing = replace(ledger(False, False), gpu=(), host=(), missing=("the model",))
    plan = replace(plan_of(steps()), before=missing, after=None, fit=Fit("cannot_be_said"))
    assert "the model" in texts(unexplained(plan, 78))
    assert "cannot be computed" in fit_words(plan).text
