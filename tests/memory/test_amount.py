"""Amounts: the printed text, evaluated, gives the value; intervals and basis follow from the leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.memory.amount import Amount, add_up, assumed, ceil, in_bytes, least, most, quantity
from advisor.units import GIB
from tests.loops import each

from .evaluate import evaluate

_LEAVES = st.one_of(
    st.builds(quantity, st.just("tokens"), st.integers(1, 200_000)),
    st.builds(quantity, st.just("parameters"), st.integers(10**6, 10**12)),
    st.builds(in_bytes, st.just("of weights"), st.integers(1, 10**12)),
    st.builds(quantity, st.just("of it"), st.floats(0.01, 1), st.just("%")),
    st.builds(lambda n, d: quantity("GPUs", n, low=n - d, high=n + d), st.integers(2, 9), st.floats(0, 1)),
)


def _joined(parts: st.SearchStrategy[Amount]) -> st.SearchStrategy[Amount]:
    pair = st.tuples(parts, parts)
    return st.one_of(
        pair.map(lambda p: p[0] + p[1]),
        pair.map(lambda p: p[0] * p[1]),
        pair.map(lambda p: p[0] / p[1]),
        pair.map(lambda p: least(*p)),
        pair.map(lambda p: most(*p)),
        pair.map(lambda p: p[0] + p[1] - least(*p)),
        parts.map(lambda p: p.within(low=p / 2, high=p * 3)),
        parts.map(lambda p: p.called("in all")),
    )


AMOUNTS = st.recursive(_LEAVES, _joined, max_leaves=8)


@given(AMOUNTS)
def test_the_printed_text_evaluated_gives_the_value(amount: Amount) -> None:
    assert evaluate(amount.text()) == pytest.approx(amount.value, rel=5e-3)


@given(AMOUNTS)
def test_the_value_lies_in_its_interval(amount: Amount) -> None:
    slack = 1e-9 * abs(amount.value)
    assert amount.low - slack <= amount.value <= amount.high + slack


@given(AMOUNTS, AMOUNTS)
def test_what_rests_on_an_assumption_is_estimated(one: Amount, other: Amount) -> None:
    guess = assumed("samples", 3)
    assert (one + other * guess).basis == "estimated"
    assert (one + other).basis == "computed"


@each(
    ("amount", "text"),
    [
        (
            in_bytes("", 2) * quantity("parameters", 7_615_616_512) / quantity("GPUs", 8),
            "2 bytes × 7.6156e9 parameters ÷ 8 GPUs",
        ),
        (in_bytes("", 2) * (quantity("a", 3) + quantity("b", 4)), "2 bytes × (3 a + 4 b)"),
        (quantity("a", 9) - (quantity("b", 4) - quantity("c", 1)), "9 a − (4 b − 1 c)"),
        (quantity("a", 9) / (quantity("b", 4) * quantity("c", 2)), "9 a ÷ (4 b × 2 c)"),
        (most(0, in_bytes("share", GIB) - in_bytes("weights", 2 * GIB)), "max(0, 1 GiB share − 2 GiB weights)"),
        (quantity("of it", 0.04, "%") * in_bytes("x", 3 * GIB).called("allocated"), "4 % of it × 3 GiB allocated"),
        (ceil(quantity("rows", 7) / quantity("ways", 2)), "ceil(7 rows ÷ 2 ways)"),
        (quantity("tokens", 8192) * 1 + 0, "8,192 tokens"),
        (add_up([]), "0"),
    ],
)
def test_texts_as_a_person_reads_them(amount: Amount, text: str) -> None:
    assert amount.text() == text
    assert evaluate(text) == pytest.approx(amount.value, rel=1e-4)


def test_a_divisor_that_may_be_nothing_is_refused() -> None:
    with pytest.raises(ZeroDivisionError, match="may be 0"):
        quantity("a", 1) / quantity("b", 1, low=0)


def test_an_interval_of_its_own_prints_the_expected_value() -> None:
    amount = in_bytes("of swap", 0.0).within(high=in_bytes("", 4 * GIB) * quantity("GPUs", 8))
    assert (amount.value, amount.low, amount.high) == (0, 0, 32 * GIB)
    assert amount.text() == "0 bytes of swap"
