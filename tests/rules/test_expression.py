"""The rule language: what it parses it prints again, it never fails at run time, and unknown is not false."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.rules.expression import Expression, decode, encode
from advisor.rules.functions import FUNCTIONS
from advisor.rules.parser import ExpressionError, parse
from advisor.rules.tree import (
    KEYWORDS,
    Among,
    Call,
    Compare,
    Conditional,
    Constant,
    Joint,
    Name,
    Not,
    RuleValue,
    Sum,
    same,
)
from tests.loops import each

Known = Mapping[str, RuleValue | None]


class Names:
    """A scope of a few names."""

    def __init__(
        self, values: Mapping[str, RuleValue | None], given: Mapping[str, RuleValue | None] | None = None
    ) -> None:
        self.values, self.set = values, given or {}

    def value(self, name: str) -> RuleValue | None:
        return self.values.get(name)

    def given(self, name: str) -> RuleValue | None:
        return self.set.get(name)


def value(text: str, **names: RuleValue | None) -> RuleValue | None:
    return Expression(text).of(Names(names))


NAMES = st.from_regex(r"\A(?:--)?\$?[a-z]\w{0,5}(?:[.:-][a-z0-9]\w{0,3}){0,2}\Z").filter(lambda n: n not in KEYWORDS)
ODD = st.from_regex(r"\A[a-z]\[[0-9]\] ?\Z")
SCALARS = st.one_of(
    st.booleans(), st.none(), st.integers(-(10**9), 10**9), st.floats(0.001, 1e6).map(lambda f: round(f, 3)),
    st.text("abcXYZ '.:,()-", max_size=6),
)  # fmt: skip
LEAVES = st.one_of(st.builds(Constant, SCALARS), st.builds(Name, NAMES | ODD))


def _branches(inner):  # type: ignore[no-untyped-def]
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    calls = st.sampled_from(sorted(FUNCTIONS)).flatmap(
        lambda f: st.lists(inner, min_size=FUNCTIONS[f].least, max_size=min(3, FUNCTIONS[f].most)).map(
            lambda a: Call(f, tuple(a))
        )
    )
    return st.one_of(
        st.builds(Not, inner), st.builds(Joint, st.sampled_from(["and", "or"]), several),
        st.builds(Conditional, inner, inner, inner), calls, st.builds(Among, inner, several),
        st.builds(Sum, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner, inner),
        st.builds(Compare, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner, inner),
    )  # fmt: skip


TREES = st.recursive(LEAVES, _branches, max_leaves=12)


@given(TREES)
def test_what_is_printed_parses_to_the_same_tree(tree) -> None:  # type: ignore[no-untyped-def]
    assert parse(str(tree)) == tree


@given(TREES, st.dictionaries(NAMES, SCALARS, max_size=4))
def test_every_expression_has_a_value_or_is_unknown(tree, names) -> None:  # type: ignore[no-untyped-def]
    found = tree.of(Names(names, names))
    assert found is None or isinstance(found, (bool, int, float, str))


@given(TREES)
def test_compiled_knowledge_gives_the_same_tree(tree) -> None:  # type: ignore[no-untyped-def]
    made = Expression(str(tree))
    again = decode(Expression, msgspec.json.decode(msgspec.json.encode(made, enc_hook=encode)))
    assert again == made


@given(st.text(max_size=30))
def test_any_text_is_an_expression_or_is_refused_at_one_of_its_characters(text: str) -> None:
    offset = 0
    try:
        parse(text)
    except ExpressionError as error:
        offset = error.offset
    assert 0 <= offset <= len(text)


KLEENE = (True, False, None)


@pytest.mark.parametrize("a", KLEENE)
@pytest.mark.parametrize("b", KLEENE)
def test_unknown_is_not_false(a: bool | None, b: bool | None) -> None:
    both, either = value("a and b", a=a, b=b), value("a or b", a=a, b=b)
    assert both is (False if False in (a, b) else None if None in (a, b) else True)
    assert either is (True if True in (a, b) else None if None in (a, b) else False)
    assert value("not (a and b)", a=a, b=b) is value("not a or not b", a=a, b=b)
    assert value("not (a or b)", a=a, b=b) is value("not a and not b", a=a, b=b)
    assert value("a and b", a=b, b=a) is both
    assert value("not not a", a=a) is a


@each(
    ("text", "expected"),
    [
        ("64 * samples // dp", 64 * 16 // 4),
        ("100 // dp * samples", 100 // 4 * 16),
        ("7 % 0", None),
        ("dp - -3", 7),
        ("0 - dp", -4),
        ("7 / 0", None),
        ("samples % dp == 0", True),
        ("unknown % dp == 0", None),
        ("1 < dp < 8", True),
        ("1 < unknown < 8", None),
        ('engine in ("vllm", "sglang")', True),
        ('engine not in ("vllm",)', False),
        ('"ll" in engine', True),
        ('unknown in ("vllm",)', None),
        ("first(unknown, dp)", 4),
        ("known(unknown)", False),
        ("on(unknown, dp == 4)", True),
        ("on(unknown)", False),
        ("min(dp, unknown)", None),
        ("min(dp, samples)", 4),
        ("ceil(5 / dp)", 2),
        ("below(0.55, 0.05)", 0.5),
        ("divides(4, samples)", True),
        ("divides(0, samples)", False),
        ('version("0.8.1+cu124", ">=0.8,<0.9")', True),
        ('like("megatron rlhf", "megatron *", "x")', True),
        ('items("0,1,,2")', 3),
        ('devices("list(range(0,8))", "8,9")', 10),
        ('meet("0,1", "1,2")', True),
        ('before("a+b", "+")', "a"),
        ('size("sglang:d4t2", "t")', 2),
        ('ranks("megatron:d2t2p2e4")', 8),
        ("1 if unknown else 2", None),
        ("1 if unknown else 1", 1),
        ("micro-batch", 3),
        ("`odd key`", None),
    ],
)
def test_values(text: str, expected: RuleValue | None) -> None:
    names = {"samples": 16, "dp": 4, "engine": "vllm", "micro-batch": 3}
    assert Expression(text).of(Names(names)) == expected


def test_only_what_somebody_set_is_given() -> None:
    scope = Names({"a": 1, "b": 2}, {"b": 2})
    assert Expression("given(a)").of(scope) is None
    assert Expression("given(a, b)").of(scope) == 2


@each(
    ("text", "offset", "says"),
    [
        ("a +", 3, "ends too early"),
        ("a == b c", 7, "'c' does not belong here"),
        ("a @ b", 2, "'@' has no place"),
        ("halve(a)", 0, "there is no function halve"),
        ("1 + ceil(a, b)", 4, "ceil takes other arguments"),
        ("(" * 100, 40, "nested too deeply"),
        ("not " * 100 + "a", 160, "nested too deeply"),
        ("a = b", 2, "'=' has no place"),
        ("9" * 400, 0, "too large a number"),
    ],
)
def test_a_mistake_is_told_at_its_character(text: str, offset: int, says: str) -> None:
    with pytest.raises(ExpressionError, match=says) as caught:
        parse(text)
    assert caught.value.offset == offset


def test_values_compare_as_people_read() -> None:
    assert same(True, "true")
    assert same("1", 1)
    assert same("0.0", 0)
    assert same("vLLM", "vllm")
    assert not same("1", True)
    assert not same("cpu", "gpu")
