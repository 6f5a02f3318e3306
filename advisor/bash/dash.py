"""Says what dash, which is `sh` on Debian and Ubuntu, does otherwise than bash: what it has not, and where it ends."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from advisor.bash.state import CommandWord, ShellState
from advisor.bash.syntax import Rejected, Statement
from advisor.bash.text import Text, line_at, line_starts
from advisor.bash.tree import own_to_bash
from advisor.bash.words import Parameter
from advisor.language import say
from advisor.regex import regex

SHEBANG = regex(rb"#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?)?(?:da)?sh\b")
"""The first line of a file that `sh` runs."""
SH = (b"sh", b"dash")
"""The names of that shell."""
_SHELLS = (b"bash", b"sh", b"dash", b"zsh", b"ksh")
ABSENT = frozenset(
    b"source declare typeset shopt let mapfile readarray pushd popd dirs builtin disown enable complete compopt "
    b"compgen caller bind help logout suspend coproc".split()
)
"""Builtins of bash that it takes for programs, and does not find: the script goes on without them."""
_OPTIONS = {
    b"export": regex(rb"-.*[fn].*"), b"readonly": regex(rb"-.*[faA].*"), b"local": regex(rb"-.*"),
    b"set": regex(rb"[-+]?o?pipefail"),
}  # fmt: skip
"""Special builtins and the options at which they end the script."""
_REFUSED = {b"read": regex(rb"-[^rp]*[adntusNie].*"), b"printf": regex(rb"-v"), b"wait": regex(rb"-[nfp]")}
"""Builtins and the options at which they fail and do nothing."""
_SIGNALS = (b"ERR", b"DEBUG", b"RETURN")
_OPERATORS = frozenset((b":", b"/", b"//", b"^", b"^^", b",", b",,", b"@"))
_SUM = regex(rb"\*\*|[\w)]\s*(?:\+\+|--)")
_TESTS = (b"==", b"=~")


class Ends(Exception):  # noqa: N818  (an end of the script, not a failure of ours)
    """The shell leaves the script at byte `at` of a text."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__(start)
        self.start = start
        self.end = end


def told(text: Text, start: int, end: int) -> str:
    """Why nothing runs from here on, and what to do about it."""
    what = text.data[start:end].partition(b"\n")[0].decode("utf-8", "replace")[:40]
    line = 0 if text.nested else line_at(line_starts(text.data), start)
    return say(
        "`sh` ends at what only bash knows (line {line}: {what}) where it is dash, as on Debian and Ubuntu: begin the "
        "file with #!/bin/bash and run it by bash.",
        line=line,
        what=what,
    )


def accepted(statements: Iterable[Statement], data: bytes, state: ShellState) -> Iterable[Statement]:
    """The statements of a text up to the line that the shell which runs it cannot parse."""
    found = own_to_bash(data) if state.dash else None
    line = len(data) if found is None else data.rfind(b"\n", 0, found[0]) + 1
    for statement in statements:
        if found is not None and statement.start >= line:
            yield Rejected(*found[1:])
            return
        yield statement


def answer(name: bytes, texts: list[bytes]) -> bool | None:
    """How a builtin fails that dash does not have, or not with these words; None where it does as bash does. Raises
    Ends where it takes the script with it."""
    if name in ABSENT:
        return False
    if name in _OPTIONS and any(_OPTIONS[name].fullmatch(text) for text in texts):
        raise Ends(0, 0)
    if name == b"." and texts and b"/" not in texts[0]:  # it looks in $PATH alone
        raise Ends(0, 0)
    if name == b"trap" and texts[1:] and all(text in _SIGNALS for text in texts[1:]):
        return False
    return False if name in _REFUSED and any(_REFUSED[name].fullmatch(text) for text in texts) else None


def refuses_test(texts: list[bytes]) -> bool:
    """Whether `[` gives up at an operator that it does not know: it fails, whatever the words are."""
    return len(texts) > 1 and (any(text in _TESTS for text in texts[1:]) or b"-v" in texts[:2])


def check(part: Parameter) -> None:
    """Raises Ends at an expansion that is a bad substitution to it."""
    if part.index is not None or part.indirect or part.operator in _OPERATORS:
        raise Ends(part.start, part.end)


def sums(expression: bytes) -> bool | None:
    """Whether it computes as bash does; None where it would compute something else."""
    return False if _SUM.search(expression) else None if re.search(rb"\+\+|--|,", expression) else True


def shell_of(fields: Sequence[CommandWord]) -> bytes:
    """The shell that a command line names, the last one where it names several; empty where it names none."""
    names = [posixpath.basename(item.text) for item in fields]
    return next((name for name in reversed(names) if name in _SHELLS), b"")
