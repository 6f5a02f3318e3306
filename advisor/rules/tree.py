"""Evaluates and prints the nodes of an expression's tree.

Evaluation is three-valued (Kleene) and total: what is not known, not a number or divided by zero is None, unknown.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Literal, Protocol

from msgspec import Struct

from advisor.regex import regex

RuleValue = int | float | str | bool
KEYWORDS = frozenset({"and", "or", "not", "in", "if", "else", "true", "false", "none"})
_PLAIN_NAME = regex(r"(?:--)?\$?[A-Za-z_]\w*(?:[.:-][A-Za-z0-9_]\w*)*\Z")
_SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Scope(Protocol):
    """What the names of an expression stand for."""

    def value(self, name: str) -> RuleValue | None:
        """The value of a name; None where it is unknown."""

    def given(self, name: str) -> RuleValue | None:
        """The same where the user's files or the log say it, None where it is a default."""


class Node(Struct, frozen=True, array_like=True):
    """A part of an expression. `rank`: how tightly it binds, for printing."""

    rank = 9

    def of(self, scope: Scope) -> RuleValue | None:
        """Its value; None: unknown."""
        raise NotImplementedError

    def within(self, rank: int) -> str:
        """Its text, in brackets where it binds less tightly than what is around it."""
        return str(self) if self.rank >= rank else f"({self})"


class Constant(Node, frozen=True, array_like=True, tag="is"):
    """A number, a text, true, false, or none (unknown)."""

    value: RuleValue | None

    def of(self, scope: Scope) -> RuleValue | None:
        return self.value

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return f"'{self.value}'" if '"' in self.value else f'"{self.value}"'
        return str(self.value).lower()


class Name(Node, frozen=True, array_like=True, tag="name"):
    """Something that the scope knows: a setting, a knob, a count, a fact."""

    name: str

    def of(self, scope: Scope) -> RuleValue | None:
        return scope.value(self.name)

    def __str__(self) -> str:
        return self.name if _PLAIN_NAME.match(self.name) and self.name not in KEYWORDS else f"`{self.name}`"


class Not(Node, frozen=True, array_like=True, tag="not"):
    """Kleene's not."""

    part: Branch
    rank = 3

    def of(self, scope: Scope) -> RuleValue | None:
        held = truth(self.part.of(scope))
        return None if held is None else not held

    def __str__(self) -> str:
        return self.part.text("not in") if isinstance(self.part, Among) else f"not {self.part.within(3)}"


class Sum(Node, frozen=True, array_like=True, tag="sum"):
    """Arithmetic on two numbers; by zero it is unknown."""

    sign: str
    left: Branch
    right: Branch

    @property
    def rank(self) -> int:  # type: ignore[override]
        return 5 if self.sign in "+-" else 6

    def of(self, scope: Scope) -> RuleValue | None:
        left, right = as_number(self.left.of(scope)), as_number(self.right.of(scope))
        if left is None or right is None:
            return None
        try:
            made: int | float = _SUMS[self.sign](left, right)
        except ArithmeticError:
            return None
        return made if isinstance(made, int) or math.isfinite(made) else None

    def __str__(self) -> str:
        rounds = isinstance(self.left, Sum) and self.sign == "*" and self.left.sign in ("/", "//", "%")
        return f"{self.left.within(7 if rounds else self.rank)} {self.sign} {self.right.within(self.rank + 1)}"


class Compare(Node, frozen=True, array_like=True, tag="compare"):
    """== and != compare as people read (true and "True", 1 and "1" are the same); the others compare numbers."""

    sign: str
    left: Branch
    right: Branch
    rank = 4

    def of(self, scope: Scope) -> RuleValue | None:
        left, right = self.left.of(scope), self.right.of(scope)
        if left is None or right is None:
            return None
        if self.sign in _ORDERS:
            one, other = as_number(left), as_number(right)
            return None if one is None or other is None else _ORDERS[self.sign](one, other)
        return same(left, right) == (self.sign == "==")

    def __str__(self) -> str:
        return f"{self.left.within(5)} {self.sign} {self.right.within(5)}"


class Among(Node, frozen=True, array_like=True, tag="among"):
    """`x in (a, b)`: one of several values; `x in y`: a text within another."""

    item: Branch
    options: tuple[Branch, ...]
    in_text: bool = False
    rank = 4

    def of(self, scope: Scope) -> RuleValue | None:
        item, options = self.item.of(scope), (option.of(scope) for option in self.options)
        if item is None:
            return None
        if self.in_text:
            text = next(options)
            return None if text is None else str(item) in str(text)
        return _settled((None if option is None else same(item, option) for option in options), by=True)

    def text(self, word: str = "in") -> str:
        """`word`: in, or not in."""
        options = ", ".join(map(str, self.options))
        listed = self.options[0].within(5) if self.in_text else f"({options}{',' if len(self.options) == 1 else ''})"
        return f"{self.item.within(5)} {word} {listed}"

    def __str__(self) -> str:
        return self.text()


