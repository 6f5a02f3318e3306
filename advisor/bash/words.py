"""Splits text into words as bash does: literals, quotes and expansions, each with its byte range."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from advisor.bash.text import Context
from advisor.language import mark
from advisor.regex import regex

_PLAIN = regex(rb"(?:[^ \t\r\n\\'\"$`;&|<>()]|\r(?!\n))+")
_BLANK = regex(rb"(?:[ \t]|\\\r?\n|\\\Z|\r(?=\n))+")
_SPECIAL = regex(rb"\d+|[@*#?$!_-]")
_NAME = regex(rb"[A-Za-z_][A-Za-z0-9_]*")
_IN_DOUBLE = regex(rb"[^\"\\$`]+")
_ANSI_END = regex(rb"(?:[^'\\]|\\.)*'", re.DOTALL)
_SKIP = regex(rb"[^\\'\"$`{}()#\n]+")
_BRACKET = regex(rb"[\[\]]")
_OPERATOR = regex(rb":[-=?+]|[-=?+]|##?|%%?|//?|\^\^?|,,?|:|@")
_IN_BODY = regex(rb"[^\\$`\"']+")
_ESCAPED = {"heredoc": b"$`\\", "double": b'$`"}\\'}
"""What a backslash takes the meaning from, by where it stands."""
_MAX_DEPTH = 60
_MOST_PARTS = 20_000
"""Parts of one word; a launch command as a whole has a few hundred."""


class Unterminated(Exception):  # noqa: N818  (a syntax state, not a failure of ours)
    """A quote or bracket that opens at byte `at` and is never closed."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.what = what
        self.at = at


class Exhausted(Exception):  # noqa: N818  (a bound, not a failure)
    """The script asks for more work than reading it is worth."""


class Literal(Struct, frozen=True):
    """Bytes that stand for themselves. `start:end` is what stands in the text (an escape is longer than its `text`)."""

    text: bytes
    start: int
    end: int
    context: Context

    @property
    def quoted(self) -> bool:
        """Safe from splitting and patterns; an escaped character counts."""
        return self.context not in ("plain", "brace") or self.end - self.start != len(self.text)


class Parameter(Struct, frozen=True):
    """`$name` or `${name[index]op argument}`; the argument is bytes `argument[0]:argument[1]`, read when needed."""

    name: bytes
    start: int
    end: int
    quoted: bool
    operator: bytes = b""
    argument: tuple[int, int] = (0, 0)
    index: tuple[int, int] | None = None
    length: bool = False
    indirect: bool = False


class Substitution(Struct, frozen=True):
    """`$( … )`, backticks, or `<( … )`: `body[0]:body[1]` is shell text."""

    body: tuple[int, int]
    start: int
    end: int
    quoted: bool


class ArithmeticPart(Struct, frozen=True):
    """`$(( … ))`: `body[0]:body[1]` is the expression."""

    body: tuple[int, int]
    start: int
    end: int
    quoted: bool


WordPart = Literal | Parameter | Substitution | ArithmeticPart


class Word(Struct, frozen=True):
    """One word of a command: bytes `start:end` and its parts."""

    start: int
    end: int
    parts: tuple[WordPart, ...]

    def literal(self) -> bytes | None:
        """Its text where no expansion is in it."""
        if len(self.parts) == 1:
            only = self.parts[0]
            return only.text if isinstance(only, Literal) else None
        if all(isinstance(part, Literal) for part in self.parts):
            return b"".join(part.text for part in self.parts if isinstance(part, Literal))
        return None


def skip_blanks(data: bytes, at: int) -> int:
    """Past blanks and line continuations."""
    found = _BLANK.match(data, at)
    return found.end() if found else at


