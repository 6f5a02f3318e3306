"""Tells what the variables of a Python file are worth where they are used: by scope and in order.

What depends on a condition, a loop, or who calls is unknown, unless there is but one place that sets it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from advisor.language import say
from advisor.script.python_tree import every, parents
from advisor.script.python_value import Evaluated, Evaluator

_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Names = dict[str, Evaluated]


class NameValues:
    """The variables of one file. `options`: what parsed options are worth, "args.batch" by name."""

    def __init__(self, tree: ast.Module, environment: Mapping[str, str]) -> None:
        self.tree, self.environment = tree, environment
        self.options: Mapping[str, Evaluated] = {}
        self._parents = parents(tree)
        self._global: set[str] = set()
        for node in every(tree, ast.AST):
            self._global.update(node.names if isinstance(node, ast.Global) else _set_by_name(node))

    def _around(self, node: ast.AST) -> list[ast.AST]:
        """What a node stands in, the file first."""
        found: list[ast.AST] = []
        at = self._parents.get(id(node))
        while at is not None:
            found.append(at)
            at = self._parents.get(id(at))
        return found[::-1]

    def is_certain(self, node: ast.AST) -> bool:
        """Whether a statement, or an expression of it, is run once whenever its function is, or the file."""
        inner = [each for each in self._around(node) if isinstance(each, ast.stmt) and any(_blocks(each))]
        while inner and not isinstance(inner[-1], _FunctionNode):
            if not _is_straight(inner.pop()):
                return False
        return True

    def holds(self, node: ast.AST) -> bool:
        """Whether the conditions around a node may all hold: none is known to be otherwise."""
        around = [*self._around(node), node]
        for one, below in pairwise(around):
            if isinstance(one, ast.If) and below is not one.test and "__name__" not in ast.unparse(one.test):
                found = Evaluator(self.at(one), self.environment).evaluate(one.test)
                if found.known and bool(found.value) is not any(below is each for each in one.body):
                    return False
        return True

    def scope(self, node: ast.AST) -> ast.AST | None:
        """The function that a node stands in; None: the file."""
        return next((each for each in reversed(self._around(node)) if isinstance(each, _FunctionNode)), None)

    def loop(self, node: ast.AST) -> ast.For | ast.While | None:
        """The loop in whose every round a node is run anew."""
        around = [
            each for each in self._around(node) if isinstance(each, (*_FunctionNode.__args__, ast.For, ast.While))
        ]
        return around[-1] if around and isinstance(around[-1], (ast.For, ast.While)) else None

    def at(self, node: ast.AST) -> _Names:
        """What each variable is worth at a node; what is worth at the file's end for the file itself."""
        around = self._around(node)
        functions = [each for each in around if isinstance(each, _FunctionNode)]
        names = dict(self.options)
        self._follow(
            self.tree.body, None if functions or node is self.tree else node, names, Counter(_stored(self.tree.body))
        )
        for name in names if "" in self._global else self._global:
            names[name] = _unknown(name)
        for function in functions:
            for name in [each.arg for each in every(function.args, ast.arg)]:
                handed = Evaluated(reason=say("{name} is handed over", name=name))
                names[name] = self.options.get(f"{getattr(function, 'name', '')}.{name}", handed)
            if not isinstance(function, ast.Lambda):
                last = node if function is functions[-1] else None
                self._follow(function.body, last, names, Counter(_stored(function.body)))
        return names

    def _follow(self, body: Sequence[ast.stmt], until: ast.AST | None, names: _Names, counts: Counter[str]) -> None:
        """Run through statements up to a node; without one to their end."""
        inside = {id(each) for each in (*self._around(until), until)} if until is not None else set()
        for statement in body:
            if until is not None and statement.lineno > getattr(until, "lineno", 0):
                return
            within = id(statement) in inside
            if _is_straight(statement):
                for block in _blocks(statement):
                    self._follow(block, until if within else None, names, counts)
            elif within and isinstance(statement, (ast.If, ast.For, ast.While, ast.Try)):
                if isinstance(statement, (ast.For, ast.While)):
                    names |= {name: _unknown(name) for name in _stored([statement])}
                block = next((b for b in _blocks(statement) if any(id(each) in inside for each in b)), [])
                self._follow(block, until, names, counts)
            elif within:
                return
            else:
                self._take(statement, names, counts)

    def _take(self, statement: ast.stmt, names: _Names, counts: Counter[str]) -> None:
        """One statement: what it assigns, or that what it may assign is unknown."""
        certain = dict(assignments(statement))
        for name in _stored([statement]):
            if name not in certain:
                names[name] = _unknown(name)
        for name, value in certain.items():
            names[name] = Evaluator(names, self.environment).evaluate(value)
        for inner in ast.walk(statement) if not certain else ():
            for name, value in assignments(inner) if isinstance(inner, ast.stmt) else ():
                if counts[name] == 1:  # whoever reaches its use came by here
                    names[name] = Evaluator(names, self.environment).evaluate(value)


def _set_by_name(node: ast.AST) -> Iterator[str]:
    """Variables of the file that a node sets otherwise than by their name alone; "": any of them."""
    match node:
        case ast.Subscript(value=ast.Call(func=ast.Name(id="globals")), slice=name, ctx=ast.Store()):
            yield str(name.value) if isinstance(name, ast.Constant) else ""
        case (
            ast.Attribute(value=ast.Call(func=ast.Name(id="globals")), attr="update")
            | ast.Call(func=ast.Name(id="exec"))
        ):
            yield ""


def assignments(statement: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Name and value of what a statement, or an expression by itself, surely assigns."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                match target, value:
                    case ast.Name(id=name), _:
                        yield name, value
                    case ast.Tuple(elts=items), ast.Tuple(elts=values) if len(items) == len(values):
                        yield from ((i.id, v) for i, v in zip(items, values, strict=True) if isinstance(i, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name) as target, op=operator, value=value):
            before = ast.copy_location(ast.Name(name, ast.Load()), target)
            yield name, ast.copy_location(ast.BinOp(before, operator, value), statement)


def _unknown(name: str) -> Evaluated:
    return Evaluated(reason=say("{name} is set in several places", name=name))


def _is_straight(statement: ast.AST) -> bool:
    """A statement whose block is surely run: `with`, and the program's own part."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return True
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body


def _stored(body: Sequence[ast.AST]) -> Iterator[str]:
    """Names that statements may set, those of functions and classes in them left out."""
    for node in body:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        if not isinstance(node, (*_FunctionNode.__args__, ast.ClassDef)):
            yield from _stored(list(ast.iter_child_nodes(node)))
