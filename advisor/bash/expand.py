"""Expands words to arguments: parameters, commands, arithmetic, braces, word splitting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise

from msgspec.structs import replace

from advisor.bash.parameters import SEPARATORS, Parameters
from advisor.bash.state import CommandWord, ShellState, Variable
from advisor.bash.syntax import Simple
from advisor.bash.text import HOLE, ByteRange, Piece, ShellValue, Text, cut, joined, nested_text, sources, unknown
from advisor.bash.words import ArithmeticPart, Exhausted, Literal, Parameter, Substitution, Word, WordPart, scan_quoted
from advisor.language import say
from advisor.regex import regex

_ESCAPED_IN_BACKTICKS = regex(rb"\\([`$\\])")
MOST_FIELDS = 20_000
"""Arguments of one command, elements of one array, or pieces of one value."""
_KEYED = regex(rb"\[([^\]]+)\](\+?)=")
"""An element of `( … )` with its key."""
_HOLE = regex(HOLE + rb"(\d+)\x02")
_NOT_BLANK = regex(rb"[^ \t\n]+")
_PLAIN = regex(rb"[^~{\x01*?\[]+")
"""Text that nothing is expanded in."""
_BRACES = regex(rb"(?<!\$)\{[^{}]*,[^{}]*\}")
_IDENTIFIER = regex(rb"[A-Za-z_]\w*=~(?:/|$)")

Substitute = Callable[[Text, ShellState], ShellValue]
"""Runs the text of a command substitution as far as it can be known."""


class Expander(Parameters):
    """Expands words of one text in one state."""

    def __init__(self, text: Text, state: ShellState, substitute: Substitute) -> None:
        super().__init__(text, state)
        self.substitute = substitute

    def value(self, word: Word) -> ShellValue:
        """A word as the value of an assignment: no splitting, no patterns."""
        pieces = tuple(islice(self.pieces(word.parts), MOST_FIELDS + 1))
        if len(pieces) > MOST_FIELDS:
            raise Exhausted
        return self.tilde(word, pieces)

    def pieces(self, parts: Iterable[WordPart]) -> Iterator[Piece]:
        """All parts as one value."""
        for part in parts:
            if isinstance(part, Literal):
                yield from self.literal(part)
            elif isinstance(part, Parameter) and self.many(part):
                first = True
                for field in self.elements(part):
                    if not first:
                        yield self.between(part)
                    yield from field.pieces
                    first = False
            else:
                yield from self.expansion(part)

    def array(self, words: tuple[Word, ...], old: Variable) -> dict[bytes, CommandWord] | None:
        """The elements of `( … )` behind those of `old`; `[key]=value` sets one by its key. None: a key is unknown."""
        out = dict(old.elements or {})
        following = old.next_index
        for word in words:
            if len(out) > MOST_FIELDS:
                raise Exhausted
            keyed = _KEYED.match(self.text.data[word.start : word.end])
            if keyed is None:
                for item in self.fields(word):
                    out[b"%d" % following] = item
                    following += 1
                continue
            key = self.subscript((word.start + 1, word.start + keyed.end(1)), old)
            if key is None or keyed.group(2):
                return None
            pieces = self.value(word)
            out[key] = CommandWord(cut(pieces, joined(pieces).find(b"]=") + 2))
            following = int(key) + 1 if key.isdigit() else following
        return out

    def fields(self, word: Word) -> list[CommandWord]:
        """A word as the arguments it becomes."""
        home = self.text.place(word.start, word.end, "plain")
        literal = word.literal()
        if literal is not None and len(word.parts) == 1 and _PLAIN.fullmatch(literal):
            return [CommandWord(tuple(self.expansion(word.parts[0])), home)]
        if (
            literal is not None
            and b"{" in literal
            and not self.state.dash
            and not any(p.quoted for p in word.parts if isinstance(p, Literal))
        ):
            expanded = expand_braces(literal)
            if expanded == []:
                return [CommandWord((replace(unknown(say("braces that make too many words")), quoted=False),))]
            if expanded is not None:
                deps = self.text.deps(word.start, word.end)
                return [CommandWord((Piece(text, None, deps),)) for text in expanded]
        if literal is None and not self.state.dash and _has_braces(word):
            why = unknown(say("braces around a variable are not followed"), self.text.deps(word.start, word.end))
            return [CommandWord((replace(why, quoted=False),))]
        out: list[list[Piece]] = []
        open_field = False
        for part in word.parts:
            open_field = self.add_part(part, out, open_field)
            if out and (len(out) > MOST_FIELDS or len(out[-1]) > MOST_FIELDS):
                raise Exhausted
        made = [CommandWord(tuple(pieces), _extent(pieces)) for pieces in out]
        if len(out) == 1:
            made = [CommandWord(self.tilde(word, made[0].pieces), home)]
        return self.array_homes(word, made)

    def array_homes(self, word: Word, made: list[CommandWord]) -> list[CommandWord]:
        """A word that is only `"${A[@]}"` gives each argument the home of its array element."""
        if len(word.parts) == 1 and isinstance(word.parts[0], Parameter) and self.many(word.parts[0]):
            elements = list(self.elements(word.parts[0]))
            if len(elements) == len(made):
                return [CommandWord(field.pieces, element.home) for field, element in zip(made, elements, strict=True)]
        return made

    def add_part(self, part: WordPart, out: list[list[Piece]], open_field: bool) -> bool:
        """Add one part to the arguments; returns whether the last argument may still grow."""
        if isinstance(part, Literal):
            _append(out, open_field, self.literal(part))
            return True
        if isinstance(part, Parameter) and self.many(part):
            return self.add_many(part, out, open_field)
        if isinstance(part, Parameter) and self.is_list(part) and part.operator.lstrip(b":") in (b"-", b"+"):
            return self.add_instead(part, out, open_field)
        pieces = list(self.expansion(part))
        if part.quoted:
            _append(out, open_field, pieces or [Piece(b"")])
            return True
        return self.split(pieces, out, open_field)

    def add_many(self, part: Parameter, out: list[list[Piece]], open_field: bool) -> bool:
        star = self.is_star(part)
        for number, field in enumerate(self.elements(part)):
            if part.quoted and star:
                _append(out, open_field, ([self.between(part)] if number else []) + list(field.pieces))
                open_field = True
            elif part.quoted:
                _append(out, open_field and number == 0, list(field.pieces) or [Piece(b"")])
                open_field = True
            else:
                open_field = self.split(list(field.pieces), out, open_field and number == 0)
        return open_field

    def add_instead(self, part: Parameter, out: list[list[Piece]], open_field: bool) -> bool:
        """`${A[@]+word}` and `${A[@]-word}`: the word, split as it stands, or the list."""
        there = bool(self.elements(replace(part, operator=b"")))
        if there is part.operator.endswith(b"-"):
            return self.add_many(replace(part, operator=b""), out, open_field) if there else open_field
        if part.quoted and part.argument[0] == part.argument[1]:
            _append(out, open_field, [Piece(b"")])
            return True
        for inner in scan_quoted(self.text.data, *part.argument, "double" if part.quoted else "brace"):
            open_field = self.add_part(inner, out, open_field)
        return open_field

    def is_star(self, part: Parameter) -> bool:
        return part.name == b"*" or (part.index is not None and self.raw(part.index) == b"*")

    def between(self, part: Parameter) -> Piece:
        """What stands between the elements of a list that becomes one text."""
        separators = self.separators()
        if not self.is_star(part) or separators == SEPARATORS:
            return Piece(b" ")
        return unknown(say("$IFS is not known")) if separators is None else Piece(separators[:1])

    def split(self, pieces: list[Piece], out: list[list[Piece]], open_field: bool) -> bool:
        """Split an unquoted expansion at blanks, or at what `IFS` says."""
        separators = self.separators()
        if separators != SEPARATORS:
            return self.split_at(separators, pieces, out, open_field)
        for piece in pieces:
            if piece.reason:
                _append(out, open_field, [replace(piece, quoted=False)])
                open_field = True
                continue
            at = 0
            for found in _NOT_BLANK.finditer(piece.text):
                if found.start() > at or (at == 0 and found.start() > 0):
                    open_field = False
                _append(out, open_field, [piece.cut(found.start(), found.end())])
                open_field = True
                at = found.end()
            if at < len(piece.text):
                open_field = False
        return open_field

    def split_at(self, separators: bytes | None, pieces: list[Piece], out: list[list[Piece]], open_field: bool) -> bool:
        """Split at separators of the script's own. Blanks among others are more than is worth following."""
        mixed = separators and separators.strip(SEPARATORS) and separators.translate(None, SEPARATORS) != separators
        if separators is None or mixed:
            _append(out, open_field, [unknown(say("it is split at an $IFS that is not followed"), sources(pieces))])
            return True
        blank = not separators.strip(SEPARATORS)
        for piece in pieces:
            if piece.reason or not separators:
                _append(out, open_field, [replace(piece, quoted=False) if piece.reason else piece])
                open_field = True
                continue
            at = 0
            for end in [i for i, byte in enumerate(piece.text) if byte in separators] + [len(piece.text)]:
                if end > at or (not blank and not open_field and end < len(piece.text)):
                    _append(out, open_field, [piece.cut(at, end)])
                open_field = end == len(piece.text) and (end > at or (open_field and at == 0))
                at = end + 1
        return open_field

    def literal(self, part: Literal) -> list[Piece]:
        if HOLE in part.text:
            return self.holes(part)
        if part.context == "ansi" and self.state.dash:
            raw = b"$" + self.text.data[part.start : part.end]
            return [Piece(raw, None, self.text.deps(part.start, part.end), "", part.quoted)]
        place = self.text.place(part.start, part.end, part.context)
        if place is None and part.text == self.text.data[part.start : part.end]:
            return [self.own(piece, part.quoted) for piece in self.text.pieces(part.start, part.end)]
        deps = () if place is not None else self.text.deps(part.start, part.end)
        return [Piece(part.text, place, deps, "", part.quoted)]

    @staticmethod
    def own(piece: Piece, quoted: bool) -> Piece:
        """A part of a text that was put together, as what it is in that text."""
        if piece.place is None or not piece.exact:
            return Piece(piece.text, None, piece.sources(), "", quoted)
        return Piece(piece.text, replace(piece.place, context="nested"), piece.deps, "", quoted)

    def holes(self, part: Literal) -> list[Piece]:
        out: list[Piece] = []
        at = 0
        for found in _HOLE.finditer(part.text):
            deps, number = self.text.deps(part.start, part.end), int(found.group(1))
            lost = number >= len(self.text.holes)
            hole = unknown(say("a value that is not known")) if lost else self.text.holes[number]
            out.append(Piece(part.text[at : found.start()], None, deps, "", part.quoted))
            out.append(replace(hole, quoted=part.quoted))
            at = found.end()
        out.append(Piece(part.text[at:], None, (), "", part.quoted))
        return [piece for piece in out if piece.text or piece.reason]

    def expansion(self, part: WordPart) -> Iterable[Piece]:
        if isinstance(part, ArithmeticPart):
            return [self.arithmetic(part.body)]
        if isinstance(part, Substitution):
            return self.substitution(part)
        if isinstance(part, Parameter):
            return self.parameter(part)
        return self.literal(part)

    def substitution(self, part: Substitution) -> ShellValue:
        if self.text.data[part.start : part.start + 1] in b"<>":  # the name of a pipe
            return (unknown(say("an expansion that cannot be read without running it")),)
        body = self.text.part(*part.body)
        if self.text.data[part.start : part.start + 1] == b"`" and _ESCAPED_IN_BACKTICKS.search(body.data):
            plain = _ESCAPED_IN_BACKTICKS.sub(rb"\1", body.data)
            body = nested_text((Piece(plain, None, self.text.deps(*part.body)),))
        if self.state.dash and body.data.lstrip().startswith(b"<"):
            return ()
        if body.data.lstrip().startswith(b"<") and not body.data.lstrip().startswith(
            (b"<(", b"<<")
        ):  # a file's content
            body = nested_text((Piece(b"cat "), *cut(tuple(s.piece for s in body.segments), body.data.find(b"<") + 1)))
        return self.substitute(body, self.state)

    def heredoc(self, command: Simple) -> ShellValue | None:
        """The text of a command's heredoc or here-string; None where it has none."""
        for redirect in reversed(command.redirects):
            if redirect.operator == b"<<<":
                return (*self.value(redirect.target), Piece(b"\n"))
            if redirect.body is not None:
                start, end = redirect.body
                if redirect.expands:
                    return tuple(self.pieces(scan_quoted(self.text.data, start, end, "heredoc")))
                return (Piece(self.text.data[start:end], self.text.place(start, end, "heredoc")),)
        return None

    def tilde(self, word: Word, pieces: ShellValue) -> ShellValue:
        """A leading `~` is the home folder, which is not known."""
        first = word.parts[0] if word.parts else None
        if not isinstance(first, Literal) or first.quoted or not pieces:
            return pieces
        if re.match(rb"~(/|$)", first.text) and pieces[0].text.startswith(b"~"):
            return (unknown(say("the home folder")), *pieces)
        if _IDENTIFIER.match(first.text):
            return (*pieces, unknown(say("the home folder")))
        return pieces


