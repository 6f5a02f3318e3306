"""Holds an expression of a knowledge file: its text, and its tree, which compiled knowledge brings along."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from advisor.language import say
from advisor.rules.parser import ExpressionError, parse
from advisor.rules.tree import Branch, Constant, RuleValue, Scope, names_in, truth

_COMPILED = "\0"
"""Between an expression and its tree in compiled knowledge; no file has it (see hostile.clean)."""


class Expression:
    """One expression of a knowledge file: its text, and its tree, parsed when the knowledge is compiled."""

    __slots__ = ("_compiled", "_names", "_tree", "text")

    def __init__(self, source: str) -> None:
        self.text, _, self._compiled = source.partition(_COMPILED)
        """As the file has it."""
        self._tree = None if self._compiled else parse(source)
        self._names: tuple[str, ...] | None = None

    @property
    def tree(self) -> Branch:
        """The parsed tree; of compiled knowledge it is decoded when first read, or parsed again where it is none."""
        if self._tree is None:
            with suppress(msgspec.MsgspecError):
                self._tree = msgspec.json.decode(self._compiled, type=Branch)
            self._tree = self._tree or parse(self.text)
        return self._tree

    def of(self, scope: Scope) -> RuleValue | None:
        """Its value; None: unknown."""
        return self.tree.of(scope)

    def holds(self, scope: Scope) -> bool | None:
        """Whether it is true; None: unknown."""
        return truth(self.tree.of(scope))

    def names(self) -> tuple[str, ...]:
        """Every name in it, in order, once."""
        if self._names is None:
            self._names = names_in(self.tree)
        return self._names

    def __str__(self) -> str:
        return str(self.tree)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.tree == other.tree

    def __hash__(self) -> int:
        return hash(self.text)


def decode(kind: type, data: Any) -> Any:
    """msgspec's dec_hook: an expression from a YAML scalar, or from what `encode` wrote."""
    if kind is not Expression:
        raise NotImplementedError(kind)
    if data is None or isinstance(data, (dict, list)):
        raise ExpressionError(say("an expression is one line of text, a number, true or false"), 0)
    return Expression(data if isinstance(data, str) else str(Constant(data)))


def encode(value: Any) -> Any:
    """msgspec's enc_hook: text and tree, so that compiled knowledge need not be parsed again."""
    if isinstance(value, Expression):
        return f"{value.text}{_COMPILED}{msgspec.json.encode(value.tree).decode()}"
    raise NotImplementedError(type(value))


def json_schema(kind: type) -> dict[str, Any]:
    """msgspec's schema_hook."""
    if kind is Expression:
        return {"type": ["string", "number", "boolean"], "description": "an expression (docs/rules.md)"}
    raise NotImplementedError(kind)
