"""Defines the statements of bash and scans simple commands: assignments, words, redirections, what ends them."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from advisor.bash.words import Exhausted, Unterminated, Word, scan_word, skip_blanks
from advisor.language import mark
from advisor.regex import regex

_ASSIGNMENT = regex(rb"([A-Za-z_][A-Za-z0-9_]*)(?:\[([^\]\n]*)\])?(\+?)=")
_REDIRECT = regex(rb"(?:\d+|\{\w+\})?(?:<<<|<<-?|&>>?|<&|>&|>>|>\||<>|<(?!\()|>(?!\())")
_END = regex(rb"\n|;;&?|;&|;|\|\||\||&&|&(?!>)|\)")
_MOST_WORDS = 20_000
"""Words of one command, or of one array."""
_DECLARES = {b"export", b"declare", b"typeset", b"local", b"readonly"}


class Assignment(Struct, frozen=True):
    """`name=value`, `name+=value`, `name[index]=value` or `name=( … )` (then `elements`)."""

    name: bytes
    start: int
    end: int
    value: Word
    append: bool = False
    elements: tuple[Word, ...] | None = None
    index: bytes | None = None


class Redirect(Struct, frozen=True):
    """A redirection; a heredoc has the byte range of its `body`, and `expands` unless its delimiter is quoted."""

    operator: bytes
    target: Word
    start: int
    body: tuple[int, int] | None = None
    expands: bool = True


class Simple(Struct, frozen=True):
    """One command. `end` is where its text ends, `resume` where the next one may begin. `last` is the end of its last
    word; `comment` the byte where a comment ended it."""

    start: int
    end: int
    resume: int
    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]
    redirects: tuple[Redirect, ...]
    last: int
    comment: int | None = None
    operator: bytes = b""


def scan_command(data: bytes, at: int) -> Simple:
    """The simple command that starts at byte `at`. Raises Unterminated for a quote or bracket that never closes,
    Exhausted for a command of too many words."""
    start = at
    assignments: list[Assignment] = []
    words: list[Word | Assignment] = []
    redirects: list[Redirect] = []
    comment: int | None = None
    last = at
    while True:
        at = skip_blanks(data, at)
        if data[at : at + 1] == b"#":
            comment = at
            at = _line_end(data, at)
        redirect = _REDIRECT.match(data, at)
        if redirect:
            at = _redirect(data, redirect, redirects)
            continue
        ending = _END.match(data, at)
        if ending or at >= len(data):
            break
        assignment = _assignment(data, at, words)
        if assignment is not None and not words:
            assignments.append(assignment)
            at = last = assignment.end
            continue
        word: Word | Assignment = assignment or scan_word(data, at)
        if word.end == at:  # an operator byte that begins no command: leave it to whoever reads on
            at += 1
            break
        words.append(word)
        at = last = word.end
        if len(words) > _MOST_WORDS:
            raise Exhausted
    operator = b"" if at >= len(data) or not (found := _END.match(data, at)) else found.group()
    end, resume = max(at, start + 1), max(at + len(operator), start + 1)
    parts = (tuple(assignments), tuple(words), tuple(redirects))
    return Simple(start, end, resume, *parts, last, comment, operator)


def _assignment(data: bytes, at: int, words: list[Word | Assignment]) -> Assignment | None:
    """The assignment at byte `at`: before the command's name, or an argument of `export` and its like."""
    if words:
        head = words[0]
        if not isinstance(head, Word) or head.literal() not in _DECLARES:
            return None
    found = _ASSIGNMENT.match(data, at)
    if not found:
        return None
    append = bool(found.group(3))
    if data[found.end() : found.end() + 1] == b"(":
        elements, end = _elements(data, found.end())
        value = Word(found.end(), end, ())
        return Assignment(found.group(1), at, end, value, append, elements, found.group(2))
    value = scan_word(data, found.end())
    return Assignment(found.group(1), at, max(value.end, found.end()), value, append, None, found.group(2))