def scan_word(data: bytes, at: int, stop: bytes = b"") -> Word:
    """The word that starts at byte `at`. `stop` are operator bytes that belong to it here (parentheses in `[[ =~ ]]`).
    Raises Unterminated for a quote or bracket that never closes, Exhausted for a word of too many parts."""
    parts: list[WordPart] = []
    start, size = at, len(data)
    while at < size:
        if len(parts) > _MOST_PARTS:
            raise Exhausted
        plain = _PLAIN.match(data, at)
        if plain:
            parts.append(Literal(plain.group(), at, plain.end(), "plain"))
            at = plain.end()
            continue
        byte = data[at : at + 1]
        if byte == b"\\":
            if data.startswith((b"\\\n", b"\\\r\n"), at):
                at += 2 if data[at + 1 : at + 2] == b"\n" else 3
                continue
            if at + 1 == size:  # bash drops a backslash that the file ends with
                break
            parts.append(Literal(data[at + 1 : at + 2], at, at + 2, "plain"))
            at += 2
        elif byte == b"'":
            at = _single(data, at, parts)
        elif byte == b'"':
            at = _double(data, at, parts)
        elif byte in b"$`":
            at = _dollar(data, at, parts, quoted=False)
        elif byte in stop:
            parts.append(Literal(byte, at, at + 1, "plain"))
            at += 1
        elif byte in b"<>" and data[at + 1 : at + 2] == b"(" and not parts:
            end = closing(data, at + 1)
            parts.append(Substitution((at + 2, end - 1), at, end, quoted=True))
            at = end
        else:
            break
    return Word(start, at, tuple(parts))


def scan_quoted(data: bytes, start: int, end: int, context: Context) -> tuple[WordPart, ...]:
    """The parts of a heredoc body, or of the argument of `${name:-argument}`."""
    region = data[start:end]
    parts: list[WordPart] = []
    at = 0
    while at < len(region):
        if len(parts) > _MOST_PARTS:
            raise Exhausted
        byte = region[at : at + 1]
        following = region[at + 1 : at + 2]
        kept = following in b"\r\n" if context == "brace" else following not in _ESCAPED.get(context, b"")
        if byte == b"\\" and following and not kept:
            parts.append(Literal(following, at, at + 2, context))
            at += 2
        elif byte == b"\\" and region.startswith((b"\\\n", b"\\\r\n"), at):
            at += 2 if region[at + 1 : at + 2] == b"\n" else 3
        elif byte in b"$`":
            at = _dollar(region, at, parts, quoted=context != "brace")
        elif context == "brace" and byte == b"'":
            at = _single(region, at, parts)
        elif byte == b'"' and context != "heredoc":
            at = _double(region, at, parts)
        else:
            run = _IN_BODY.match(region, at)
            stop = run.end() if run else at + 1
            parts.append(Literal(region[at:stop], at, stop, context))
            at = stop
    return tuple(_shifted(part, start) for part in parts)


def _shifted(part: WordPart, by: int) -> WordPart:
    moved = replace(part, start=part.start + by, end=part.end + by)
    if isinstance(moved, Literal):
        return moved
    if isinstance(moved, Parameter):
        index = None if moved.index is None else (moved.index[0] + by, moved.index[1] + by)
        return replace(moved, argument=(moved.argument[0] + by, moved.argument[1] + by), index=index)
    return replace(moved, body=(moved.body[0] + by, moved.body[1] + by))


def _single(data: bytes, at: int, parts: list[WordPart]) -> int:
    end = data.find(b"'", at + 1)
    if end < 0:
        raise Unterminated(mark("a single quote"), at)
    parts.append(Literal(data[at + 1 : end], at + 1, end, "single"))
    return end + 1


def _double(data: bytes, at: int, parts: list[WordPart]) -> int:
    opening, count = at, len(parts)
    at += 1
    while True:
        run = _IN_DOUBLE.match(data, at)
        if run:
            parts.append(Literal(run.group(), at, run.end(), "double"))
            at = run.end()
        if len(parts) > _MOST_PARTS:
            raise Exhausted
        byte = data[at : at + 1]
        if not byte:
            raise Unterminated(mark("a double quote"), opening)
        if byte == b'"':
            if len(parts) == count:
                parts.append(Literal(b"", at, at, "double"))
            return at + 1
        at = _escape_in_double(data, at, parts) if byte == b"\\" else _dollar(data, at, parts, quoted=True)