def _has_braces(word: Word) -> bool:
    """Whether braces of a word may be expanded: `{a,$b}` outside quotes."""
    plain = b"".join(
        part.text.replace(b"\0", b"") if isinstance(part, Literal) and not part.quoted else b"\0" for part in word.parts
    )
    return _BRACES.search(plain) is not None


def _append(out: list[list[Piece]], grow: bool, pieces: list[Piece]) -> None:
    if grow and out:
        out[-1].extend(pieces)
    else:
        out.append(list(pieces))


def _extent(pieces: list[Piece]) -> ByteRange | None:
    """The bytes that make an argument which came out of splitting, where they stand together."""
    places = [piece.place for piece in pieces if piece.text]
    if not places or any(place is None for place in places):
        return None
    first, last = places[0], places[-1]
    if first is None or last is None or any(p is None or p.doc != first.doc for p in places):
        return None
    if any(a is None or b is None or a.end != b.start for a, b in pairwise(places)):
        return None
    return ByteRange(first.doc, first.start, last.end, first.context)


_RANGE = regex(rb"(-?\d{1,18})\.\.(-?\d{1,18})(?:\.\.(-?\d{1,18}))?|([A-Za-z])\.\.([A-Za-z])")
_MOST = 1000
_MAX_DEPTH = 20


