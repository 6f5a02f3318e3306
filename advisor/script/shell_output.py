"""What a few harmless commands would print: `echo`, `printf`, `expr`, `seq`, `basename`, and filters of a pipeline."""

from __future__ import annotations

import posixpath
import re

from advisor.language import say
from advisor.script import shell_arithmetic
from advisor.script.shell_ansi import unescaped
from advisor.script.shell_command import Simple
from advisor.script.shell_expand import Expander
from advisor.script.shell_filter import filtered_text
from advisor.script.shell_state import Field
from advisor.script.shell_statement import Statement
from advisor.script.shell_text import (
    Piece,
    Pieces,
    Place,
    cut,
    joined,
    known,
    last_component,
    sources,
    unknown,
    why_unknown,
)
from advisor.script.shell_trace import heredoc
from advisor.script.shell_words import Word

_MAX_SEQUENCE = 1000
_FORMAT = re.compile(rb"%([-0+ .\d]*)([sdixfeg%])")


def printed(fields: list[Field]) -> list[Piece]:
    arguments = list(fields[1:])
    if joined(fields[0].pieces) == b"printf":
        return _printf(arguments)
    newline, escapes = True, False
    while arguments and re.fullmatch(rb"-[neE]+", joined(arguments[0].pieces)):
        option = joined(arguments.pop(0).pieces)
        newline, escapes = newline and b"n" not in option, b"e" in option
    out: list[Piece] = []
    for index, item in enumerate(arguments):
        out += [Piece(b" ")] if index else []
        out += item.pieces
    if escapes and any(b"\\" in piece.text for piece in out):
        why, text = why_unknown(out), unescaped(joined(out))
        out = [unknown(why, sources(out)) if why else Piece(text, None, sources(out))]
    return [*out, Piece(b"\n")] if newline else out


def _printf(arguments: list[Field]) -> list[Piece]:
    deps = sources(p for item in arguments for p in item.pieces)
    if not arguments or not all(known(item.pieces) for item in arguments):
        return [unknown(say("the output of printf"), deps)]
    result = _formatted(joined(arguments[0].pieces), [joined(item.pieces) for item in arguments[1:]])
    return [unknown(say("the output of printf"), deps) if result is None else Piece(result, None, deps)]


def _formatted(pattern: bytes, values: list[bytes]) -> bytes | None:
    """The pattern, used again as long as there are values; None where it holds what is not followed."""
    pattern = unescaped(pattern)
    if _FORMAT.sub(b"", pattern).count(b"%"):
        return None
    takes = sum(found.group(2) != b"%" for found in _FORMAT.finditer(pattern))
    left = list(values)
    out = b""
    try:
        for _ in range(min(max(1, -(-len(values) // takes) if takes else 1), _MAX_SEQUENCE)):
            out += _FORMAT.sub(lambda found: _converted(found, left), pattern)
    except (ValueError, OverflowError):
        return None
    return out


def _converted(found: re.Match[bytes], left: list[bytes]) -> bytes:
    """One conversion with the value that is its turn. Raises ValueError where the value is no number."""
    flags, kind = found.group(1), found.group(2)
    if kind == b"%":
        return b"%"
    value = left.pop(0) if left else b""
    width = re.fullmatch(rb"[-0+ ]*(\d{0,3})(?:\.\d{0,3})?", flags)
    if width is None:
        raise ValueError(flags)
    if kind == b"s":
        return (b"%" + flags + b"s") % (value,)
    if kind in b"dix":
        if value and not re.fullmatch(rb"-?(?:0x[0-9a-fA-F]+|[1-9]\d*|0)", value):
            raise ValueError(value)
        number = int(value or b"0", 0)
        return (b"%" + flags + kind) % number
    return (b"%" + flags + kind) % float(value or b"0")


def output(fields: tuple[Field, ...], command: Simple, expander: Expander) -> list[Piece] | None:
    """What a command without side effects would print; None where that cannot be known."""
    texts = [joined(item.pieces) for item in fields]
    pieces = tuple(p for item in fields[1:] for p in item.pieces)
    name, deps = texts[0], sources(pieces)
    if name == b"cat" and len(texts) == 1:
        body = heredoc(command, expander)
        return None if body is None else list(body)
    if name in (b"basename", b"dirname") and len(texts) > 1:
        return _path_output(name, fields, deps)
    if name in (b"expr", b"seq") and not known(pieces):
        return [unknown(why_unknown(pieces), deps)]
    if name == b"expr":
        return _expr(texts[1:], expander, deps)
    if name == b"seq" and 1 < len(texts) < 5 and all(re.fullmatch(rb"-?\d{1,7}", text) for text in texts[1:]):
        return _seq([int(text) for text in texts[1:]], deps)
    return None


def _path_output(name: bytes, fields: tuple[Field, ...], deps: tuple[Place, ...]) -> list[Piece] | None:
    pieces = fields[1].pieces
    reason = why_unknown(pieces)
    places = sources(p for item in fields[1:] for p in item.pieces)
    if name == b"dirname":
        path = joined(pieces)
        result = posixpath.dirname(path.rstrip(b"/") or path) or b"."
        if reason and b"/" in pieces[-1].text.strip(b"/") and not pieces[-1].reason:
            return list(cut(pieces, 0, len(result)))
        return [unknown(reason, places, result)] if reason else [Piece(result, None, places)]
    last = last_component(pieces) if reason and not joined(pieces).endswith(b"/") else None
    result = posixpath.basename(joined(pieces if last is None else last).rstrip(b"/"))
    suffix = joined(fields[2].pieces) if len(fields) > 2 else b""
    if suffix and result.endswith(suffix) and result != suffix:
        result = result[: -len(suffix)]
    return [unknown(reason, places, result)] if reason and last is None else [Piece(result, None, places)]


def _expr(texts: list[bytes], expander: Expander, deps: tuple[Place, ...]) -> list[Piece] | None:
    if not all(re.fullmatch(rb"-?\d+|[-+*/%()]|[<>]=?|=|!=", text) for text in texts) or len(texts) < 3:
        return None
    expression = b" ".join(b"==" if text == b"=" else text for text in texts)
    try:
        value = shell_arithmetic.evaluate(expression, expander.integer([]), expander.store)
    except shell_arithmetic.Undecided:
        return None
    return [Piece(b"%d" % value, None, deps)]


def _seq(numbers: list[int], deps: tuple[Place, ...]) -> list[Piece] | None:
    first, step, last = (1, 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1, numbers[1])
    if len(numbers) == 3:
        first, step, last = numbers
    if step == 0 or abs(last - first) // abs(step) > _MAX_SEQUENCE:
        return None
    values = range(first, last + (1 if step > 0 else -1), step)
    return [Piece(b"\n".join(b"%d" % value for value in values), None, deps)]


def filtered(element: Statement, fed: Pieces, expander: Expander) -> Pieces | None:
    """What a filter of a pipeline (`tr`, `cut`, `wc`) makes of its input; None where that cannot be known."""
    if not isinstance(element, Simple) or not element.words or not known(fed):
        return None
    words = [word.literal() if isinstance(word, Word) else None for word in element.words]
    arguments = [word for word in words if word is not None]
    if len(arguments) != len(words):
        return None
    text, deps = joined(fed), sources(fed)
    result = filtered_text(arguments, text)
    return None if result is None else (Piece(result, None, deps),)
