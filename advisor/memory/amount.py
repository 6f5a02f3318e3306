"""Computes with quantities that know how they came about: value, interval, basis and arithmetic from one expression.

Every formula of the ledger is written once, on `Amount`s. What is printed, how wide the interval is, and how sure the
result is follow from the tree; evaluating the printed text gives the value again (tests/memory/test_amount.py).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Struct

from advisor.language import clauses, mark, say
from advisor.units import GIB, KIB, MIB
from advisor.words import Basis, weakest

Unit = Literal["", "bytes", "%"]
"""Of a leaf: a count, bytes, or a part of 1 that is printed in percent."""
Op = Literal["", "+", "−", "×", "÷", "min", "max", "ceil", "round", "called", "within"]
_TIGHTNESS: dict[str, int] = {"+": 1, "−": 1, "×": 2, "÷": 2}
_AT_LEAST, _AT_MOST = mark("at least {amount}"), mark("at most {amount}")
_DIGITS = 5
"""Significant digits of a printed number: a text's value is right to 1 part in 10,000 a leaf."""
_WHOLE_BELOW = 1_000_000
"""Counts below it are printed to the last digit."""


class Amount(Struct, frozen=True, gc=False):
    """A quantity with its interval and the expression that gave it. Bytes are bytes, parts are fractions of 1.

    `+ − × ÷` with another Amount or a number, `least`, `most` and `ceil` build the tree. A leaf that is not known but
    assumed carries the basis "estimated", and with it everything built on it.
    """

    value: float
    low: float
    high: float
    op: Op = ""
    args: tuple[Amount, ...] = ()
    name: str = ""
    """What a leaf counts, or what a `called` expression is: "parameters". Its English text; translated when read. Words
    alone, no numbers, signs or brackets, so that a text can be computed again."""
    unit: Unit = ""
    own_basis: Basis = "computed"
    by_data: tuple[float, float] | None = None
    """The value where the run's data (lengths of rows, sizes of images) are as small as they may be, and where they are
    as large; None: they do not move it. `low` and `high` are the formula's own error and do not hold it."""

    def __add__(self, other: Amount | float) -> Amount:
        right = other if type(other) is Amount else as_amount(other)
        if right.value == 0 and _is_nothing(right, 0):
            return self
        if self.value == 0 and _is_nothing(self, 0):
            return right
        moved = _moved(operator.add, self, right)
        value, low, high = self.value + right.value, self.low + right.low, self.high + right.high
        return Amount(value, low, high, "+", (self, right), by_data=moved)

    def __radd__(self, other: float) -> Amount:
        return as_amount(other) + self

    def __sub__(self, other: Amount | float) -> Amount:
        right = other if type(other) is Amount else as_amount(other)
        if right.value == 0 and _is_nothing(right, 0):
            return self
        moved = _moved(operator.sub, self, right)
        value, low, high = self.value - right.value, self.low - right.high, self.high - right.low
        return Amount(value, low, high, "−", (self, right), by_data=moved)

    def __rsub__(self, other: float) -> Amount:
        return as_amount(other) - self

    def __mul__(self, other: Amount | float) -> Amount:
        right = other if type(other) is Amount else as_amount(other)
        if right.value == 1 and _is_nothing(right, 1):
            return self
        if self.value == 1 and _is_nothing(self, 1):
            return right
        value, moved = self.value * right.value, _moved(operator.mul, self, right)
        if self.low >= 0 <= right.low:
            return Amount(value, self.low * right.low, self.high * right.high, "×", (self, right), by_data=moved)
        ends = [one * two for one in (self.low, self.high) for two in (right.low, right.high)]
        return Amount(value, min(ends), max(ends), "×", (self, right), by_data=moved)

    def __rmul__(self, other: float) -> Amount:
        return as_amount(other) * self

    def __truediv__(self, other: Amount | float) -> Amount:
        """Raises ZeroDivisionError where the divisor's interval reaches 0."""
        right = other if type(other) is Amount else as_amount(other)
        if right.value == 1 and _is_nothing(right, 1):
            return self
        if right.low <= 0:
            raise ZeroDivisionError(f"{right.text()} may be 0")
        value, moved = self.value / right.value, _moved(operator.truediv, self, right)
        if self.low >= 0:
            return Amount(value, self.low / right.high, self.high / right.low, "÷", (self, right), by_data=moved)
        ends = [one / two for one in (self.low, self.high) for two in (right.low, right.high)]
        return Amount(value, min(ends), max(ends), "÷", (self, right), by_data=moved)

    def __lt__(self, other: Amount | float) -> bool:
        return self.value < as_amount(other).value

    def __gt__(self, other: Amount | float) -> bool:
        return self.value > as_amount(other).value

    def __bool__(self) -> bool:
        """Whether it is anything but exactly 0."""
        return self.value != 0

    def within(self, low: Amount | float | None = None, high: Amount | float | None = None) -> Amount:
        """The same value in an interval of its own, which never excludes the value; None keeps an end. A bound that is
        an Amount is printed behind the text (`bounds`)."""
        ends = (self if low is None else as_amount(low), self if high is None else as_amount(high))
        least, most = min(self.value, ends[0].low), max(self.value, ends[1].high)
        return Amount(self.value, least, most, "within", (self, *ends), by_data=self.by_data)

    def moved(self, low: Amount | float, high: Amount | float, by: str = "") -> Amount:
        """The same value, which the run's data may make as little as `low` or as much as `high`; `by` names what of
        the data (marked)."""
        ends = as_amount(low), as_amount(high)
        by_data = ends[0].value, ends[1].value
        return Amount(self.value, self.low, self.high, "within", (self, *ends), by, by_data=by_data)

    def spread(self, low: float = 1, high: float = 1) -> Amount:
        """The same value, its interval's ends multiplied with these factors."""
        return Amount(self.value, self.low * low, self.high * high, "within", (self,), by_data=self.by_data)

    def called(self, name: str, unit: Unit = "bytes") -> Amount:
        """The same as one quantity: its text is its value and `name`, its tree stays what it is made of."""
        return Amount(self.value, self.low, self.high, "called", (self,), name, unit, by_data=self.by_data)

    def rests_on(self, basis: Basis) -> Amount:
        """The same, claiming no more than `basis`."""
        if basis in ("measured", "computed"):
            return self
        return Amount(self.value, self.low, self.high, "within", (self,), own_basis=basis, by_data=self.by_data)

    def rounded(self) -> Amount:
        """The nearest whole number."""
        if self.value == int(self.value):
            return self
        return Amount(round(self.value), self.low, self.high, "round", (self,), by_data=self.by_data)

    @property
    def basis(self) -> Basis:
        """The weakest of its leaves'; the ends of an interval do not count, they are what is not known."""
        if not self.op:
            return self.own_basis
        inner = self.args[:1] if self.op == "within" else self.args
        below = weakest(*(each.basis for each in inner))
        return below if self.own_basis == "computed" else weakest(below, self.own_basis)

    def text(self) -> str:
        """The arithmetic in the language in force: "2 bytes × 7.6156e9 parameters ÷ 8 GPUs"."""
        return self._text(0)

    def bounds(self) -> str:
        """What may be at least and at most, where the interval's ends are formulas: "at most 4 GiB × 8 GPUs"."""
        if self.op != "within":
            return ""
        said = [self.args[0].bounds()] if len(self.args) == 1 else []
        for text, end in zip((_AT_LEAST, _AT_MOST), self.args[1:], strict=False):
            if (end.op or end.name) and (amount := end.text()) != self.args[0].text():
                said.append(say(text, amount=amount))
        return clauses(each for each in said if each)

    def _text(self, around: int) -> str:
        """The text, in brackets where the operator around it binds as tightly."""
        if self.op in ("", "called"):
            return show_leaf(self.value, self.unit, self.name)
        if self.op == "within":
            return self.args[0]._text(around)
        if self.op not in _TIGHTNESS:
            return f"{self.op}({', '.join(arg.text() for arg in self.args)})"
        own = _TIGHTNESS[self.op]
        first, *others = self.args
        behind = own + (self.op in "−÷")
        said = f" {self.op} ".join([first._text(own), *(other._text(behind) for other in others)])
        return f"({said})" if own < around else said

    def as_tree(self) -> dict[str, Any]:
        """The tree for JSON: `{"op", "args"}` or a leaf's `{"value", "name", "unit"}`, intervals and basis where they
        say something. Names are English in every language, as all words that programs read."""
        tree: dict[str, Any] = {"value": self.value}
        if self.low != self.value or self.high != self.value:
            tree |= {"low": self.low, "high": self.high}
        if self.by_data is not None:
            tree |= {"low": min(self.low, self.by_data[0]), "high": max(self.high, self.by_data[1])}
        if self.name:
            tree["name"] = self.name
        if self.unit:
            tree["unit"] = self.unit
        if self.own_basis != "computed":
            tree["basis"] = self.own_basis
        if self.op:
            tree |= {"op": self.op, "args": [arg.as_tree() for arg in self.args]}
        return tree


