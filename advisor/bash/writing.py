"""Quotes new values by what stands around the place they go to, and finds where new lines may stand."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from advisor.bash import syntax
from advisor.bash.syntax import Simple, Statement, Statements
from advisor.bash.text import Context
from advisor.bash.tree import parse
from advisor.regex import regex

_SAFE = regex(r"[A-Za-z0-9_./:,=+@%^-]+\Z")
_ESCAPED_IN_DOUBLE = regex(r'([\\$`"])')


def is_safe(text: str) -> bool:
    """Whether a text means itself everywhere in a shell script."""
    return bool(_SAFE.match(text))


def quote(text: str) -> str:
    """A text as one word of a command, in quotes where it needs them."""
    if is_safe(text):
        return text
    if "'" not in text:
        return f"'{text}'"
    return '"' + _ESCAPED_IN_DOUBLE.sub(r"\\\1", text) + '"'


def within(text: str, context: Context, *, own_word: bool, alone: bool) -> str | None:
    """A text as it must be written at a place; None where it cannot stand there. `own_word`: the place is in the
    command's own word, not in a variable that is expanded later; `alone`: the value is a whole word, so that an empty
    one needs quotes."""
    if is_safe(text):
        return text
    if not own_word or "\0" in text:
        return None
    if context == "plain":
        return quote(text) if text or alone else ""
    if context == "double":
        return _ESCAPED_IN_DOUBLE.sub(r"\\\1", text)
    if context == "single":
        return text.replace("'", "'\\''")
    return None


class Site:
    """The statements of one document, to find lines above them."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """Byte ranges that no new line may cut: simple commands with their heredocs, and tests."""
        out: list[tuple[int, int]] = []
        for statement in _walk(parse(self.data)):
            if isinstance(statement, Simple):
                bodies = [redirect.body[1] for redirect in statement.redirects if redirect.body]
                out.append((statement.start, max([statement.end, *bodies])))
            elif isinstance(statement, syntax.Test):
                out.append((statement.start, statement.body[1] + 2))
            elif isinstance(statement, (syntax.For, syntax.CaseStatement)):
                out.append((statement.start, statement.start + 1))
        return sorted(out)

    @property
    def newline(self) -> bytes:
        """The file's own line ending."""
        return b"\r\n" if b"\r\n" in self.data else b"\n"

    def line_above(self, offset: int) -> int:
        """The start of a line above the statement with byte `offset`, where a whole new line may stand."""
        at = self.data.rfind(b"\n", 0, offset) + 1
        for _ in range(10_000):
            covering = next((start for start, end in self.ranges if start < at < end), None)
            if covering is not None:
                at = self.data.rfind(b"\n", 0, covering) + 1
            elif at and self.data[:at].endswith((b"\\\n", b"\\\r\n")):
                at = self.data.rfind(b"\n", 0, at - 1) + 1
            else:
                break
            if at == 0:
                break
        if at == 0 and self.data.startswith(b"#!"):  # nothing goes above it
            return self.data.find(b"\n") + 1
        return at

    def indent(self, at: int) -> bytes:
        """Blanks at the start of the line that begins at byte `at`."""
        end = at
        while self.data[end : end + 1] in (b" ", b"\t") and end < len(self.data):
            end += 1
        return self.data[at:end]


def _walk(block: Statements) -> Iterable[Statement]:
    for statement in block:
        yield statement
        match statement:
            case syntax.If():
                for condition, body in statement.branches:
                    yield from _walk(condition)
                    yield from _walk(body)
                yield from _walk(statement.otherwise)
            case syntax.For() | syntax.Function() | syntax.CommandGroup():
                yield from _walk(statement.body)
            case syntax.While():
                yield from _walk(statement.condition)
                yield from _walk(statement.body)
            case syntax.CaseStatement():
                for _, body, _ in statement.items:
                    yield from _walk(body)
            case syntax.Pipeline():
                yield from _walk(statement.elements)
            case syntax.Chain():
                yield from _walk((statement.left, statement.right))
            case syntax.Negation():
                yield from _walk((statement.body,))
