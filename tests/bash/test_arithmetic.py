"""Arithmetic against bash itself, on expressions that nobody thought of."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from advisor.bash.arithmetic import Undecided, evaluate
from tests.heavy import examples

LEAVES = st.sampled_from(["0", "1", "2", "7", "010", "0x1f", "16#ff", "a", "b", "-3", "9223372036854775807"])
BINARY = ["+", "-", "*", "/", "%", "**", "<<", ">>", "&", "|", "^", "&&", "||", "==", "!=", "<", ">", "<=", ">=", ","]


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(inner, st.sampled_from(BINARY), inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})")
    bare = st.tuples(inner, st.sampled_from(BINARY), inner).map(" ".join)
    unary = st.tuples(st.sampled_from(["!", "~", "- ", "+ "]), inner).map("".join)
    choice = st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})")
    return st.one_of(binary, bare, unary, choice)


def _ours(expression: str) -> int | None:
    try:
        return evaluate(expression.encode(), lambda name, _: {b"a": 3, b"b": -5}[name], lambda *_: None)
    except Undecided:
        return None


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.recursive(LEAVES, _larger, max_leaves=6), min_size=25, max_size=25))
@example(["1 >> 64", "1 << 64", "1 >> 63", "1 << 62", "2 ** 62"])
def test_a_value_that_is_given_is_the_one_of_bash(expressions: list[str]) -> None:
    known = [(text, value) for text in expressions if (value := _ours(text)) is not None]
    lines = "a=3; b=-5\n" + "".join(f"(echo $(({text})))\n" for text, _ in known)
    done = subprocess.run(["bash", "--norc"], input=lines, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(value) for _, value in known], done.stderr
