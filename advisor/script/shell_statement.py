"""The statements of a shell text: what the grammar finds and the followers run."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.script.shell_command import Simple
from advisor.script.shell_words import Word


@dataclass(frozen=True, slots=True)
class If:
    """Branches in order, each with its condition; `otherwise` is the else part."""

    branches: tuple[tuple[Block, Block], ...]
    otherwise: Block
    start: int


@dataclass(frozen=True, slots=True)
class For:
    """`for name in words`; `words` None: over the positional arguments; `header` is set for `for ((a; b; c))`."""

    name: bytes
    words: tuple[Word, ...] | None
    body: Block
    start: int
    header: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class While:
    """`while` or `until`."""

    condition: Block
    body: Block
    until: bool
    start: int


@dataclass(frozen=True, slots=True)
class Case:
    """`case subject in` with its patterns, bodies and what ends them (`;;`, `;&`, `;;&`)."""

    subject: Word
    items: tuple[tuple[tuple[Word, ...], Block, bytes], ...]
    start: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function's name and body."""

    name: bytes
    body: Block
    start: int


@dataclass(frozen=True, slots=True)
class Group:
    """`{ … }`, or `( … )` where `subshell`."""

    body: Block
    subshell: bool
    start: int


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by `|`."""

    elements: Block
    start: int


@dataclass(frozen=True, slots=True)
class Chain:
    """`left && right` or `left || right`."""

    left: Statement
    operator: bytes
    right: Statement
    start: int


@dataclass(frozen=True, slots=True)
class Negation:
    """`! statement`."""

    body: Statement
    start: int


@dataclass(frozen=True, slots=True)
class Test:
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
