"""Asks a syntax tree of Python what all its readers ask: nodes of a kind, calls by name, texts, what is handed on."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Any, TypeVar

N = TypeVar("N", bound=ast.AST)


class _TreeIndex:
    """One walk through a file: its nodes by kind, outer ones first, and what each of them stands in."""

    def __init__(self, tree: ast.Module) -> None:
        nodes: list[ast.AST] = [tree]
        self.by_kind: dict[type[ast.AST], list[Any]] = {ast.AST: nodes}
        self.parents: dict[int, ast.AST] = {}
        for node in nodes:  # which grows
            self.by_kind.setdefault(type(node), []).append(node)
            for child in ast.iter_child_nodes(node):
                nodes.append(child)
                self.parents[id(child)] = node


def _index(tree: ast.Module) -> _TreeIndex:
    """Kept with the tree: its readers ask some forty questions of it, and none of them adds a node."""
    made: _TreeIndex = tree.__dict__.get("walk") or tree.__dict__.setdefault("walk", _TreeIndex(tree))
    return made


def every(tree: ast.AST, kind: type[N]) -> list[N]:
    """The nodes of a kind, outer ones first; of `ast.AST` all."""
    if isinstance(tree, ast.Module):
        return _index(tree).by_kind.get(kind, [])
    return [node for node in ast.walk(tree) if isinstance(node, kind)]


def parents(tree: ast.Module) -> dict[int, ast.AST]:
    """`id` of a node → the node that it stands in."""
    return _index(tree).parents


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def calls(tree: ast.AST, *names: str) -> list[ast.Call]:
    """The calls in a tree; those of the names, where some are given."""
    return [call for call in every(tree, ast.Call) if not names or called(call) in names]


def text(node: ast.expr | None) -> str:
    """The text that a node is; "" of any other."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def is_one(node: ast.AST | None, names: Collection[str]) -> bool:
    """Whether a node is one of some names: "config", "trainer.args"."""
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(node) in names


def parameters(function: ast.FunctionDef) -> list[str]:
    """What a function takes by position, in order."""
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def handed(call: ast.Call, names: Collection[str]) -> Iterator[tuple[str, ast.expr]]:
    """Parameter and value of what a call hands to a function that takes `names` by position."""
    yield from zip(names, call.args, strict=False)
    yield from ((each.arg or "", each.value) for each in call.keywords)


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Module and name of every import: (".b", "c") of `from .b import c`."""
    for node in every(tree, ast.AST):
        if isinstance(node, ast.Import):
            yield from ((each.name, each.asname or "") for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (("." * node.level + (node.module or ""), each.asname or each.name) for each in node.names)