class Joint(Node, frozen=True, array_like=True, tag="joint"):
    """Kleene's and: false where one is, true where all are; or: true where one is, false where all are."""

    word: Literal["and", "or"]
    parts: tuple[Branch, ...]

    @property
    def rank(self) -> int:  # type: ignore[override]
        return 2 if self.word == "and" else 1

    def of(self, scope: Scope) -> RuleValue | None:
        return _settled((truth(part.of(scope)) for part in self.parts), by=self.word == "or")

    def __str__(self) -> str:
        return f" {self.word} ".join(part.within(self.rank + 1) for part in self.parts)


class Conditional(Node, frozen=True, array_like=True, tag="if"):
    """`x if c else y`; unknown where c is, unless x and y are the same."""

    then: Branch
    when: Branch
    otherwise: Branch
    rank = 0

    def of(self, scope: Scope) -> RuleValue | None:
        held = truth(self.when.of(scope))
        if held is not None:
            return (self.then if held else self.otherwise).of(scope)
        then, otherwise = self.then.of(scope), self.otherwise.of(scope)
        return then if then == otherwise and type(then) is type(otherwise) else None

    def __str__(self) -> str:
        return f"{self.then.within(1)} if {self.when.within(1)} else {self.otherwise}"


class RuleFunction(Struct, frozen=True):
    """A function, how it is written, and how many arguments it takes."""

    form: str
    of: Callable[..., RuleValue | None]
    least: int = 1
    most: int = 1
    takes: Literal["values", "numbers", "parts"] = "values"
    """parts: the scope and the arguments themselves; else their values, and it is unknown where one of them is."""

    def made(self, scope: Scope, arguments: tuple[Branch, ...]) -> RuleValue | None:
        """What it comes to; what it cannot make something of is unknown."""
        if self.takes == "parts":
            return self.of(scope, arguments)
        values = [one.of(scope) if self.takes == "values" else as_number(one.of(scope)) for one in arguments]
        if any(value is None for value in values):
            return None
        try:
            return self.of(*values)
        except (ArithmeticError, ValueError):
            return None


FUNCTIONS: dict[str, RuleFunction] = {}
"""Name → function that an expression may call; advisor/rules/functions.py fills it."""


class Call(Node, frozen=True, array_like=True, tag="call"):
    """A function of advisor/rules/functions.py."""

    function: str
    arguments: tuple[Branch, ...]

    def of(self, scope: Scope) -> RuleValue | None:
        return FUNCTIONS[self.function].made(scope, self.arguments)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


Branch = Constant | Name | Not | Sum | Compare | Among | Joint | Conditional | Call


def walk(node: Node) -> Iterator[Node]:
    """The node and everything in it, outermost first."""
    left = [node]
    while left:
        here = left.pop()
        yield here
        for field in reversed(here.__struct_fields__):
            part = getattr(here, field)
            if isinstance(part, Node):
                left.append(part)
            elif isinstance(part, tuple):
                left += [one for one in reversed(part) if isinstance(one, Node)]


@lru_cache(maxsize=4096)
def names_in(node: Node) -> tuple[str, ...]:
    """Every name in the node, in order, once."""
    return tuple(dict.fromkeys(part.name for part in walk(node) if isinstance(part, Name)))


def joined(word: Literal["and", "or"], tree: Node) -> tuple[Node, ...]:
    """The parts that `and` (or `or`) joins; the tree itself where it is no such chain."""
    return tree.parts if isinstance(tree, Joint) and tree.word == word else (tree,)


def truth(value: RuleValue | None) -> bool | None:
    """Whether a value is true; what is neither true nor unknown is false."""
    return None if value is None else value is True


def as_number(value: RuleValue | None) -> int | float | None:
    """A number that is not true or false; None where it is none."""
    return None if value is None or isinstance(value, (bool, str)) else value


def same(left: RuleValue, right: RuleValue) -> bool:
    """Equal as people read: true is "True", 1 is "1", "A" is "a"."""
    if left == right:
        return True
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    if str(left).lower() == str(right).lower():
        return True
    if isinstance(left, str) == isinstance(right, str) or isinstance(left, bool) or isinstance(right, bool):
        return False
    try:
        return float(left) == float(right)
    except ValueError:
        return False


def _settled(held: Iterator[bool | None], by: bool) -> bool | None:
    """`by` where one part is it, unknown where one is unknown, else its contrary."""
    unknown = False
    for one in held:
        if one is by:
            return by
        unknown = unknown or one is None
    return None if unknown else not by
