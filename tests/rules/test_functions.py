"""Counts of GPUs that frameworks write as text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.rules.expression import Expression
from advisor.rules.functions import device_ids, parallel_sizes
from tests.loops import each
from tests.rules.test_expression import Names


@each(
    ("text", "ids"),
    [
        ("list(range(0,8))", set(range(8))),
        ("list(range(4, 12))", set(range(4, 12))),
        ("list(range(0,16,2))", set(range(0, 16, 2))),
        ("list(range(0,2)) + list(range(6,8))", {0, 1, 6, 7}),
        ("[0, 1, 2]", {0, 1, 2}),
        ("0,3", {0, 3}),
        ("4 5 6", {4, 5, 6}),
        ("range(8)", None),
        ("__import__('os').getpid()", None),
        ("", None),
        (None, None),
    ],
)
def test_lists_of_devices_are_read_and_never_evaluated(text: str | None, ids: set[int] | None) -> None:
    assert device_ids(text) == (None if ids is None else frozenset(ids))


@each(
    ("text", "count"),
    [("sglang:d4p1t1", 4), ("sglang.d4t2", 8), ("fsdp:d4c2", 8), ("d8", 8), ("megatron:d2t2p2e4", 8)],
)
def test_parallel_sizes_multiply_and_experts_share_the_ranks(text: str, count: int) -> None:
    assert Expression("ranks(text)").of(Names({"text": text})) == count


@given(st.text(max_size=40))
def test_any_text_gives_an_answer_or_none(text: str) -> None:
    assert device_ids(text) is None or all(number >= 0 for number in device_ids(text) or ())
    assert parallel_sizes(text) is None or parallel_sizes(text)
