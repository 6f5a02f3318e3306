"""Writes expressions of Python as words of a shell, every literal with its place; what shells have not is not known."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from advisor.bash.text import ByteRange, Piece, ShellValue, joined, line_starts, unknown
from advisor.language import say
from advisor.regex import regex
from advisor.script.python_tree import text

_ESCAPE = regex(r"\\(\r?\n|.)", re.DOTALL)
_LITERAL = regex(r"([fFrRuU]{0,2})(\"\"\"|'''|\"|')(.*)\2\Z", re.DOTALL)
_SIGNS = {ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}
_TESTS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.Is: "==", ast.NotEq: "!=", ast.IsNot: "!=",
    ast.Lt: "-lt", ast.LtE: "-le", ast.Gt: "-gt", ast.GtE: "-ge",
}  # fmt: skip
_ENVIRONMENT = ("os.environ", "environ")
Parts = Iterable[str | Piece]


class Words:
    """A file whose expressions are written, and what is written so far."""

    given: Sequence[ShellValue]
    """The words that the file is started with."""
    out: list[Piece]
    doc: int
    data: bytes

    def write(self, *parts: str | Piece) -> None:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        raise NotImplementedError

    def name(self, node: ast.expr | None) -> str:
        """The variable that a name becomes; "" for anything else."""
        raise NotImplementedError

    def answer(self, call: ast.Call, *, several: bool) -> Parts:
        """What a call gives."""
        raise NotImplementedError

    def word(self, node: ast.expr | None) -> Parts:
        """An expression as one word."""
        match node:
            case None | ast.Constant(value=None):
                return ["''"]
            case ast.Constant():
                return ["'", *escaped(self.literal(node)), "'"]
            case ast.JoinedStr():
                return ["''", *self.joined(node)]
            case ast.FormattedValue(value=inner, format_spec=None):
                return self.word(inner)
            case ast.Attribute(attr="parent", value=inner):
                return ['"$(dirname ', *self.word(inner), ')"']
            case ast.Attribute(attr="executable"):
                return ["python"]
            case ast.Name() | ast.Attribute() if name := self.name(node):
                return [f'"${{{name}[*]}}"']
            case ast.Subscript() if name := of_environment(node):
                return [f'"${{{name}}}"']
            case ast.Subscript(value=ast.Attribute(attr="argv"), slice=ast.Constant(value=int() as at)):
                return quote(self.given[at - 1]) if 0 < at <= len(self.given) else [self.hole()]
            case ast.Subscript(slice=ast.Constant(value=int() as at), value=inner) if at >= 0 and (
                name := self.name(inner)
            ):
                return [f'"${{{name}[{at}]}}"']
            case ast.Subscript() if name := self.name(node):
                return [f'"${{{name}[*]}}"']
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                if any(isinstance(one, ast.JoinedStr) or text(one) for one in (left, right)):
                    return [*self.word(left), *self.word(right)]
                both = [*self.word(left), *self.word(right)]
                test = ["[[ ", *both, " =~ ^[0-9]+$ ]]"]
                return self.either(test, ["$((", *self.word(left), " + ", *self.word(right), "))"], both)
            case ast.BinOp(left=left, op=ast.Div(), right=right) if any(map(text, (left, right))):
                return [*self.word(left), "/", *self.word(right)]
            case ast.BinOp(left=left, op=op, right=right) if sign := _SIGNS.get(type(op)):
                return ["$((", *self.word(left), f" {sign} ", *self.word(right), "))"]
            case ast.IfExp(test=test, body=body, orelse=other):
                return self.either(self.test(test), self.word(body), self.word(other))
            case ast.BoolOp(op=ast.Or(), values=[first, other]):
                return self.either(self.test(first), self.word(first), self.word(other))
            case ast.NamedExpr(target=target, value=value):
                self.assign(target, value)
                return self.word(target)
            case ast.Await(value=value):
                return self.word(value)
            case ast.Call():
                return self.answer(node, several=False)
        if (call := ran(node)) is not None:
            self.answer(call, several=False)
        return [self.hole()]

    def words(self, node: ast.expr) -> Parts:
        """An expression as the words of a list."""
        match node:
            case ast.List(elts=elts) | ast.Tuple(elts=elts):
                return [part for one in elts for part in (*self.element(one), " ")]
            case ast.Starred(value=inner):
                return self.words(inner)
            case ast.Subscript(
                value=ast.Attribute(attr="argv"), slice=ast.Slice(lower=ast.Constant(value=int() as low))
            ):
                return [part for one in self.given[low - 1 :] for part in quote(one)]
            case ast.Subscript() if of_environment(node):
                return self.word(node)
            case ast.Name() | ast.Attribute() | ast.Subscript() if name := self.name(node):
                own = isinstance(node, ast.Attribute) and node.attr in ("parent", "executable")
                return self.word(node) if own else [f'"${{{name}[@]}}"']
            case ast.BinOp(left=left, op=ast.Add(), right=right) if not isinstance(
                right, (ast.JoinedStr, ast.Constant)
            ):
                return [*self.words(left), " ", *self.words(right)]
            case ast.IfExp(test=test, body=body, orelse=other) if isinstance(body, ast.List) or isinstance(
                other, ast.List
            ):
                return self.either(self.test(test), self.words(body), self.words(other), "@")
            case ast.Call():
                return self.answer(node, several=True)
        return self.word(node)

    def element(self, node: ast.expr) -> Parts:
        """An entry of a list: one word, whatever it is, and after a star as many as there are."""
        if isinstance(node, ast.Starred):
            return self.words(node.value)
        return self.word(node) if isinstance(node, (ast.List, ast.Tuple)) else ["''", *self.word(node)]

    def either(self, test: Parts, body: Parts, other: Parts, all_of: str = "*") -> Parts:
        """One of two values, which is set before the statement that uses it."""
        name = f"_either{len(self.out)}"
        self.write("if ", *test, f"\nthen {name}=(", *body, f")\nelse {name}=(", *other, ")\nfi\n")
        return [f'"${{{name}[{all_of}]}}"']

    def test(self, node: ast.expr) -> Parts:
        match node:
            case ast.Compare(left=ast.Name(id="__name__")):
                return ['[[ "$__name" == __main__ ]]']
            case ast.Compare(left=left, ops=[op], comparators=[right]) if sign := _TESTS.get(type(op)):
                return ["[[ ", *self.word(left), f" {sign} ", *self.word(right), " ]]"]
            case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.List(elts=elts) | ast.Tuple(elts=elts)]) if (
                elts
            ):
                return self.test(ast.BoolOp(ast.Or(), [ast.Compare(left, [ast.Eq()], [one]) for one in elts]))
            case ast.BoolOp(op=op, values=values):
                sign, parts = " && " if isinstance(op, ast.And) else " || ", [[*self.test(one)] for one in values]
                return ["{ ", *(part for n, one in enumerate(parts) for part in (sign * (n > 0), *one)), "; }"]
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return ["! ", *self.test(inner)]
        word = [*self.word(node)]
        return ["[[ -n ", *word, " && ", *word, " != False && ", *word, " != 0 ]]"]

    def joined(self, node: ast.JoinedStr) -> Iterator[str | Piece]:
        """An f-string; what it spells is looked for line by line: some versions of Python tell no places in it."""
        at, end = self.span(node)
        for one in node.values:
            if not isinstance(one, ast.Constant):
                yield from self.word(one)
                at = max(at, self.data.find(b"}", at, end) + 1)
                continue
            for line in re.split(r"(\n)", str(one.value)):
                blank = not line.strip()
                found = self.data.find(line.encode(), at, at + len(line) if blank else end) if line else -1
                place = ByteRange(self.doc, found, found + len(line.encode()), "nested")
                at = at if found < 0 else place.end
                yield from quote([Piece(line.encode(), None if found < 0 else place)])[:-1]
                yield "'"

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Where an expression stands; nowhere for one that is in no file."""
        begins = line_starts(self.data)
        if not hasattr(node, "lineno") or (node.end_lineno or node.lineno) > len(begins):
            return 0, 0
        last = begins[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return begins[node.lineno - 1] + node.col_offset, last

    def literal(self, node: ast.Constant) -> Iterator[Piece]:
        """A literal, those parts of it with their place that are spelled as they are."""
        start, end = self.span(node)
        raw, whole = self.data[start:end].decode("utf-8", "replace"), str(node.value).encode("utf-8", "surrogateescape")
        at, parts = start, [raw]
        if found := _LITERAL.match(raw):
            at += len((found[1] + found[2]).encode())
            parts = [found[3]] if "r" in found[1].lower() else _ESCAPE.split(found[3])
        out: list[Piece] = []
        for number, part in enumerate(parts):
            size = len(part.encode()) + number % 2
            place = ByteRange(self.doc, at, at + size, "nested")
            if number % 2:
                meant = "" if part in ("\n", "\r\n") else {"n": "\n", "t": "\t"}.get(part, part)
                out.append(Piece(meant.encode(), None, (place,)))
            elif part:
                out.append(Piece(part.encode(), place))
            at += size
        yield from out if (joined(out) == whole and found is not None) or raw.encode() == whole else [Piece(whole)]

    def hole(self) -> Piece:
        return unknown(say("an expression that only running it would tell"), ())


def ran(node: ast.expr | None) -> ast.Call | None:
    """The call whose result, or a part of it, an expression is: `run(cmd).returncode`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Await)):
        node = node.value
    return node if isinstance(node, ast.Call) else None


def of_environment(node: ast.expr) -> str:
    """The variable that `os.environ["NAME"]` is; "" for anything else."""
    return text(node.slice) if isinstance(node, ast.Subscript) and ast.unparse(node.value) in _ENVIRONMENT else ""


def quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def quote(word: Iterable[Piece]) -> list[str | Piece]:
    """A text as a word of its own."""
    return ["'", *escaped(word), "' "]


def escaped(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """A text between single quotes."""
    for one in pieces:
        safe = one.reason or b"'" not in one.text
        yield one if safe else Piece(one.text.replace(b"'", b"'\\''"), None, one.sources())