def _escape_in_double(data: bytes, at: int, parts: list[WordPart]) -> int:
    following = data[at + 1 : at + 2]
    if following == b"\n":
        return at + 2
    if data.startswith(b"\r\n", at + 1):
        return at + 3
    if following and following in b'$`"\\':
        parts.append(Literal(following, at, at + 2, "double"))
        return at + 2
    parts.append(Literal(b"\\", at, at + 1, "double"))
    return at + 1


def _ansi(data: bytes, at: int, parts: list[WordPart]) -> int:
    found = _ANSI_END.match(data, at + 2)
    if not found:
        raise Unterminated(mark("a single quote"), at + 1)
    body = data[at + 2 : found.end() - 1]
    parts.append(Literal(unescaped(body), at + 2, found.end() - 1, "ansi"))
    return found.end()


def _dollar(data: bytes, at: int, parts: list[WordPart], quoted: bool) -> int:
    if data[at : at + 1] == b"`":
        end = _backtick_end(data, at)
        parts.append(Substitution((at + 1, end - 1), at, end, quoted))
        return end
    following = data[at + 1 : at + 2]
    if following == b"{":
        return _braced(data, at, parts, quoted)
    if following == b"(":
        return _parenthesis(data, at, parts, quoted)
    if following == b"[" and (end := data.find(b"]", at)) > 0:
        parts.append(ArithmeticPart((at + 2, end), at, end + 1, quoted))
        return end + 1
    if following == b"'" and not quoted:
        return _ansi(data, at, parts)
    if following == b'"' and not quoted:
        return _double(data, at + 1, parts)
    name = _NAME.match(data, at + 1)
    if name:
        parts.append(Parameter(name.group(), at, name.end(), quoted))
        return name.end()
    if following and following in b"0123456789@*#?$!-_":
        parts.append(Parameter(following, at, at + 2, quoted))
        return at + 2
    parts.append(Literal(b"$", at, at + 1, "double" if quoted else "plain"))
    return at + 1


def _parenthesis(data: bytes, at: int, parts: list[WordPart], quoted: bool) -> int:
    end = closing(data, at + 1)
    if data.startswith(b"$((", at) and data[end - 2 : end] == b"))" and closing(data, at + 2) == end - 1:
        parts.append(ArithmeticPart((at + 3, end - 2), at, end, quoted))
    else:
        parts.append(Substitution((at + 2, end - 1), at, end, quoted))
    return end


def _bracket(data: bytes, at: int, end: int) -> int:
    """Where the bracket that opens at byte `at` closes; 0 where it does not before `end`."""
    depth = 0
    for found in _BRACKET.finditer(data, at, end):
        depth += 1 if found.group() == b"[" else -1
        if not depth:
            return found.start()
    return 0


def _braced(data: bytes, at: int, parts: list[WordPart], quoted: bool) -> int:
    end = closing(data, at + 1, in_double=quoted)
    cursor, length, indirect = at + 2, False, False
    if data[cursor : cursor + 1] == b"#" and data[cursor + 1 : cursor + 2] not in (b"}", b"-", b":", b""):
        length, cursor = True, cursor + 1
    elif data[cursor : cursor + 1] == b"!":
        indirect, cursor = True, cursor + 1
    name = _NAME.match(data, cursor) or _SPECIAL.match(data, cursor)
    if not name:
        parts.append(Substitution((at, at), at, end, quoted))
        return end
    cursor, index = name.end(), None
    if data[cursor : cursor + 1] == b"[":
        close = _bracket(data, cursor, end)
        if close > 0:
            index, cursor = (cursor + 1, close), close + 1
    operator = _OPERATOR.match(data, cursor, end - 1)
    if operator:
        cursor = operator.end()
    sign, argument = operator.group() if operator else b"", (cursor, end - 1)
    parts.append(Parameter(name.group(), at, end, quoted, sign, argument, index, length, indirect))
    return end


