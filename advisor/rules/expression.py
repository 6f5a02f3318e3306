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
from contextlib import contextmanager, suppress
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from advisor.language import say

RuleValue = int | float | str | bool
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
_COMPILED = "\0"
"""Between an expression and its tree in compiled knowledge; no file has it (see hostile.clean)."""
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


class Expression:
    """One expression of a knowledge file: its text, and its tree, parsed when the knowledge is compiled."""

    __slots__ = ("_source", "_tree")

    def __init__(self, source: str) -> None:
        self._source, self._tree = source, None if _COMPILED in source else parse(source)

    @property
    def text(self) -> str:
        """As the file has it."""
        return self._source.partition(_COMPILED)[0]

    @property
    def tree(self) -> Branch:
        """The parsed tree; of compiled knowledge it is decoded when first read, or parsed again where it is none."""
        if self._tree is None:
            text, _, compiled = self._source.partition(_COMPILED)
            with suppress(msgspec.MsgspecError):
                self._tree = msgspec.json.decode(compiled, type=Branch)
            self._tree = self._tree or parse(text)
        return self._tree

    def of(self, scope: Scope) -> RuleValue | None:
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
    left = [node]
    while left:
        here = left.pop()
        yield here
        parts = (getattr(here, field) for field in reversed(here.__struct_fields__))
        for part in parts:
            left += [one for one in (reversed(part) if isinstance(part, tuple) else (part,)) if isinstance(one, Node)]


def joined(word: Literal["and", "or"], tree: Node) -> tuple[Node, ...]:
    """The parts that `and` (or `or`) joins; the tree itself where it is no such chain."""
    return tree.parts if isinstance(tree, Joint) and tree.word == word else (tree,)


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
    return _ExpressionParser(text).whole()


class _ExpressionParser:
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

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ExpressionError(say("nested too deeply"), self.tokens[self.place][2])
        yield
        self.depth -= 1

    def choice(self) -> Branch:
        with self.deeper():
            then = self.either()
            if not self.taken("if"):
                return then
            when = self.either()
            self.needed("else")
            return Conditional(then, when, self.choice())

    def joint(self, word: Literal["and", "or"], part: Callable[[], Branch]) -> Branch:
        parts = [part()]
        while self.taken(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joint(word, tuple(parts))

    def either(self) -> Branch:
        return self.joint("or", lambda: self.joint("and", self.negation))

    def negation(self) -> Branch:
        if not self.taken("not"):
            return self.comparison()
        with self.deeper():
            return Not(self.negation())

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
                return left if not links else links[0] if len(links) == 1 else Joint("and", tuple(links))

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
        """A negative number is one; the negative of anything else is written `0 - x`."""
        if not self.taken("-"):
            return self.primary()
        kind, word, _ = self.tokens[self.place]
        if kind != "number":
            raise self.wrong()
        self.place += 1
        return Constant(-self.number(word))

    def primary(self) -> Branch:
        kind, word, _ = self.tokens[self.place]
        if self.taken("("):
            inner = self.choice()
            self.needed(")")
            return inner
        if self.taken("true", "false", "none"):
            return Constant({"true": True, "false": False, "none": None}[word])
        if kind in ("name", "quoted"):
            self.place += 1
            return self.call(word) if kind == "name" and self.taken("(") else Name(word)
        if kind in ("number", "text"):
            self.place += 1
            return Constant(word[1:-1] if kind == "text" else self.number(word))
        raise self.wrong()

    def number(self, word: str) -> int | float:
        plain = word.replace("_", "")
        value = int(plain) if plain.isdigit() else float(plain)
        if not abs(value) < 1e300:  # longer than any count, and a float without end
            raise ExpressionError(say("too large a number"), self.tokens[self.place - 1][2])
        return value

    def call(self, function: str) -> Branch:
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