def quantity(
    name: str,
    value: float,
    unit: Unit = "",
    *,
    low: float | None = None,
    high: float | None = None,
    basis: Basis = "computed",
) -> Amount:
    """A leaf: `value` of what `name` says (marked for translation), in an interval that includes it."""
    least = value if low is None else min(low, value)
    most = value if high is None else max(high, value)
    return Amount(value, least, most, "", (), name, unit, basis)


def in_bytes(
    name: str,
    value: float,
    *,
    low: float | None = None,
    high: float | None = None,
    basis: Basis = "computed",
) -> Amount:
    """A leaf in bytes."""
    return quantity(name, value, "bytes", low=low, high=high, basis=basis)


def assumed(name: str, value: float, unit: Unit = "") -> Amount:
    """A leaf that nobody stated: what is built on it is an estimate."""
    return quantity(name, value, unit, basis="estimated")


def as_amount(number: Amount | float) -> Amount:
    """A bare number as a leaf without a name."""
    return number if isinstance(number, Amount) else Amount(number, number, number)


def least(*amounts: Amount | float) -> Amount:
    """The smallest of them."""
    return _picked("min", [as_amount(each) for each in amounts])


def most(*amounts: Amount | float) -> Amount:
    """The largest of them."""
    return _picked("max", [as_amount(each) for each in amounts])