def _elements(data: bytes, at: int) -> tuple[tuple[Word, ...], int]:
    """The words of an array `( … )` that opens at byte `at`, and where it ends."""
    opening, at = at, at + 1
    words: list[Word] = []
    while at < len(data):
        at = skip_blanks(data, at)
        byte = data[at : at + 1]
        if byte == b"#":
            at = _line_end(data, at)
        elif byte == b"\n":
            at += 1
        elif byte == b")":
            return tuple(words), at + 1
        else:
            word = scan_word(data, at)
            if word.end == at:
                at += 1
                continue
            words.append(word)
            at = word.end
            if len(words) > _MOST_WORDS:
                raise Exhausted
    raise Unterminated(mark("a parenthesis"), opening)


def _redirect(data: bytes, found: re.Match[bytes], redirects: list[Redirect]) -> int:
    operator = found.group().lstrip(b"0123456789")
    at = skip_blanks(data, found.end())
    target = scan_word(data, at)
    if operator in (b"<<", b"<<-"):
        raw = data[target.start : target.end]
        delimiter = re.sub(rb"[\\'\"]", b"", raw)
        previous = max((r.body[1] for r in redirects if r.body), default=0)
        body = heredoc_body(data, max(target.end, previous), delimiter, operator == b"<<-", first=not previous)
        redirects.append(Redirect(operator, target, found.start(), body, raw == delimiter))
    else:
        redirects.append(Redirect(operator, target, found.start()))
    return max(target.end, found.end())


def heredoc_body(data: bytes, at: int, delimiter: bytes, tabs: bool, first: bool = True) -> tuple[int, int]:
    """Byte range of the heredoc body that begins on the line after byte `at`; to the end where no delimiter comes."""
    start = _end_of_logical_line(data, at) + 1 if first else _line_end(data, at) + 1
    cursor = start
    while cursor < len(data):
        end = _line_end(data, cursor)
        line = data[cursor:end].rstrip(b"\r")
        if (line.lstrip(b"\t") if tabs else line) == delimiter:
            return start, cursor
        cursor = end + 1
    return min(start, len(data)), len(data)


def _end_of_logical_line(data: bytes, at: int) -> int:
    """The newline that ends the line with byte `at`, past quotes and continuations."""
    while at < len(data) and data[at : at + 1] != b"\n":
        at = skip_blanks(data, at)
        if data[at : at + 1] in (b"\n", b""):
            break
        if data[at : at + 1] == b"#":
            return _line_end(data, at)
        word = scan_word(data, at)
        at = max(word.end, at + 1)
    return at


