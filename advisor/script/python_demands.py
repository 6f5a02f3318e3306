"""Finds what a Python program demands of its options: assertions, and conditions under which it stops."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from advisor.script.python_calls import once_set
from advisor.script.python_tree import called, every
from advisor.script.python_value import Evaluated, Evaluator

_ENDS = ("exit", "_exit", "quit", "error", "fail")


def stopped_by(tree: ast.Module, key: str, before: Mapping[str, float], after: Mapping[str, float]) -> int | None:
    """The line that stops a program with the options `after` and did not with those `before`; of a line that asks for
    one fixed number and cannot be computed here, too.
    """
    names = dict(once_set(tree))
    for line, test, wanted in _tests(tree):
        if key not in _read(test, names):
            continue
        was, now = _Options(before, names).holds(test), _Options(after, names).holds(test)
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


def _read(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 0) -> frozenset[str]:
    """The attributes that an expression is computed of."""
    found = {one.attr for one in every(node, ast.Attribute)}
    for one in every(node, ast.Name) if depth < len(names) and depth < 8 else ():
        if isinstance(names.get(one.id), ast.BinOp):
            found |= _read(names[one.id], names, depth + 1)
    return frozenset(found)


class _Options(Evaluator):
    """What a condition is where options have these values, whatever object they are attributes of."""

    def __init__(self, values: Mapping[str, float], once: Mapping[str, ast.expr]) -> None:
        super().__init__({name: Evaluated(value) for name, value in values.items()})
        self.once = once

    def evaluate(self, node: ast.expr, depth: int = 0) -> Evaluated:
        match node:
            case ast.Name(id=name) if name in self.once:
                return self.evaluate(self.once[name], depth + 1)
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.BoolOp(op=op, values=parts):  # one that decides is enough
                each = [self.holds(part, depth + 1) for part in parts]
                decided = isinstance(op, ast.Or)
                return Evaluated(decided) if decided in each else super().evaluate(node, depth)
            case ast.Compare(left=left, ops=[_, _, *_] as ops, comparators=others):
                pairs = zip((left, *others), ops, others, strict=False)
                return self.evaluate(
                    ast.BoolOp(ast.And(), [ast.Compare(a, [op], [b]) for a, op, b in pairs]), depth + 1
                )
        return super().evaluate(node, depth)

    def holds(self, test: ast.expr, depth: int = 0) -> bool | None:
        found = self.evaluate(test, depth)
        return bool(found.value) if found.known else None
