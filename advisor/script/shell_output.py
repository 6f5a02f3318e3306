"""What a few harmless commands would print: `echo`, `printf`, `expr`, `seq`, `basename`, and filters of a pipeline."""

from __future__ import annotations

import posixpath
import re

from advisor.script import shell_arithmetic
from advisor.script.shell_command import Simple
from advisor.script.shell_expand import Expander
from advisor.script.shell_state import Field
from advisor.script.shell_text import Piece, Pieces, Place, joined, known, sources, unknown, why_unknown
from advisor.script.shell_trace import heredoc
from advisor.script.shell_tree import Statement
from advisor.script.shell_words import Word

_MAX_SEQUENCE = 1000


def printed(fields: list[Field]) -> list[Piece]:
    arguments = list(fields[1:])
    if joined(fields[0].pieces) == b"printf":
        return _printf(arguments)
    newline = True
    while arguments and re.fullmatch(rb"-[neE]+", joined(arguments[0].pieces)):
        newline = newline and b"n" not in joined(arguments[0].pieces)
        arguments.pop(0)
    out: list[Piece] = []
    for index, item in enumerate(arguments):
        out += [Piece(b" ")] if index else []
        out += item.pieces
    return [*out, Piece(b"\n")] if newline else out


def _printf(arguments: list[Field]) -> list[Piece]:
    deps = sources(p for item in arguments for p in item.pieces)
    if not arguments or not all(known(item.pieces) for item in arguments):
        return [unknown("the output of printf", deps)]
    pattern = joined(arguments[0].pieces)
    values = [joined(item.pieces) for item in arguments[1:]]
    if not re.fullmatch(rb"(?:[^%\\]|%s|%d|%%|\\n|\\t)*", pattern) or pattern.count(b"%") - 2 * pattern.count(
        b"%%"
    ) != len(values):
        return [unknown("the output of printf", deps)]
    remaining = iter(values)

    def fill(found: re.Match[bytes]) -> bytes:
        return {b"%%": b"%", b"\\n": b"\n", b"\\t": b"\t"}.get(found.group()) or next(remaining, b"")

    return [Piece(re.sub(rb"%%|%s|%d|\\n|\\t", fill, pattern), None, deps)]


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
    if not known(pieces):
        return [unknown(why_unknown(pieces), deps)]
    if name == b"expr":
        return _expr(texts[1:], expander, deps)
    if name == b"seq" and 1 < len(texts) < 5 and all(re.fullmatch(rb"-?\d{1,7}", text) for text in texts[1:]):
        return _seq([int(text) for text in texts[1:]], deps)
    return None


def _path_output(name: bytes, fields: tuple[Field, ...], deps: tuple[Place, ...]) -> list[Piece] | None:
    path = joined(fields[1].pieces)
    if name == b"dirname":
        result = posixpath.dirname(path.rstrip(b"/") or path) or b"."
    else:
        result = posixpath.basename(path.rstrip(b"/"))
        suffix = joined(fields[2].pieces) if len(fields) > 2 else b""
        if suffix and result.endswith(suffix) and result != suffix:
            result = result[: -len(suffix)]
    places = sources(p for item in fields[1:] for p in item.pieces)
    reason = why_unknown(fields[1].pieces)
    return [unknown(reason, places, result)] if reason else [Piece(result, None, places)]


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
    result = _filter(arguments, text)
    return None if result is None else (Piece(result, None, deps),)


def _filter(arguments: list[bytes], text: bytes) -> bytes | None:
    match arguments:
        case [b"tr", b"-d", characters] if b"-" not in characters and b"[" not in characters:
            return text.translate(None, characters.replace(b"\\n", b"\n"))
        case [b"tr", old, new] if len(old) == len(new) == 1:
            return text.replace(old, new)
        case [b"tr", (b"A-Z" | b"[:upper:]"), (b"a-z" | b"[:lower:]")]:
            return text.lower()
        case [b"tr", (b"a-z" | b"[:lower:]"), (b"A-Z" | b"[:upper:]")]:
            return text.upper()
        case [b"wc", b"-w"]:
            return b"%d\n" % len(text.split())
        case [b"wc", b"-l"]:
            return b"%d\n" % text.count(b"\n")
        case [b"cut", *options]:
            return _cut(b" ".join(options), text)
        case [b"cat"] | [b"xargs"]:
            return text
    return None


def _cut(options: bytes, text: bytes) -> bytes | None:
    found = re.fullmatch(rb"-d ?(.) -f ?(\d)|-f ?(\d) -d ?(.)", options)
    if not found:
        return None
    delimiter, number = found.group(1) or found.group(4), int(found.group(2) or found.group(3))
    lines = text.rstrip(b"\n").split(b"\n")
    parts = [line.split(delimiter) for line in lines]
    kept = [p[0] if len(p) == 1 else (p[number - 1] if number <= len(p) else b"") for p in parts]
    return b"\n".join(kept) + b"\n"