def expand_braces(text: bytes) -> list[bytes] | None:
    """The words that a word becomes; None where there is nothing to expand, none at all where they are too many."""
    found = _expand(text, 0)
    return [] if found is None else None if found == [text] else found


def _expand(text: bytes, depth: int) -> list[bytes] | None:
    at = 0
    while (at := text.find(b"{", at)) >= 0:
        parts = None if text[at - 1 : at] == b"$" and at else _parts(text, at)
        if parts is None:
            at += 1
            continue
        choices, end = parts
        behind = _expand(text[end:], depth + 1)
        inside = [_expand(choice, depth + 1) for choice in choices] if depth < _MAX_DEPTH else [None]
        if behind is None or any(one is None for one in inside):
            return None
        words = [word for one in inside for word in one or ()]
        if len(words) * len(behind) > _MOST:
            return None
        return [text[:at] + word + rest for word in words for rest in behind]
    return [text]


def _parts(text: bytes, opening: int) -> tuple[list[bytes], int] | None:
    """The choices between a brace and the one that closes it, and where that ends; None where it is no expansion."""
    depth, start, commas = 0, opening + 1, []
    for at in range(opening, len(text)):
        byte = text[at : at + 1]
        if byte == b"{":
            depth += 1
        elif byte == b"," and depth == 1:
            commas.append(at)
        elif byte == b"}":
            depth -= 1
            if depth == 0:
                break
    else:
        return None
    if not commas:
        return (numbers, at + 1) if (numbers := _range(text[start:at])) is not None else None
    bounds = [start - 1, *commas, at]
    return [text[a + 1 : b] for a, b in pairwise(bounds)], at + 1


def _range(body: bytes) -> list[bytes] | None:
    found = _RANGE.fullmatch(body)
    if found is None:
        return None
    if found.group(4):
        first, last = found.group(4)[0], found.group(5)[0]
        return [bytes([code]) for code in range(first, last + 1) or range(first, last - 1, -1)]
    low, high = found.group(1), found.group(2)
    first, last, step = int(low), int(high), abs(int(found.group(3) or b"1")) or 1
    if abs(last - first) // step > _MOST:
        return [b""] * (_MOST + 1)
    padded = any(re.match(rb"-?0\d", bound) for bound in (low, high))
    width = max(len(low), len(high)) if padded else 0
    values = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [str(value).zfill(width).encode() for value in values]
