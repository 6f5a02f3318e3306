"""The statements of a shell text: what the grammar finds and the followers run."""

from __future__ import annotations

from msgspec import Struct

from advisor.script.shell_command import Simple
from advisor.script.shell_words import Word


class If(Struct, frozen=True):
    """Branches in order, each with its condition; `otherwise` is the else part."""

    branches: tuple[tuple[Block, Block], ...]
    otherwise: Block
    start: int


class For(Struct, frozen=True):
    """`for name in words`; `words` None: over the positional arguments; `header` is set for `for ((a; b; c))`."""

    name: bytes
    words: tuple[Word, ...] | None
    body: Block
    start: int
    header: tuple[int, int] | None = None


class While(Struct, frozen=True):
    """`while` or `until`."""

    condition: Block
    body: Block
    until: bool
    start: int


class Case(Struct, frozen=True):
    """`case subject in` with its patterns, bodies and what ends them (`;;`, `;&`, `;;&`)."""

    subject: Word
    items: tuple[tuple[tuple[Word, ...], Block, bytes], ...]
    start: int


class Function(Struct, frozen=True):
    """A function's name and body."""

    name: bytes
    body: Block
    start: int


class Group(Struct, frozen=True):
    """`{ … }`, or `( … )` where `subshell`."""

    body: Block
    subshell: bool
    start: int


class Pipeline(Struct, frozen=True):
    """Commands joined by `|`."""

    elements: Block
    start: int


class Chain(Struct, frozen=True):
    """`left && right` or `left || right`."""

    left: Statement
    operator: bytes
    right: Statement
    start: int


class Negation(Struct, frozen=True):
    """`! statement`."""

    body: Statement
    start: int


class Test(Struct, frozen=True):
    """`[[ … ]]` (`double`) or `(( … ))`: the bytes between the brackets."""

    body: tuple[int, int]
    double: bool
    start: int


Statement = Simple | If | For | While | Case | Function | Group | Pipeline | Chain | Negation | Test
Block = tuple[Statement, ...]


def is_shell(statement: Statement) -> bool:
    """`bash` or `sh` without a script: it runs what it reads."""
    if not isinstance(statement, Simple) or statement.redirects:
        return False
    words = [word.literal() if isinstance(word, Word) else None for word in statement.words]
    return words[:1] in ([b"bash"], [b"sh"]) and words[1:] in ([], [b"-s"])


def is_test(statement: Statement) -> bool:
    """`[[ … ]]`, `[ … ]` or `test …`."""
    if isinstance(statement, Test):
        return statement.double
    if not isinstance(statement, Simple) or not statement.words:
        return False
    head = statement.words[0]
    return isinstance(head, Word) and head.literal() in (b"[", b"test")
