"""Integer expressions of the shell: `$(( … ))`, `(( … ))`, `let`, `[[ a -gt b ]]` operands."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(
    rb"\s*(?:(0[xX][0-9a-fA-F]+|\d+#\w+|\d+)|([A-Za-z_]\w*)(?:\[(\w+)\])?|(\*\*|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%<>=!~&|^?:(),]))"
)
_LEVELS: tuple[tuple[bytes, ...], ...] = (
    (b"||",),
    (b"&&",),
    (b"|",),
    (b"^",),
    (b"&",),
    (b"==", b"!="),
    (b"<", b">", b"<=", b">="),
    (b"<<", b">>"),
    (b"+", b"-"),
    (b"*", b"/", b"%"),
)
_ASSIGNS = {b"=", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^=", b"<<=", b">>="}
_MAX_BITS = 64
_MAX_DEPTH = 40
_LIMIT = 1 << 63


class Undecided(Exception):  # noqa: N818  (an answer, not a failure)
    """The expression rests on something that is not known."""


VariableLookup = Callable[[bytes, bytes], int]
Store = Callable[[bytes, int], None]


def evaluate(expression: bytes, lookup: VariableLookup, store: Store) -> int:
    """The value of an expression whose `$` expansions are done. Raises Undecided where it cannot be known."""
    tokens: list[tuple[str, bytes, bytes]] = []
    at = 0
    text = expression.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found or len(tokens) > 2000:
            raise Undecided
        if found.group(1):
            tokens.append(("number", found.group(1), b""))
        elif found.group(2):
            tokens.append(("name", found.group(2), found.group(3) or b""))
        else:
            tokens.append(("operator", found.group(4), b""))
        at = found.end()
    if not tokens:
        return 0
    parser = _Expression(tokens, lookup, store)
    value = parser.comma()
    if parser.at != len(tokens):
        raise Undecided
    return value


class _Expression:
    """A recursive-descent evaluator over tokens."""

    def __init__(self, tokens: list[tuple[str, bytes, bytes]], lookup: VariableLookup, store: Store) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.lookup = lookup
        self.store = store

    def operator(self) -> bytes:
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "operator":
            return self.tokens[self.at][1]
        return b""

    def comma(self) -> int:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise Undecided
        value = self.assignment()
        while self.operator() == b",":
            self.at += 1
            value = self.assignment()
        self.depth -= 1
        return value

    def assignment(self) -> int:
        if self.at + 1 < len(self.tokens) and self.tokens[self.at][0] == "name":
            kind, operator, _ = self.tokens[self.at + 1]
            if kind == "operator" and operator in _ASSIGNS:
                _, name, index = self.tokens[self.at]
                self.at += 2
                value = self.assignment()
                if operator != b"=":
                    value = _apply(operator[:-1], self.lookup(name, index), value)
                self.store(name, value)
                return value
        return self.ternary()

    def ternary(self) -> int:
        condition = self.binary(0)
        if self.operator() != b"?":
            return condition
        self.at += 1
        left = self.comma()
        if self.operator() != b":":
            raise Undecided
        self.at += 1
        right = self.assignment()
        return left if condition else right

    def binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self.power()
        left = self.binary(level + 1)
        while self.operator() in _LEVELS[level]:
            operator = self.operator()
            self.at += 1
            left = _apply(operator, left, self.binary(level + 1))
        return left

    def power(self) -> int:
        left = self.unary()
        if self.operator() != b"**":
            return left
        self.at += 1
        return _apply(b"**", left, self.power())

    def unary(self) -> int:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise Undecided
        operator = self.operator()
        if operator in (b"++", b"--") and self.at + 1 < len(self.tokens) and self.tokens[self.at + 1][0] == "name":
            name, index = self.tokens[self.at + 1][1:]
            self.at += 2
            value = self.lookup(name, index) + (1 if operator == b"++" else -1)
            self.store(name, value)
        elif operator in (b"-", b"+", b"!", b"~"):
            self.at += 1
            operand = self.unary()
            value = {b"-": -operand, b"+": operand, b"!": int(not operand), b"~": ~operand}[operator]
        else:
            value = self.primary()
        self.depth -= 1
        return value

    def primary(self) -> int:
        if self.at >= len(self.tokens):
            raise Undecided
        kind, text, index = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return _number(text)
        if kind == "name":
            value = self.lookup(text, index)
            if self.operator() in (b"++", b"--"):
                self.store(text, value + (1 if self.operator() == b"++" else -1))
                self.at += 1
            return value
        if text == b"(":
            value = self.comma()
            if self.operator() != b")":
                raise Undecided
            self.at += 1
            return value
        raise Undecided


def _number(text: bytes) -> int:
    if b"#" in text:
        base, digits = text.split(b"#", 1)
        try:
            return int(digits, int(base))
        except ValueError as error:
            raise Undecided from error
    if len(text) > 20:
        raise Undecided
    if text[:2].lower() == b"0x":
        return int(text, 16)
    if text[:1] == b"0" and len(text) > 1:
        if not re.fullmatch(rb"[0-7]+", text):
            raise Undecided
        return int(text, 8)
    return _within(int(text))


def _within(value: int) -> int:
    if value >= _LIMIT:
        raise Undecided
    return value


def _apply(operator: bytes, left: int, right: int) -> int:
    """The result of one operator. Raises Undecided where it does not fit into 64 bits, which bash would cut."""
    result = _exact(operator, left, right)
    if not -_LIMIT <= result < _LIMIT:
        raise Undecided
    return result


def _exact(operator: bytes, left: int, right: int) -> int:
    if operator in (b"/", b"%"):
        if right == 0:
            raise Undecided
        quotient = abs(left) // abs(right)
        quotient = -quotient if (left < 0) != (right < 0) else quotient
        return quotient if operator == b"/" else left - right * quotient
    if operator in (b"**", b"<<", b">>"):
        if right < 0 or right > _MAX_BITS or abs(left) > 1 << _MAX_BITS:
            raise Undecided
        if operator == b"**":
            return int(left**right)
        return left << right if operator == b"<<" else left >> right
    table: dict[bytes, Callable[[], int]] = {
        b"+": lambda: left + right,
        b"-": lambda: left - right,
        b"*": lambda: left * right,
        b"&": lambda: left & right,
        b"|": lambda: left | right,
        b"^": lambda: left ^ right,
        b"&&": lambda: int(bool(left) and bool(right)),
        b"||": lambda: int(bool(left) or bool(right)),
        b"==": lambda: int(left == right),
        b"!=": lambda: int(left != right),
        b"<": lambda: int(left < right),
        b">": lambda: int(left > right),
        b"<=": lambda: int(left <= right),
        b">=": lambda: int(left >= right),
    }
    return table[operator]()