def _line_end(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end


def scan_words(data: bytes, at: int, between: bytes = b"", end: int | None = None) -> Iterator[Word]:
    """Words from byte `at` up to the end of the command; operators in `between` are passed over, not ends."""
    limit = len(data) if end is None else end
    while True:
        at = skip_blanks(data, at)
        if at >= limit:
            return
        byte = data[at : at + 1]
        if (byte and byte in between) or (byte == b"(" and between):
            at += 1
            continue
        if byte in b"\n;&|)#":
            return
        word = scan_word(data, at)
        if word.end == at:
            return
        yield word
        at = word.end


def check_balance(data: bytes) -> None:
    """Raises Unterminated where a quote or bracket of the text never closes. Reads commands flatly, without grammar."""
    at = 0
    while at < len(data):
        command = scan_command(data, at)
        bodies = [redirect.body[1] for redirect in command.redirects if redirect.body]
        at = _line_end(data, max(bodies)) + 1 if bodies else command.resume


class If(Struct, frozen=True):
    """Branches in order, each with its condition; `otherwise` is the else part."""

    branches: tuple[tuple[Statements, Statements], ...]
    otherwise: Statements
    start: int


class For(Struct, frozen=True):
    """`for name in words`; `words` None: over the positional arguments; `header` is set for `for ((a; b; c))`."""

    name: bytes
    words: tuple[Word, ...] | None
    body: Statements
    start: int
    end: int
    header: tuple[int, int] | None = None


class While(Struct, frozen=True):
    """`while` or `until`."""

    condition: Statements
    body: Statements
    until: bool
    start: int
    end: int


class CaseStatement(Struct, frozen=True):
    """`case subject in` with its patterns, bodies and what ends them (`;;`, `;&`, `;;&`)."""

    subject: Word
    items: tuple[tuple[tuple[Word, ...], Statements, bytes], ...]
    start: int


class Function(Struct, frozen=True):
    """A function's name and body."""

    name: bytes
    body: Statements
    start: int


class CommandGroup(Struct, frozen=True):
    """`{ … }`, or `( … )` where `subshell`."""

    body: Statements
    subshell: bool
    start: int


class Pipeline(Struct, frozen=True):
    """Commands joined by `|`."""

    elements: Statements
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


class Rejected(Struct, frozen=True):
    """Bytes `start:end`, which the shell that runs them cannot parse: it leaves the script before their line."""

    start: int
    end: int


Statement = (
    Rejected | Simple | If | For | While | CaseStatement | Function | CommandGroup | Pipeline | Chain | Negation | Test
)
Statements = tuple[Statement, ...]


def shell_word(statement: Statement) -> bytes:
    """`bash` or `sh` without a script, which runs what it reads, or a scheduler that runs the lines that it reads
    (ExpectationMax/simple_gpu_scheduler README.md: by the login shell); empty where it is something else."""
    if not isinstance(statement, Simple) or any(b"<" in one.operator for one in statement.redirects):
        return b""
    words = [word.literal() if isinstance(word, Word) else None for word in statement.words]
    if words[:1] == [b"simple_gpu_scheduler"]:
        return b"bash"
    words = words[:-1] if words[1:] and words[-1] == b"-s" else words
    last = posixpath.basename(words[-1] or b"") if words[:-1] == [] or words[0] in _PASS_ON else b""
    return last if last in (b"bash", b"sh") else b""


_PASS_ON = (b"kubectl", b"docker", b"podman", b"ssh", b"sudo", b"srun")
"""Commands that hand what they read to the command that they run."""


def is_test(statement: Statement) -> bool:
    """`[[ … ]]`, `[ … ]` or `test …`."""
    if isinstance(statement, Test):
        return statement.double
    if not isinstance(statement, Simple) or not statement.words:
        return False
    head = statement.words[0]
    return isinstance(head, Word) and head.literal() in (b"[", b"test")


LONGEST_READ = 1_000_000
"""Bytes that are searched for names the script sets."""
_PREFIX = regex(rb"^[ \t]*((?:[A-Za-z_]\w*=[^\s$(`]*[ \t]+)+)[\w./~-]+(?:[ \t]|$)", re.MULTILINE)
"""What stands before a command and is set for it alone."""
_COMMENT_LINE = regex(rb"^[ \t]*#.*$", re.MULTILINE)
_QUOTED = regex(rb"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_OWN_PATH = regex(rb"\$\{?(?:0|BASH_SOURCE)\b")
_RELATIVE = regex(rb"(?<![\w./$}~-])([\w-][\w.-]*)/[\w./-]+\.(?:py|sh)\b")
_ASSIGNED = regex(
    rb"(?:^|[\s;(])(?:(?:export|local|declare|readonly)\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)(?:\[[^\]\n=]*\])?\+?=",
    re.MULTILINE,
)


_COUNTED = regex(rb"\b([A-Za-z_]\w*)[ \t]*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)=)")
_READ = regex(rb"(?:^|[\s;&|])(?:read|mapfile|readarray)[ \t]([^\n;|&<]*)", re.MULTILINE)


def set_in_rounds(loop: bytes) -> frozenset[bytes]:
    """Names that the text of a loop may set in every round: it assigns, counts or reads them."""
    read = (name for words in _READ.findall(loop) for name in re.findall(rb"\w+", words))
    return assigned_names(loop) | {*_COUNTED.findall(loop), *read}


@lru_cache(maxsize=16)
def assigned_names(data: bytes) -> frozenset[bytes]:
    """Every name that a text sets anywhere for what comes behind: not those that it gives to one command alone."""
    text = _QUOTED.sub(b"", _COMMENT_LINE.sub(b"", data[:LONGEST_READ]))
    given = Counter(name for prefix in _PREFIX.findall(text) for name in _ASSIGNED.findall(prefix))
    return frozenset((Counter(_ASSIGNED.findall(text)) - given).keys())


def known_end(script: bytes, data: bytes) -> bytes:
    """The end of `$0` that is the same however a script is started: its name, with its folder where it runs files by
    paths that begin with a folder above it (`examples/train.py` in examples/small/run.sh), so that it is not started
    from its own folder."""
    *above, folder, name = os.path.abspath(script).split(b"/")
    named = set(_RELATIVE.findall(data)) if b"$" in data and _OWN_PATH.search(data) else set()
    return folder + b"/" + name if folder and named & {*above, folder} else name
