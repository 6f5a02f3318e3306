"""Parses the expressions of the knowledge files into a tree: `train_batch * samples % dp == 0`.

The grammar is Python's, cut down: `x if c else y`, `or`, `and`, `not`, comparisons (chained, too), `in`, arithmetic,
calls, numbers, "texts", true, false, none and names. A name may have dots, colons and dashes in it (`micro-batch-size`,
`--nnodes`, `$NNODES`), so a minus stands between blanks; any other name stands between backquotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from advisor.language import say
from advisor.regex import regex
from advisor.rules.tree import (
    FUNCTIONS,
    KEYWORDS,
    Among,
    Branch,
    Call,
    Compare,
    Conditional,
    Constant,
    Joint,
    Name,
    Not,
    Sum,
)

_TOKEN = regex(
    r"""(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])
    |(?P<text>"[^"]*"|'[^']*')
    |`(?P<quoted>[^`]+)`
    |(?P<name>(?:--)?\$?[A-Za-z_]\w*(?:[.:-][A-Za-z0-9_]\w*)*)
    |(?P<sign>==|!=|<=|>=|//|[-<>+*/%(),])
    |(?P<blank>\s+)""",
    re.VERBOSE,
)
_DEEPEST = 40
"""Brackets and signs within one another; the knowledge files have five."""


class ExpressionError(ValueError):
    """What is wrong with an expression, and at which of its characters (from 0)."""

    def __init__(self, says: str, offset: int) -> None:
        super().__init__(says)
        self.says, self.offset = says, offset


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
