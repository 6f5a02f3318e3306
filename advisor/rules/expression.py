"""Parses, prints and evaluates the expressions of the knowledge files: `train_batch * samples % dp == 0`.

The grammar is Python's, cut down: `x if c else y`, `or`, `and`, `not`, comparisons (chained, too), `in`, arithmetic,
calls, numbers, "texts", true, false, none and names. A name may have dots, colons and dashes in it (`micro-batch-size`,
`--nnodes`, `$NNODES`), so a minus stands between blanks; any other name stands between backquotes.

Evaluation is three-valued (Kleene) and total: what is not known, not a number or divided by zero is None, unknown.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from advisor.language import say

Value = int | float | str | bool
KEYWORDS = frozenset({"and", "or", "not", "in", "if", "else", "true", "false", "none"})
_TOKEN = re.compile(
    r"""(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])
    |(?P<text>"[^"]*"|'[^']*')
    |`(?P<quoted>[^`]+)`
    |(?P<name>(?:--)?\$?[A-Za-z_]\w*(?:[.:-][A-Za-z0-9_]\w*)*)
    |(?P<sign>==|!=|<=|>=|//|[-<>+*/%(),])
    |(?P<blank>\s+)""",
    re.VERBOSE,
)
_PLAIN_NAME = re.compile(r"(?:--)?\$?[A-Za-z_]\w*(?:[.:-][A-Za-z0-9_]\w*)*\Z")
_DEEPEST = 40
"""Brackets and signs within one another; the knowledge files have five."""
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


class ExpressionError(ValueError):
    """What is wrong with an expression, and at which of its characters (from 0)."""

    def __init__(self, says: str, offset: int) -> None:
        super().__init__(says)
        self.says, self.offset = says, offset


class Scope(Protocol):
    """What the names of an expression stand for."""

    def value(self, name: str) -> Value | None:
        """The value of a name; None where it is unknown."""

    def given(self, name: str) -> Value | None:
        """The same where the user's files or the log say it, None where it is a default."""


class Node(Struct, frozen=True, array_like=True):
    """A part of an expression. `rank`: how tightly it binds, for printing."""

    rank = 9

    def of(self, scope: Scope) -> Value | None:
        """Its value; None: unknown."""
        raise NotImplementedError

    def parts(self) -> tuple[Node, ...]:
        """What it is made of."""
        return ()

    def within(self, rank: int) -> str:
        """Its text, in brackets where it binds less tightly than what is around it."""
        return str(self) if self.rank >= rank else f"({self})"


class Literal(Node, frozen=True, array_like=True, tag="literal"):
    """A number, a text, true, false, or none (unknown)."""

    literal: Value | None

    def of(self, scope: Scope) -> Value | None:
        return self.literal

    def __str__(self) -> str:
        if isinstance(self.literal, str):
            return f"'{self.literal}'" if '"' in self.literal else f'"{self.literal}"'
        return str(self.literal).lower()


class Name(Node, frozen=True, array_like=True, tag="name"):
    """Something that the scope knows: a setting, a knob, a count, a fact."""

    name: str

    def of(self, scope: Scope) -> Value | None:
        return scope.value(self.name)

    def __str__(self) -> str:
        return self.name if _PLAIN_NAME.match(self.name) and self.name not in KEYWORDS else f"`{self.name}`"


class Not(Node, frozen=True, array_like=True, tag="not"):
    """Kleene's not."""

    part: Branch
    rank = 3

    def of(self, scope: Scope) -> Value | None:
        held = truth(self.part.of(scope))
        return None if held is None else not held

    def parts(self) -> tuple[Node, ...]:
        return (self.part,)

    def __str__(self) -> str:
        if isinstance(self.part, Among):
            return self.part.text("not in")
        return f"not {self.part.within(3)}"


class Minus(Node, frozen=True, array_like=True, tag="minus"):
    """A number with its sign turned round."""

    part: Branch
    rank = 7

    def of(self, scope: Scope) -> Value | None:
        number = as_number(self.part.of(scope))
        return None if number is None else -number

    def parts(self) -> tuple[Node, ...]:
        return (self.part,)

    def __str__(self) -> str:
        return f"- {self.part.within(7)}"


class Sum(Node, frozen=True, array_like=True, tag="sum"):
    """Arithmetic on two numbers; by zero it is unknown."""

    sign: str
    left: Branch
    right: Branch

    @property
    def rank(self) -> int:  # type: ignore[override]
        return 5 if self.sign in "+-" else 6

    def of(self, scope: Scope) -> Value | None:
        left, right = as_number(self.left.of(scope)), as_number(self.right.of(scope))
        if left is None or right is None:
            return None
        try:
            made: int | float = _SUMS[self.sign](left, right)
        except ArithmeticError:
            return None
        return made if isinstance(made, int) or math.isfinite(made) else None

    def parts(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        rounds = isinstance(self.left, Sum) and self.sign == "*" and self.left.sign in ("/", "//", "%")
        return f"{self.left.within(7 if rounds else self.rank)} {self.sign} {self.right.within(self.rank + 1)}"


class Compare(Node, frozen=True, array_like=True, tag="compare"):
    """== and != compare as people read (true and "True", 1 and "1" are the same); the others compare numbers."""

    sign: str
    left: Branch
    right: Branch
    rank = 4

    def of(self, scope: Scope) -> Value | None:
        left, right = self.left.of(scope), self.right.of(scope)
        if left is None or right is None:
            return None
        if self.sign in _ORDERS:
            one, other = as_number(left), as_number(right)
            return None if one is None or other is None else _ORDERS[self.sign](one, other)
        return same(left, right) == (self.sign == "==")

    def parts(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        return f"{self.left.within(5)} {self.sign} {self.right.within(5)}"


class Among(Node, frozen=True, array_like=True, tag="among"):
    """`x in (a, b)`: one of several values; `x in y`: a text within another."""

    item: Branch
    options: tuple[Branch, ...]
    in_text: bool = False
    rank = 4

    def of(self, scope: Scope) -> Value | None:
        item, options = self.item.of(scope), [option.of(scope) for option in self.options]
        if item is None:
            return None
        if self.in_text:
            return None if options[0] is None else str(item) in str(options[0])
        if any(option is not None and same(item, option) for option in options):
            return True
        return None if None in options else False

    def parts(self) -> tuple[Node, ...]:
        return (self.item, *self.options)

    def text(self, word: str = "in") -> str:
        """`word`: in, or not in."""
        options = ", ".join(map(str, self.options))
        listed = self.options[0].within(5) if self.in_text else f"({options}{',' if len(self.options) == 1 else ''})"
        return f"{self.item.within(5)} {word} {listed}"

    def __str__(self) -> str:
        return self.text()


class Both(Node, frozen=True, array_like=True, tag="and"):
    """Kleene's and: false where one is, true where all are."""

    all: tuple[Branch, ...]
    rank = 2

    def of(self, scope: Scope) -> Value | None:
        return _settled((truth(part.of(scope)) for part in self.all), by=False)

    def parts(self) -> tuple[Node, ...]:
        return self.all

    def __str__(self) -> str:
        return " and ".join(part.within(3) for part in self.all)


class Either(Node, frozen=True, array_like=True, tag="or"):
    """Kleene's or: true where one is, false where all are."""

    any: tuple[Branch, ...]
    rank = 1

    def of(self, scope: Scope) -> Value | None:
        return _settled((truth(part.of(scope)) for part in self.any), by=True)

    def parts(self) -> tuple[Node, ...]:
        return self.any

    def __str__(self) -> str:
        return " or ".join(part.within(2) for part in self.any)


class Choice(Node, frozen=True, array_like=True, tag="if"):
    """`x if c else y`; unknown where c is, unless x and y are the same."""

    then: Branch
    when: Branch
    otherwise: Branch
    rank = 0

    def of(self, scope: Scope) -> Value | None:
        held = truth(self.when.of(scope))
        if held is not None:
            return (self.then if held else self.otherwise).of(scope)
        then, otherwise = self.then.of(scope), self.otherwise.of(scope)
        return then if then == otherwise and type(then) is type(otherwise) else None

    def parts(self) -> tuple[Node, ...]:
        return (self.then, self.when, self.otherwise)

    def __str__(self) -> str:
        return f"{self.then.within(1)} if {self.when.within(1)} else {self.otherwise}"


class Call(Node, frozen=True, array_like=True, tag="call"):
    """A function of advisor/rules/functions.py."""

    function: str
    arguments: tuple[Branch, ...]

    def of(self, scope: Scope) -> Value | None:
        from advisor.rules.functions import FUNCTIONS

        return FUNCTIONS[self.function].made(scope, self.arguments)

    def parts(self) -> tuple[Node, ...]:
        return self.arguments

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


Branch = Literal | Name | Not | Minus | Sum | Compare | Among | Both | Either | Choice | Call


class Expression:
    """One expression of a knowledge file: its text, and its tree, parsed when the knowledge is compiled."""

    __slots__ = ("_compiled", "_tree", "text")

    def __init__(self, text: str, compiled: Any = None) -> None:
        self.text, self._compiled = text, compiled
        self._tree: Branch | None = None

    @property
    def tree(self) -> Branch:
        """The parsed tree; of compiled knowledge it is typed when first read."""
        if self._tree is None:
            compiled = self._compiled
            self._tree = parse(self.text) if compiled is None else msgspec.convert(compiled, Branch)
        return self._tree

    def of(self, scope: Scope) -> Value | None:
        """Its value; None: unknown."""
        return self.tree.of(scope)

    def holds(self, scope: Scope) -> bool | None:
        """Whether it is true; None: unknown."""
        return truth(self.tree.of(scope))

    def names(self) -> list[str]:
        """Every name in it, in order, once."""
        return list(dict.fromkeys(node.name for node in walk(self.tree) if isinstance(node, Name)))

    def __str__(self) -> str:
        return str(self.tree)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.tree == other.tree

    def __hash__(self) -> int:
        return hash(self.text)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything in it, outermost first."""
    yield node
    for part in node.parts():
        yield from walk(part)


def decode(kind: type, data: Any) -> Any:
    """msgspec's dec_hook: an expression from a YAML scalar, or from [text, tree] as `encode` wrote it."""
    if kind is not Expression:
        raise NotImplementedError(kind)
    if isinstance(data, list) and len(data) == 2:
        return Expression(*data)
    if data is None or isinstance(data, (dict, list)):
        raise ExpressionError(say("an expression is one line of text, a number, true or false"), 0)
    made = Expression(data if isinstance(data, str) else str(Literal(data)))
    made.tree  # noqa: B018 - parsed here, where the file that it stands in is known
    return made


def encode(value: Any) -> Any:
    """msgspec's enc_hook: text and tree, so that compiled knowledge need not be parsed again."""
    if isinstance(value, Expression):
        return [value.text, value.tree]
    raise NotImplementedError(type(value))


def json_schema(kind: type) -> dict[str, Any]:
    """msgspec's schema_hook."""
    if kind is Expression:
        return {"type": ["string", "number", "boolean"], "description": "an expression (docs/rules.md)"}
    raise NotImplementedError(kind)


def truth(value: Value | None) -> bool | None:
    """Whether a value is true; what is neither true nor unknown is false."""
    return None if value is None else value is True


def as_number(value: Value | None) -> int | float | None:
    """A number that is not true or false; None where it is none."""
    return None if value is None or isinstance(value, (bool, str)) else value


def same(left: Value, right: Value) -> bool:
    """Equal as people read: true is "True", 1 is "1", "A" is "a"."""
    if left == right or str(left).lower() == str(right).lower():
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


def tokens(text: str) -> list[tuple[str, str, int]]:
    """(kind, text, offset) of every word and sign; raises ExpressionError."""
    found: list[tuple[str, str, int]] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ExpressionError(say("{sign!r} has no place in an expression", sign=text[place]), place)
        kind = match.lastgroup or ""
        if kind != "blank":
            word = match[kind]
            found.append(("keyword" if kind == "name" and word in KEYWORDS else kind, word, place))
        place = match.end()
    return [*found, ("end", "", len(text))]


def parse(text: str) -> Branch:
    """The tree of an expression. Raises ExpressionError."""
    return _Parser(text).whole()


class _Parser:
    """Recursive descent, one method a level of binding."""

    def __init__(self, text: str) -> None:
        self.tokens, self.place, self.depth = tokens(text), 0, 0

    def whole(self) -> Branch:
        tree = self.choice()
        if self.tokens[self.place][0] != "end":
            raise self.wrong()
        return tree

    def wrong(self) -> ExpressionError:
        kind, word, offset = self.tokens[self.place]
        if kind == "end":
            return ExpressionError(say("the expression ends too early"), offset)
        return ExpressionError(say("{word!r} does not belong here", word=word), offset)

    def taken(self, *words: str) -> str:
        """The next sign or keyword, if it is one of these; "" where it is not."""
        kind, word, _ = self.tokens[self.place]
        if kind not in ("sign", "keyword") or word not in words:
            return ""
        self.place += 1
        return word

    def needed(self, word: str) -> None:
        if not self.taken(word):
            raise self.wrong()

    def choice(self) -> Branch:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ExpressionError(say("nested too deeply"), self.tokens[self.place][2])
        then = self.either()
        if self.taken("if"):
            when = self.either()
            self.needed("else")
            then = Choice(then, when, self.choice())
        self.depth -= 1
        return then

    def either(self) -> Branch:
        parts = [self.both()]
        while self.taken("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def both(self) -> Branch:
        parts = [self.negation()]
        while self.taken("and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def negation(self) -> Branch:
        turned = 0
        while self.taken("not"):
            turned += 1
        if turned > _DEEPEST:
            raise ExpressionError(say("nested too deeply"), self.tokens[self.place][2])
        part = self.comparison()
        for _ in range(turned):
            part = Not(part)
        return part

    def comparison(self) -> Branch:
        left = self.sums()
        links: list[Branch] = []
        while True:
            if sign := self.taken("==", "!=", "<", "<=", ">", ">="):
                right = self.sums()
                links.append(Compare(sign, left, right))
                left = right
            elif self.taken("in"):
                links.append(self.among(left))
            elif self.taken("not"):
                self.needed("in")
                links.append(Not(self.among(left)))
            else:
                return left if not links else links[0] if len(links) == 1 else Both(tuple(links))

    def among(self, item: Branch) -> Among:
        start = self.place
        if self.taken("("):
            options = [self.choice()]
            listed = False
            while self.taken(","):
                listed = True
                if self.tokens[self.place][1] != ")":
                    options.append(self.choice())
            self.needed(")")
            if listed:
                return Among(item, tuple(options))
        self.place = start
        return Among(item, (self.sums(),), in_text=True)

    def sums(self) -> Branch:
        left = self.products()
        while sign := self.taken("+", "-"):
            left = Sum(sign, left, self.products())
        return left

    def products(self) -> Branch:
        left = self.signed()
        while sign := self.taken("*", "/", "//", "%"):
            left = Sum(sign, left, self.signed())
        return left

    def signed(self) -> Branch:
        turned = 0
        while self.taken("-"):
            turned += 1
        if turned > _DEEPEST:
            raise ExpressionError(say("nested too deeply"), self.tokens[self.place][2])
        part = self.primary()
        for _ in range(turned):
            part = Minus(part)
        return part

    def primary(self) -> Branch:
        kind, word, _ = self.tokens[self.place]
        if self.taken("("):
            inner = self.choice()
            self.needed(")")
            return inner
        if self.taken("true", "false", "none"):
            return Literal({"true": True, "false": False, "none": None}[word])
        if kind in ("name", "quoted"):
            self.place += 1
            return self.call(word) if kind == "name" and self.taken("(") else Name(word)
        if kind in ("number", "text"):
            self.place += 1
            return Literal(word[1:-1] if kind == "text" else self.number(word))
        raise self.wrong()

    def number(self, word: str) -> int | float:
        plain = word.replace("_", "")
        value = int(plain) if plain.isdigit() else float(plain)
        if not abs(value) < 1e300:  # longer than any count, and a float without end
            raise ExpressionError(say("too large a number"), self.tokens[self.place - 1][2])
        return value

    def call(self, function: str) -> Branch:
        from advisor.rules.functions import FUNCTIONS

        offset = self.tokens[self.place - 2][2]
        arguments: list[Branch] = []
        while not self.taken(")"):
            arguments.append(self.choice())
            if not self.taken(","):
                self.needed(")")
                break
        if function not in FUNCTIONS:
            told = {"name": function, "known": ", ".join(sorted(FUNCTIONS))}
            raise ExpressionError(say("there is no function {name}: there are {known}", **told), offset)
        known = FUNCTIONS[function]
        if not known.least <= len(arguments) <= known.most:
            raise ExpressionError(say("{name} takes other arguments: {text}", name=function, text=known.form), offset)
        return Call(function, tuple(arguments))
