"""Evaluates integer expressions of bash: `$(( … ))`, `(( … ))`, `let`, `[[ a -gt b ]]` operands."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from advisor.regex import regex

_TOKEN = regex(
    rb"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|\d+#\w+|\d+)|(?P<name>[A-Za-z_]\w*)(?:\[(?P<index>\w+)\])?"
    rb"|(?P<operator>\*\*|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%<>=!~&|^?:(),]))"
)
_LEVELS = [
    level.split() for level in (b"||", b"&&", b"|", b"^", b"&", b"== !=", b"< > <= >=", b"<< >>", b"+ -", b"* / %")
]
"""Binary operators, those that bind least first."""
_ASSIGNS = {b"=", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^=", b"<<=", b">>="}
_UNARY: dict[bytes, Callable[[int], int]] = {
    b"-": operator.neg, b"+": operator.pos, b"!": lambda value: int(not value), b"~": operator.invert,
}  # fmt: skip
_BINARY: dict[bytes, Callable[[int, int], int]] = {
    b"+": operator.add, b"-": operator.sub, b"*": operator.mul, b"&": operator.and_, b"|": operator.or_,
    b"^": operator.xor, b"**": operator.pow, b"<<": operator.lshift, b">>": operator.rshift, b"==": operator.eq,
    b"!=": operator.ne, b"<": operator.lt, b">": operator.gt, b"<=": operator.le, b">=": operator.ge,
    b"&&": lambda left, right: bool(left) and bool(right), b"||": lambda left, right: bool(left) or bool(right),
    b"/": lambda left, right: abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1),
    b"%": lambda left, right: abs(left) % abs(right) * (-1 if left < 0 else 1),
}  # fmt: skip
_MOST_TOKENS = 2000
_LONGEST_NUMBER = 20
"""Digits; 64 bits have nineteen."""
_BITS = 64
_MAX_DEPTH = 40
_LIMIT = 1 << 63


class Undecided(Exception):  # noqa: N818  (an answer, not a failure)
    """The expression rests on something that is not known."""


VariableLookup = Callable[[bytes, bytes], int]
Store = Callable[[bytes, int], None]


def evaluate(expression: bytes, lookup: VariableLookup, store: Store) -> int:
    """The value of an expression whose `$` expansions are done. Raises Undecided where it cannot be known."""
    tokens: list[re.Match[bytes]] = []
    at, text = 0, expression.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found or len(tokens) > _MOST_TOKENS:
            raise Undecided
        tokens.append(found)
        at = found.end()
    if not tokens:
        return 0
    parser = _Arithmetic(tokens, lookup, store)
    value = parser.comma()
    if parser.at != len(tokens):
        raise Undecided
    return value


class _Arithmetic:
    """A recursive-descent evaluator over tokens."""

    def __init__(self, tokens: list[re.Match[bytes]], lookup: VariableLookup, store: Store) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.lookup = lookup
        self.store = store

    def operator(self, ahead: int = 0) -> bytes:
        """The operator that comes next; empty where none does."""
        at = self.at + ahead
        return self.tokens[at]["operator"] or b"" if at < len(self.tokens) else b""

    def taken(self, *operators: bytes) -> bytes:
        """The next operator where it is one of these, passed over; else empty."""
        found = self.operator()
        if found not in operators:
            return b""
        self.at += 1
        return found

    def variable(self, ahead: int = 0) -> tuple[bytes, bytes] | None:
        """Name and index of the variable that comes next."""
        at = self.at + ahead
        token = self.tokens[at] if at < len(self.tokens) else None
        return (token["name"], token["index"] or b"") if token and token["name"] else None

    def deeper(self, read: Callable[[], int]) -> int:
        """What `read` gives one level down. Raises Undecided where there are too many levels."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise Undecided
        value = read()
        self.depth -= 1
        return value

    def comma(self) -> int:
        value = self.deeper(self.assignment)
        while self.taken(b","):
            value = self.deeper(self.assignment)
        return value

    def assignment(self) -> int:
        variable, sign = self.variable(), self.operator(1)
        if variable is None or sign not in _ASSIGNS:
            return self.ternary()
        self.at += 2
        value = self.assignment()
        if sign != b"=":
            value = _apply(sign[:-1], self.lookup(*variable), value)
        self.store(variable[0], value)
        return value

    def ternary(self) -> int:
        condition = self.binary(0)
        if not self.taken(b"?"):
            return condition
        left = self.comma()
        if not self.taken(b":"):
            raise Undecided
        right = self.assignment()
        return left if condition else right

    def binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self.power()
        left = self.binary(level + 1)
        while sign := self.taken(*_LEVELS[level]):
            left = _apply(sign, left, self.binary(level + 1))
        return left

    def power(self) -> int:
        left = self.deeper(self.unary)
        return _apply(b"**", left, self.power()) if self.taken(b"**") else left

    def unary(self) -> int:
        changed = self.variable(1) if self.operator() in (b"++", b"--") else None
        if changed is not None:
            value = self.lookup(*changed) + (1 if self.operator() == b"++" else -1)
            self.at += 2
            self.store(changed[0], value)
            return value
        sign = self.taken(*_UNARY)
        return _in_64_bits(_UNARY[sign](self.deeper(self.unary))) if sign else self.primary()

    def primary(self) -> int:
        variable = self.variable()
        if variable is not None:
            self.at += 1
            value = self.lookup(*variable)
            if sign := self.taken(b"++", b"--"):
                self.store(variable[0], value + (1 if sign == b"++" else -1))
            return value
        if self.taken(b"("):
            value = self.comma()
            if not self.taken(b")"):
                raise Undecided
            return value
        if self.at >= len(self.tokens) or not self.tokens[self.at]["number"]:
            raise Undecided
        self.at += 1
        return _number(self.tokens[self.at - 1]["number"])


def _number(text: bytes) -> int:
    base, sharp, digits = text.rpartition(b"#")
    try:
        if sharp:
            return int(digits, int(base))
        if len(text) > _LONGEST_NUMBER:
            raise Undecided
        octal = text[:1] == b"0" and text[1:].isdigit()
        value = int(text, 8 if octal else 0)
    except ValueError as error:
        raise Undecided from error
    if value >= _LIMIT and text[:2].lower() != b"0x":
        raise Undecided
    return value


def _apply(sign: bytes, left: int, right: int) -> int:
    """The result of one operator. Raises Undecided where it does not fit into 64 bits, which bash would cut."""
    if sign in (b"/", b"%") and right == 0:
        raise Undecided
    if sign in (b"**", b"<<", b">>") and not (0 <= right < _BITS and abs(left) <= 1 << _BITS):
        raise Undecided  # what a shift by all bits gives is the processor's affair
    return _in_64_bits(int(_BINARY[sign](left, right)))


def _in_64_bits(value: int) -> int:
    """The value. Raises Undecided where bash would cut it."""
    if not -_LIMIT <= value < _LIMIT:
        raise Undecided
    return value
