"""Expands `${name…}`: its operators, applied to text by patterns (`*`, `?`, `[…]`) that are translated into regular
expressions.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator

from advisor.bash import dash
from advisor.bash.arithmetic import Undecided, evaluate
from advisor.bash.state import OUTSIDE, CommandWord, ShellState, Variable
from advisor.bash.text import (
    ByteRange,
    Context,
    NotGiven,
    NotSet,
    Piece,
    ShellValue,
    Text,
    Varies,
    joined,
    known,
    last_component,
    sources,
    started,
    unknown,
    why_unknown,
)
from advisor.bash.words import Parameter, Unterminated, Word, WordPart, scan_quoted
from advisor.language import mark, say
from advisor.regex import regex

_MAX_PATTERN_TEXT = 5_000
SEPARATORS = b" \t\n"
"""What bash splits at where nothing else is said."""
_MAX_STARS = 6
"""Patterns on longer texts, or with more stars, could take for ever: they stay unread."""
_PATTERN = regex(rb"[#%/]?(?:\\.|\\\Z|[^\\/])*", re.DOTALL)
"""The pattern of `${x/p/new}`."""
_NOT_KNOWN = mark("arithmetic on values that are not known")
_DRAWN = regex(
    rb"\b(?:S?RANDOM|SLURM_ARRAY_TASK_ID|SLURM_(?:NODE|PROC|LOCAL)ID|JOB_COMPLETION_INDEX"
    rb"|(?:OMPI_COMM_WORLD|PMI|NODE|MACHINE|GROUP)_RANK)\b"
)
"""Variables that no two runs of a script, or no two nodes of one run, share."""
_HOW_MANY = mark("the number of arguments is not known")


class Parameters:
    """Looks parameters up in one state; `pieces` of the words around them comes from the subclass."""

    def __init__(self, text: Text, state: ShellState) -> None:
        self.text = text
        self.state = state

    def pieces(self, parts: Iterable[WordPart]) -> Iterator[Piece]:
        """All parts of a word as one value."""
        raise NotImplementedError

    def separators(self) -> bytes | None:
        """The characters that words are split at; None where they are not known."""
        variable = self.state.variables.get(b"IFS")
        value = None if variable is None else variable.scalar()
        if value is None:
            return SEPARATORS
        return joined(value) if known(value) else None

    def arithmetic(self, body: tuple[int, int]) -> Piece:
        """The value of an expression as a computed piece."""
        try:
            inner = tuple(self.pieces(scan_quoted(self.text.data, *body, "double")))
        except Unterminated:
            return unknown(say("arithmetic that cannot be read"))
        deps = list(sources(inner))
        if not known(inner):
            return unknown(why_unknown(inner), tuple(deps))
        if self.state.dash and not (alike := dash.sums(joined(inner))):
            if alike is False:
                raise dash.Ends(*body)
            return unknown(say(_NOT_KNOWN), tuple(deps))
        try:
            value = evaluate(joined(inner), self.integer(deps), self.store)
        except Undecided:
            why = say(_NOT_KNOWN)
            return unknown(Varies(why) if _DRAWN.search(joined(inner)) else why, tuple(deps))
        return Piece(b"%d" % value, None, tuple(dict.fromkeys(deps)))

    def integer(self, deps: list[ByteRange]) -> Callable[[bytes, bytes], int]:
        """Looks variables of an expression up, and notes the literals they rest on."""

        def lookup(name: bytes, index: bytes) -> int:
            variable = self.state.variables.get(name)
            if variable is None:
                raise Undecided
            pieces = variable.scalar()
            if index and variable.elements is not None:
                element = variable.elements.get(index)
                pieces = None if element is None else element.pieces
            if pieces is None or not known(pieces):
                raise Undecided
            deps.extend(sources(pieces))
            text = joined(pieces).strip()
            if not re.fullmatch(rb"[-+]?\w*", text) or len(text) > 20:
                raise Undecided
            if re.fullmatch(rb"[A-Za-z_]\w*", text):
                raise Undecided
            return evaluate(text, lookup, self.store) if text else 0

        return lookup

    def store(self, name: bytes, value: int) -> None:
        self.state.assign(name, (Piece(b"%d" % value),))

    def many(self, part: Parameter) -> bool:
        """Whether a parameter stands for a list of arguments (`$@`, `${A[@]}`)."""
        if self.state.dash:
            dash.check(part)
        if part.length or part.operator.lstrip(b":") in (b"-", b"+", b"=", b"?"):
            return False
        return self.is_list(part) and not (part.indirect and part.name in (b"@", b"*"))

    def is_list(self, part: Parameter) -> bool:
        """Whether a parameter is `@` or `*`, or has one of them as its subscript."""
        return part.name in (b"@", b"*") or (part.index is not None and self.raw(part.index) in (b"@", b"*"))

    def elements(self, part: Parameter) -> list[CommandWord]:
        if part.name in (b"@", b"*"):
            found = list(self.state.positional or ())
        else:
            variable = self.state.variables.get(part.name)
            if variable is None:
                return []
            if part.indirect:
                return [CommandWord((Piece(key),)) for key in variable.elements or (b"0",)]
            if variable.elements is not None:
                found = list(variable.elements.values())
            else:
                found = [] if variable.value is None else [CommandWord(variable.value)]
        if part.operator in (b"", b":"):
            return self.sliced(found, part) if part.operator else found
        return [CommandWord(tuple(self.transformed(part, item.pieces))) for item in found]

    def sliced(self, found: list[CommandWord], part: Parameter) -> list[CommandWord]:
        numbers = self.numbers(part.argument)
        if numbers is None:
            return [CommandWord((unknown(say("a slice that is not known")),))]
        start = numbers[0] - 1 if part.name in (b"@", b"*") and numbers[0] > 0 else numbers[0]
        return found[start:] if len(numbers) == 1 else found[start : start + numbers[1]]

    def raw(self, span: tuple[int, int]) -> bytes:
        return self.text.data[span[0] : span[1]]

    def lookup(self, part: Parameter) -> tuple[ShellValue | None, str]:
        """The value of a parameter, or None and why it has none that is known."""
        name = part.name
        if name.isdigit():
            return self.positional(int(name))
        if name in (b"@", b"*"):
            return tuple(self.pieces([part])), ""
        if name == b"#":
            given = self.state.positional
            return (None, say(_HOW_MANY)) if given is None else ((Piece(b"%d" % len(given)),), "")
        if name in b"?$!-_":
            return None, say("${name} is known only when the script runs", name=name.decode())
        variable = self.state.variables.get(name)
        if variable is not None:
            return self.of_variable(part)
        if name == b"BASH_SOURCE":
            source = self.state.source
            return started(source or self.state.script, posixpath.basename(source) or self.state.known_end), ""
        if name in self.state.slurm:
            return (Piece(self.state.slurm[name]),), ""
        if name.startswith(b"SLURM_") and self.state.batch:
            why = say("${name} is set by Slurm", name=name.decode())
            return (unknown(Varies(why) if _DRAWN.fullmatch(name) else why),), ""
        if name == b"IFS":
            return (Piece(SEPARATORS),), ""
        if name in OUTSIDE:
            why = say("${name} is set by the machine", name=name.decode())
            return (unknown(Varies(why) if _DRAWN.fullmatch(name) else why),), ""
        if name in self.state.assigned:
            return None, ""
        return None, NotSet.of(name)

    def positional(self, number: int) -> tuple[ShellValue | None, str]:
        if number == 0:
            return self.state.name or started(self.state.script, self.state.known_end), ""
        given = self.state.positional
        if given is not None:
            return (given[number - 1].pieces, "") if number <= len(given) else (None, "")
        return None, NotGiven(say("${number} is an argument of the script, and none was given", number=number))

    def of_variable(self, part: Parameter) -> tuple[ShellValue | None, str]:
        variable = self.state.variables[part.name]
        if part.index is None or variable.elements is None:
            return variable.scalar(), ""
        index = self.subscript(part.index, variable)
        if index is None:
            why = say("an element of ${name} that is not known", name=part.name.decode())
            varies = not variable.associative and isinstance(self.arithmetic(part.index).reason, Varies)
            return None, Varies(why) if varies else why
        element = variable.elements.get(index)
        return (None, "") if element is None else (element.pieces, "")

    def subscript(self, span: tuple[int, int], variable: Variable) -> bytes | None:
        """The key of an element, from bytes `span` between the brackets; None where it is not known. An indexed array
        counts from its end where the number is negative."""
        if variable.associative:
            pieces = tuple(self.pieces(scan_quoted(self.text.data, *span, "brace")))
            return joined(pieces) if known(pieces) else None
        number = self.arithmetic(span)
        if number.reason:
            return None
        index = int(number.text)
        return b"%d" % (index if index >= 0 else index + variable.next_index)

    def computed(self, value: ShellValue, added_to: ShellValue) -> Piece:
        """What a variable declared with `-i` holds after `NAME=value` or, behind what it held, `NAME+=value`."""
        deps = list(sources((*added_to, *value)))
        if not known(value) or not known(added_to):
            return unknown(why_unknown((*added_to, *value)), tuple(deps))
        text = joined(added_to) + b"+(" + joined(value) + b")" if added_to else joined(value)
        try:
            return Piece(b"%d" % evaluate(text, self.integer(deps), self.store), None, tuple(deps))
        except Undecided:
            return unknown(say(_NOT_KNOWN), tuple(deps))

    def parameter(self, part: Parameter) -> Iterable[Piece]:
        """`$name` and `${name…}`."""
        if self.state.dash:
            dash.check(part)
        if part.indirect:
            return self.indirect(part)
        if part.length:
            return [self.length(part)]
        pieces, reason = self.lookup(part)
        operator = part.operator
        if operator.lstrip(b":") in (b"-", b"=", b"?", b"+") and operator:
            return self.default(part, pieces)
        if pieces is None:
            return [unknown(reason)] if reason else []
        return pieces if not operator else self.transformed(part, pieces)

    def default(self, part: Parameter, pieces: ShellValue | None) -> Iterable[Piece]:
        """`${x:-y}` and its relatives. A variable that nobody sets in the script counts as unset."""
        operator = part.operator
        empty = pieces is None or (operator.startswith(b":") and known(pieces) and not joined(pieces))
        kind = operator[-1:]
        if kind == b"+":
            return [] if empty else self.argument(part)
        if not empty and pieces is not None:
            return pieces
        if kind == b"?":
            return [unknown(say("${name} must be given from outside", name=part.name.decode()))]
        argument = tuple(self.argument(part))
        if kind == b"=":
            self.state.assign(part.name, argument)
        if self.state.doubted and pieces is None:  # it counts only where nothing that ran has set the variable
            return [Piece(p.text, None, p.sources(), p.reason, p.quoted) for p in argument]
        return argument

    def argument(self, part: Parameter) -> list[Piece]:
        context: Context = "double" if part.quoted else "brace"
        parts = scan_quoted(self.text.data, *part.argument, context)
        pieces = list(self.pieces(parts))
        if not part.quoted and pieces and re.match(rb"~(/|$)", pieces[0].text) and not pieces[0].reason:
            pieces.insert(0, unknown(say("the home folder")))
        return [Piece(p.text, _in_braces(p.place, self.text, part), p.deps, p.reason, p.quoted) for p in pieces]

    def transformed(self, part: Parameter, pieces: ShellValue) -> list[Piece]:
        if not known(pieces):
            raw = self.raw(part.argument)
            last = last_component(pieces) if part.operator == b"##" and raw == b"*/" else None
            if part.operator == b"/" and raw[:1] == b"%" and b"*" not in raw and known(pieces[1:]):  # of the known end
                result = self.apply(part, joined(pieces[1:]))
                last = (pieces[0], Piece(result)) if result is not None and joined(pieces[1:]) else None
            return list(last or [unknown(why_unknown(pieces), sources(pieces), self.guess(part, pieces))])
        operator, text = part.operator, joined(pieces)
        if operator == b":":
            result = self.substring(part, text)
        elif operator == b"@":
            result = text if self.raw(part.argument) == b"" else None
        else:
            result = self.apply(part, text)
        deps = sources(pieces)
        if result is None:
            why = say("an expansion of ${name} that cannot be read", name=part.name.decode())
            return [unknown(why, deps)]
        return [Piece(result, None, deps)]

    def guess(self, part: Parameter, pieces: ShellValue) -> bytes:
        """What an operator would make of a guessed path (`${BASH_SOURCE%/*}`)."""
        guessed = joined(pieces)
        return self.apply(part, guessed) or b"" if guessed and part.operator in (b"%", b"%%") else b""

    def apply(self, part: Parameter, text: bytes) -> bytes | None:
        operator = part.operator
        if len(text) > _MAX_PATTERN_TEXT or self.raw(part.argument).count(b"*") > _MAX_STARS:
            return None
        if operator in (b",", b",,", b"^", b"^^"):
            return change_case(text, operator)
        raw = self.raw(part.argument)
        if operator in (b"/", b"//"):
            start, end = part.argument
            whole = _PATTERN.match(raw)
            cut = start + (whole.end() if whole else 0)
            pattern, marks = self.pattern((start, cut))
            new = tuple(self.pieces(scan_quoted(self.text.data, min(cut + 1, end), end, "brace")))
            if pattern is None or is_extended(pattern, marks) or not known(new):
                return None
            return substitute_pattern(text, operator, pattern, marks, joined(new))
        pattern, marks = self.pattern(part.argument)
        return None if pattern is None or is_extended(pattern, marks) else strip_pattern(text, operator, pattern, marks)

    def pattern(self, span: tuple[int, int]) -> tuple[bytes | None, bytes]:
        """A pattern and, byte for byte, whether it was quoted; None where it is not known."""
        return self.marked(tuple(self.pieces(scan_quoted(self.text.data, *span, "brace"))))

    def marked(self, pieces: ShellValue) -> tuple[bytes | None, bytes]:
        if not known(pieces):
            return None, b""
        marks = b"".join((b"\x01" if _is_quoted(piece) else b"\x00") * len(piece.text) for piece in pieces)
        return joined(pieces), marks

    def substring(self, part: Parameter, text: bytes) -> bytes | None:
        numbers = self.numbers(part.argument)
        if numbers is None:
            return None
        shown = text.decode("utf-8", "surrogateescape")
        start = numbers[0] if numbers[0] >= 0 else max(len(shown) + numbers[0], 0)
        end = len(shown) if len(numbers) == 1 else (start + numbers[1] if numbers[1] >= 0 else len(shown) + numbers[1])
        return shown[start:end].encode("utf-8", "surrogateescape")

    def numbers(self, span: tuple[int, int]) -> tuple[int, ...] | None:
        """`offset` or `offset:length`."""
        raw = self.raw(span)
        cut = raw.find(b":")
        bounds = [span] if cut < 0 else [(span[0], span[0] + cut), (span[0] + cut + 1, span[1])]
        pieces = [self.arithmetic(bound) for bound in bounds]
        return None if not known(pieces) else tuple(int(piece.text) for piece in pieces)

    def length(self, part: Parameter) -> Piece:
        if part.name in (b"@", b"*"):
            given = self.state.positional
            return unknown(say(_HOW_MANY)) if given is None else Piece(b"%d" % len(given))
        if part.index is not None and self.raw(part.index) in (b"@", b"*"):
            variable = self.state.variables.get(part.name)
            if variable is None or variable.elements is None:
                why = say("the length of {name} is not known", name=part.name.decode())
                return Piece(b"0") if variable is None else unknown(why)
            held = variable.elements.values()
            return Piece(b"%d" % len(held), None, sources(piece for item in held for piece in item.pieces))
        pieces, reason = self.lookup(part)
        if pieces is None:
            return unknown(reason) if reason else Piece(b"0")
        if not known(pieces):
            return unknown(why_unknown(pieces))
        return Piece(b"%d" % len(joined(pieces).decode("utf-8", "surrogateescape")), None, sources(pieces))

    def indirect(self, part: Parameter) -> Iterable[Piece]:
        pieces, reason = self.lookup(part)
        if pieces is None or not known(pieces):
            return [unknown(reason or why_unknown(pieces or ()))]
        target = self.state.variables.get(joined(pieces))
        value = None if target is None else target.scalar()
        if value is not None:
            return value
        if part.operator.endswith(b"-"):
            return self.argument(part)
        return [unknown(say("a variable that is not set in the script"))]


def _in_braces(place: ByteRange | None, text: Text, part: Parameter) -> ByteRange | None:
    """Literals of the argument of `${x:-…}` end at a brace; those of other texts stay what they are."""
    if place is None or place.context == "nested":
        return place
    own = text.place(part.argument[0], part.argument[1], "brace")
    inside = own is not None and own.doc == place.doc and own.start <= place.start and place.end <= own.end
    return ByteRange(place.doc, place.start, place.end, "brace") if inside else place


def _is_quoted(piece: Piece) -> bool:
    context = "plain" if piece.place is None else piece.place.context
    return context in ("single", "double") or (piece.quoted and context not in ("plain", "brace"))


def is_empty_default(word: Word, state: ShellState) -> bool:
    """`${A:-}`, where nothing in the script sets A: empty unless it is given from outside."""
    only = word.parts[0] if len(word.parts) == 1 else None
    if not isinstance(only, Parameter) or only.operator not in (b":-", b"-", b":="):
        return False
    return only.argument[0] == only.argument[1] and (
        only.name not in state.variables or only.name in state.may_be_given
    )


_LONGEST_PATTERN = 500
_GROUP = regex(rb"[@+*?!]\(")


def translate(pattern: bytes, quoted: bytes = b"") -> re.Pattern[bytes]:
    """A pattern as a regular expression. `quoted` has a non-zero byte for each byte that stands for itself."""
    pattern = pattern[:_LONGEST_PATTERN]
    out: list[bytes] = []
    at = 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        plain = at < len(quoted) and quoted[at]
        if byte == b"*" and not plain:
            if not out or out[-1] != b".*":
                out.append(b".*")
        elif byte == b"?" and not plain:
            out.append(b".")
        elif byte == b"[" and not plain and (end := pattern.find(b"]", at + 2)) > 0:
            out.append(_bracket(pattern[at + 1 : end]))
            at = end
        else:
            out.append(re.escape(byte))
        at += 1
    try:
        return re.compile(b"".join(out), re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern), re.DOTALL)


def is_extended(pattern: bytes, quoted: bytes) -> bool:
    """Whether it has a group of extglob, `+(a|b)`, which is read in whole patterns only (`matches`)."""
    return any(not any(quoted[found.start() : found.end()]) for found in _GROUP.finditer(pattern))


def _bracket(body: bytes) -> bytes:
    negated = body[:1] in (b"!", b"^")
    inner = body[1:] if negated else body
    inner = inner.replace(b"[:space:]", rb"\s").replace(b"[:digit:]", rb"\d").replace(b"[:alnum:]", b"A-Za-z0-9")
    return b"[" + (b"^" if negated else b"") + inner.replace(b"[", rb"\[") + b"]"


def strip_pattern(text: bytes, operator: bytes, pattern: bytes, quoted: bytes) -> bytes:
    """`${x#p}` `${x##p}` `${x%p}` `${x%%p}`."""
    expression = translate(pattern, quoted)
    size = len(text)
    if operator in (b"#", b"##"):
        cuts = range(size, -1, -1) if operator == b"##" else range(size + 1)
        found = next((cut for cut in cuts if expression.fullmatch(text, 0, cut)), None)
        return text if found is None else text[found:]
    cuts = range(size + 1) if operator == b"%%" else range(size, -1, -1)
    found = next((cut for cut in cuts if expression.fullmatch(text, cut)), None)
    return text if found is None else text[:found]


def substitute_pattern(text: bytes, operator: bytes, pattern: bytes, quoted: bytes, new: bytes) -> bytes:
    """`${x/p/new}` (first), `${x//p/new}` (all); a pattern that begins with `#` or `%` is anchored."""
    if not pattern:
        return text
    if operator == b"/" and pattern[:1] in (b"#", b"%"):
        anchored = translate(pattern[1:], quoted[1:]).pattern
        anchored = rb"\A" + anchored if pattern[:1] == b"#" else anchored + rb"\Z"
        return re.sub(anchored, lambda _: new, text, count=1, flags=re.DOTALL)
    return translate(pattern, quoted).sub(lambda _: new, text, count=0 if operator == b"//" else 1)


def change_case(text: bytes, operator: bytes) -> bytes:
    """`${x,,}` `${x,}` `${x^^}` `${x^}`."""
    shown = text.decode("utf-8", "surrogateescape")
    change = str.lower if operator in (b",", b",,") else str.upper
    shown = change(shown) if len(operator) > 1 else change(shown[:1]) + shown[1:]
    return shown.encode("utf-8", "surrogateescape")


def matches(text: bytes, pattern: bytes, quoted: bytes) -> bool:
    """Whether a pattern matches the whole text (`case`, `[[ x == p ]]`)."""
    alternatives = re.fullmatch(rb"[@+*?!]\((.*)\)", pattern, re.DOTALL)
    if alternatives and not any(quoted):
        return any(translate(part).fullmatch(text) for part in alternatives.group(1).split(b"|"))
    return translate(pattern, quoted).fullmatch(text) is not None
