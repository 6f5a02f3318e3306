"""Finds what a Python program demands of its options: assertions, and conditions under which it stops."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping

from advisor.script.python_tree import called, every
from advisor.script.python_value import ARITHMETIC, ORDERED

_COMPARES: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    **ORDERED, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_ENDS = ("exit", "_exit", "quit", "error", "fail")


def stopped_by(tree: ast.Module, key: str, before: Mapping[str, float], after: Mapping[str, float]) -> int | None:
    """The line that stops a program with the options `after` and did not with those `before`; of a line that asks for
    one fixed number and cannot be computed here, too.
    """
    names = _set_once(tree)
    for line, test, wanted in _tests(tree):
        if key not in _read(test, names):
            continue
        was, now = _holds(test, before, names), _holds(test, after, names)
        if now is not None and now is not wanted and was is not now:
            return line
        fixed = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq if wanted else ast.NotEq)
        if now is None and fixed and not any(isinstance(one, ast.Mod) for one in ast.walk(test)):
            return line
    return None


def _tests(tree: ast.Module) -> Iterator[tuple[int, ast.expr, bool]]:
    """Line, condition and what it must be for the program to go on."""
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test):
                yield node.lineno, test, True
            case ast.If(test=test, body=[ast.Raise(), *_]):
                yield node.lineno, test, False
            case ast.If(test=test, body=[ast.Expr(value=ast.Call() as call), *_]) if called(call) in _ENDS:
                yield node.lineno, test, False


def _set_once(tree: ast.Module) -> dict[str, ast.expr]:
    """Names that the file sets in one place."""
    found: dict[str, list[ast.expr]] = {}
    for node in every(tree, ast.Assign):
        match node.targets:
            case [ast.Name(id=name)]:
                found.setdefault(name, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _read(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 0) -> frozenset[str]:
    """The attributes that an expression is computed of."""
    found = {one.attr for one in every(node, ast.Attribute)}
    for one in every(node, ast.Name) if depth < len(names) and depth < 8 else ():
        if isinstance(names.get(one.id), ast.BinOp):
            found |= _read(names[one.id], names, depth + 1)
    return frozenset(found)


def _holds(test: ast.expr, values: Mapping[str, float], names: Mapping[str, ast.expr]) -> bool | None:
    match test:
        case ast.BoolOp(op=op, values=parts):
            each = [_holds(part, values, names) for part in parts]
            decided = isinstance(op, ast.Or)
            return decided if decided in each else None if None in each else not decided
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            held = _holds(operand, values, names)
            return None if held is None else not held
        case ast.Compare(left=left, ops=ops, comparators=others):
            numbers = [_number(one, values, names) for one in (left, *others)]
            known = [one for one in numbers if one is not None]
            if len(known) < len(numbers) or not all(type(op) in _COMPARES for op in ops):
                return None
            return all(_COMPARES[type(op)](a, b) for op, a, b in zip(ops, known, known[1:], strict=False))
    number = _number(test, values, names)
    return None if number is None else bool(number)


def _number(node: ast.expr, values: Mapping[str, float], names: Mapping[str, ast.expr], depth: int = 0) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Attribute(attr=attr):
            return values.get(attr)
        case ast.Name(id=name) if name in names and depth < 8:
            return _number(names[name], values, names, depth + 1)
        case ast.Name(id=name):
            return values.get(name)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = (_number(one, values, names, depth + 1) for one in (left, right))
            made = ARITHMETIC.get(type(op))
            if a is None or b is None or made is None or (b == 0 and not isinstance(op, (ast.Add, ast.Sub, ast.Mult))):
                return None
            return made(a, b)
    return None
