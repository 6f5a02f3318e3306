"""Answers conditions of bash: True, False or None (undecided)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from advisor.bash.arithmetic import Undecided, evaluate
from advisor.bash.expand import Expander
from advisor.bash.parameters import matches
from advisor.bash.text import NotGiven, NotSet, ShellValue, Text, joined, known, line_at, line_starts, sources
from advisor.bash.words import Unterminated, Word, scan_word, skip_blanks
from advisor.language import say

_NUMERIC = {"-eq": b"==", "-ne": b"!=", "-lt": b"<", "-gt": b">", "-le": b"<=", "-ge": b">="}
_BINARY = {*_NUMERIC, "=", "==", "!=", "=~", "<", ">", "-nt", "-ot", "-ef"}
_OPERATORS = (b"&&", b"||", b"(", b")", b"!", b"<", b">")


class Operand(Struct, frozen=True):
    """A word of a condition with its value, or an operator (then `value` is None)."""

    operator: str
    value: ShellValue | None = None
    quoted: bool = False


def read_double(expander: Expander, start: int, end: int) -> list[Operand]:
    """The words and operators between `[[` and `]]`."""
    data, at = expander.text.data, start
    out: list[Operand] = []
    while True:
        at = skip_blanks(data, at)
        while data[at : at + 1] == b"\n":
            at = skip_blanks(data, at + 1)
        if at >= end or len(out) > 500:
            return out
        operator = next((op for op in _OPERATORS if data.startswith(op, at)), None)
        if operator is not None and not (operator == b"!" and data[at + 1 : at + 2] not in b" \t"):
            out.append(Operand(operator.decode()))
            at += len(operator)
            continue
        regular = bool(out) and out[-1].operator == "=~"
        try:
            word = scan_word(data, at, b"()|<>" if regular else b"")
        except Unterminated:
            return out
        if word.end == at:
            return out
        out.append(_operand(expander, word))
        at = word.end


def _operand(expander: Expander, word: Word) -> Operand:
    literal = word.literal()
    shown = literal.decode("utf-8", "replace") if literal is not None and len(literal) < 4 else ""
    plain = expander.text.data[word.start : word.end] == literal
    operator = shown if plain and (shown in _BINARY or shown.startswith("-")) else ""
    return Operand(operator, expander.value(word), not plain)


def undecided(start: int, text: Text) -> str:
    """Why a value is not known that depends on the condition at byte `start`."""
    if text.nested:
        return say("it depends on a condition in a nested command")
    return say("it depends on the condition in line {line}", line=line_at(line_starts(text.data), start))


class Condition:
    """Evaluates the operands of `[[ … ]]`, `[ … ]` or `test …`. `deps` are the literals that the answer rests on."""

    def __init__(self, operands: Sequence[Operand], expander: Expander, double: bool) -> None:
        self.operands = operands
        self.expander = expander
        self.double = double
        self.at = 0
        self.deps = sources(p for operand in operands for p in operand.value or ())
        self.unset = False
        """Whether variables that the script never sets are taken to be empty."""

    def answer(self) -> bool | None:
        """True, False, or None where it cannot be decided."""
        if not self.operands:
            return False
        self.at = 0
        found = self.either()
        return found if self.at >= len(self.operands) else None

    def leaning(self) -> bool | None:
        """The answer if nothing is given from outside, for a condition that asks just that."""
        self.unset = True
        return self.answer()

    def is_empty(self, value: ShellValue) -> bool | None:
        """Whether a value is empty."""
        if any(piece.text for piece in value if not piece.reason):
            return False
        absent = self.unset and all(isinstance(piece.reason, NotSet) for piece in value if piece.reason)
        return True if absent or known(value) else None

    def peek(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.operands[index].operator if index < len(self.operands) else ""

    def either(self) -> bool | None:
        left = self.both()
        while self.peek() in ("||", "-o") and self.at + 1 < len(self.operands):
            self.at += 1
            right = self.both()
            left = True if True in (left, right) else None if None in (left, right) else False
        return left

    def both(self) -> bool | None:
        left = self.negated()
        while self.peek() in ("&&", "-a") and self.at + 1 < len(self.operands):
            self.at += 1
            right = self.negated()
            left = False if False in (left, right) else None if None in (left, right) else True
        return left

    def negated(self) -> bool | None:
        if not self.is_bang():
            return self.primary()
        self.at += 1
        return _not(self.negated())

    def is_bang(self) -> bool:
        operand = self.operands[self.at] if self.at < len(self.operands) else None
        if operand is None or self.at + 1 >= len(self.operands):
            return False
        value = operand.value
        return operand.operator == "!" or (not operand.quoted and value is not None and joined(value) == b"!")

    def primary(self) -> bool | None:
        if self.at >= len(self.operands):
            return None
        if self.peek() == "(" and self.operands[self.at].value is None:
            self.at += 1
            inner = self.either()
            self.at += 1
            return inner
        if self.peek(1) in _BINARY and self.at + 2 < len(self.operands):
            return self.binary()
        operator = self.peek()
        last = self.at + 1 >= len(self.operands) or self.peek(1) in ("&&", "||")
        if re.fullmatch(r"-[a-zA-Z]", operator) and not last:
            self.at += 2
            return self.unary(operator, self.operands[self.at - 1].value or ())
        self.at += 1
        return _not(self.is_empty(self.operands[self.at - 1].value or ()))

    def unary(self, operator: str, value: ShellValue) -> bool | None:
        if operator in ("-n", "-z"):
            found = self.is_empty(value)
            return found if operator == "-z" else _not(found)
        if operator == "-v" and known(value):
            return True if joined(value) in self.expander.state.variables else None
        return None

    def binary(self) -> bool | None:
        left, operator, right = self.operands[self.at], self.peek(1), self.operands[self.at + 2]
        self.at += 3
        if left.value is None or right.value is None:
            return None
        if operator in _NUMERIC:
            return self.numeric(left.value, _NUMERIC[operator], right.value)
        if operator in ("=", "==", "!=") and not joined(right.value) and known(right.value):
            found = self.is_empty(left.value)
            return _not(found) if operator == "!=" else found
        absent = operator in ("=", "==") and all(isinstance(piece.reason, NotGiven) for piece in left.value)
        if not (absent or known(left.value)) or not known(right.value):
            return None
        text, other = joined(left.value), joined(right.value)
        if operator in ("=", "==", "!="):
            pattern, marks = self.expander.marked(right.value) if self.double else (None, b"")
            equal = text == other if pattern is None else matches(text, pattern, marks)
            return equal if operator != "!=" else not equal
        if operator in ("<", ">"):
            return text < other if operator == "<" else text > other
        return _regular(text, other) if operator == "=~" else None

    def numeric(self, left: ShellValue, operator: bytes, right: ShellValue) -> bool | None:
        if not known(left) or not known(right):
            return None
        lookup, store = self.expander.integer([]), self.expander.store
        try:
            a, b = evaluate(joined(left), lookup, store), evaluate(joined(right), lookup, store)
            return bool(evaluate(b"%d %s %d" % (a, operator, b), lookup, store))
        except Undecided:
            return None


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _regular(text: bytes, expression: bytes) -> bool | None:
    if len(expression) > 100 or len(text) > 1000 or re.search(rb"[+*}]\)?[+*{]", expression):
        return None  # an expression that could run for ever is not run
    try:
        return re.search(expression.replace(b"[:space:]", rb"\s").replace(b"[:digit:]", rb"\d"), text) is not None
    except re.error:
        return None