def ceil(amount: Amount) -> Amount:
    """The next whole number."""
    value, low, high = (math.ceil(each) for each in (amount.value, amount.low, amount.high))
    return Amount(value, low, high, "ceil", (amount,), by_data=amount.by_data)


def add_up(amounts: Iterable[Amount]) -> Amount:
    """Their sum; 0 where there are none."""
    parts = tuple(each for each in amounts if not _is_nothing(each, 0))
    if len(parts) < 2:
        return parts[0] if parts else as_amount(0)
    value, low, high = sum([p.value for p in parts]), sum([p.low for p in parts]), sum([p.high for p in parts])
    return Amount(value, low, high, "+", parts, by_data=_moved(lambda *ends: sum(ends), *parts))


def _picked(op: Literal["min", "max"], amounts: list[Amount]) -> Amount:
    if len(amounts) == 1:
        return amounts[0]
    pick = min if op == "min" else max
    value, low, high = pick([a.value for a in amounts]), pick([a.low for a in amounts]), pick([a.high for a in amounts])
    return Amount(value, low, high, op, tuple(amounts), by_data=_moved(pick, *amounts))


def _moved(combine: Callable[..., float], *amounts: Amount) -> tuple[float, float] | None:
    """The value of a combination at both ends of what the data may be; None where no part is moved by them."""
    for each in amounts:  # a plan asks this a hundred thousand times: no generator
        if each.by_data is not None:
            break
    else:
        return None
    ends = [each.by_data or (each.value, each.value) for each in amounts]
    return combine(*(end[0] for end in ends)), combine(*(end[1] for end in ends))


def _is_nothing(amount: Amount, neutral: float) -> bool:
    """Whether adding (0) or multiplying with (1) it changes nothing and hides nothing that was assumed."""
    return amount.value == neutral == amount.low == amount.high and not amount.args and amount.own_basis == "computed"


def show_leaf(value: float, unit: Unit, name: str) -> str:
    """ "79.151 GiB card", "8,192 tokens", "7.6156e9 parameters", "4 %"."""
    number, words = _show_number(value, unit), say(name) if name else ""
    close = words[:1] == "（" or (number[-1:] > "⺀" and words[:1] > "⺀")  # no space between Chinese words
    return f"{number}{'' if close else ' '}{words}" if words else number


def _show_number(value: float, unit: Unit) -> str:
    if unit == "%":
        return f"{_rounded(100 * value)} %"
    if unit == "bytes":
        for factor, letters in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
            if abs(value) >= factor:
                return f"{_rounded(value / factor)} {letters}"
        return say("{count} bytes", count=_rounded(value))
    if value == int(value) and abs(value) < _WHOLE_BELOW:
        return f"{int(value):,}"
    if abs(value) >= _WHOLE_BELOW:
        exponent = int(math.log10(abs(value)) // 3 * 3)
        return f"{_rounded(value / 10**exponent)}e{exponent}"
    return _rounded(value)


def _rounded(value: float) -> str:
    return f"{value:.{_DIGITS}g}"