def _backtick_end(data: bytes, at: int) -> int:
    cursor = at + 1
    while True:
        cursor = data.find(b"`", cursor)
        if cursor < 0:
            raise Unterminated(mark("a backtick"), at)
        if data[cursor - 1 : cursor] != b"\\":
            return cursor + 1
        cursor += 1


def closing(data: bytes, at: int, in_double: bool = False, depth: int = 0) -> int:
    """Just past the bracket that closes the one at byte `at`, with quotes and nested brackets respected."""
    opener = data[at : at + 1]
    closer = b"}" if opener == b"{" else b")"
    what = mark("a brace" if opener == b"{" else "a parenthesis")
    if depth > _MAX_DEPTH:
        deep = mark("a brace nested too deeply" if opener == b"{" else "a parenthesis nested too deeply")
        raise Unterminated(deep, at)
    cursor, level = at + 1, 0
    while cursor < len(data):
        run = _SKIP.match(data, cursor)
        if run:
            cursor = run.end()
            continue
        byte = data[cursor : cursor + 1]
        if byte == closer and level == 0:
            return cursor + 1
        if byte == b"\\":
            cursor += 2
        elif byte == b"'" and not in_double:
            quote, cursor = cursor, data.find(b"'", cursor + 1) + 1
            if not cursor:
                raise Unterminated(mark("a single quote"), quote)
        elif byte == b'"':
            cursor = _double_end(data, cursor, depth)
        elif byte == b"`":
            cursor = _backtick_end(data, cursor)
        elif byte == b"$" and data[cursor + 1 : cursor + 2] in (b"{", b"("):
            inner = data[cursor + 1 : cursor + 2] == b"{" and in_double
            cursor = closing(data, cursor + 1, inner, depth + 1)
        elif byte == b"#" and closer == b")" and data[cursor - 1 : cursor] in (b" ", b"\t", b"\n"):
            newline = data.find(b"\n", cursor)
            cursor = len(data) if newline < 0 else newline
        else:
            level += (byte == b"(" and closer == b")") - (byte == b")" and closer == b")")
            cursor += 1
    raise Unterminated(what, at)


def _double_end(data: bytes, at: int, depth: int) -> int:
    cursor = at + 1
    while cursor < len(data):
        run = _IN_DOUBLE.match(data, cursor)
        if run:
            cursor = run.end()
            continue
        byte = data[cursor : cursor + 1]
        if byte == b'"':
            return cursor + 1
        if byte == b"$" and data[cursor + 1 : cursor + 2] in (b"{", b"("):
            cursor = closing(data, cursor + 1, data[cursor + 1 : cursor + 2] == b"{", depth + 1)
        elif byte == b"`":
            cursor = _backtick_end(data, cursor)
        else:
            cursor += 2 if byte == b"\\" else 1
    raise Unterminated(mark("a double quote"), at)


_ESCAPE = regex(
    rb"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|0?([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_LETTERS = {
    b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f",
    b"v": b"\v", b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?",
}  # fmt: skip


def unescaped(body: bytes) -> bytes:
    """Bytes with their backslash escapes carried out; an escape that nobody knows stays as it is."""
    return _ESCAPE.sub(_meant, body)


def _meant(found: re.Match[bytes]) -> bytes:
    code, short, long, octal, control, letter = found.groups()
    if code is not None:
        return bytes([int(code, 16)])
    if short is not None or long is not None:
        point = int(short or long, 16)
        return chr(point).encode("utf-8", "surrogatepass") if point < 0x110000 else found.group()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if control is not None:
        return bytes([control[0] & 0x1F])
    return _LETTERS.get(letter, found.group())
