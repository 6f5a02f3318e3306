"""Parses a bash text into statements: tree-sitter-bash gives the structure, our own scanner the words, to the byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile, zip_longest
from time import process_time
from typing import TYPE_CHECKING

from advisor.bash import syntax
from advisor.bash.syntax import Simple, Statement, Statements, check_balance, scan_command, scan_words
from advisor.bash.words import Exhausted, Unterminated, Word
from advisor.regex import regex

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


_MAX_DEPTH = 80
_MOST_WORDS = 100_000
_LARGE = 1_000_000
_CHUNK = 65_536
_REPAIRED = (b"(", b")", b"<<")
_MOST_REPAIRED = 500
"""Brackets and heredocs without their other half take the grammar time that grows with the square of their number."""
_READ = 256
"""Bytes that the grammar gets at a time; it keeps what it gets, and reads on from every heredoc line."""
_MOST_SECONDS = 0.8
_SLOW = b"\"'`()[]{}"
_MOST_SLOW = 300_000
"""Quotes and brackets, which take the grammar about a microsecond each, in bytes above `_LARGE`."""
_CODE_LINE = regex(rb"\n[ \t]*[^#\s]")
_MOST_LINES = 45_000
"""Lines of code, without heredocs: more words than are ever followed."""


_NAME = regex(rb"\w+\s*\(")
_NO_GROUP = regex(rb"\"[^\"]*\"|'[^']*'|\$\(")
_NO_NUMBER = regex(rb"\A\d*[<>]&\s*[^\s\d$\"-]")
_COMMANDS = {
    "command", "declaration_command", "unset_command", "variable_assignment", "variable_assignments", "command_name",
    "word", "string", "raw_string", "concatenation", "expansion", "simple_expansion", "variable_name", "number",
    "file_redirect", "herestring_redirect",
}  # fmt: skip
"""Node types at whose start a simple command is scanned; the leaves among them occur where the grammar gave up."""


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


@lru_cache(maxsize=32)
def parse(data: bytes) -> Statements:
    """The statements of a shell text, read as far as that goes. Raises Exhausted where there are too many. The last
    texts are kept, because a loop runs the same one over and over."""
    return _Converter(data).block(_tree(data).children, 0)


def _tree(data: bytes) -> Node:
    """The grammar's root node. Raises Exhausted where it takes too long: it can repair some texts for ever."""
    repaired = max(data.count(sign) for sign in _REPAIRED) >= _MOST_REPAIRED
    if not repaired and (len(data) < _LARGE // 4 or b"<<" in data):  # what gets a heredoc in pieces reads it many times
        return _parser().parse(data).root_node
    piece = _READ if repaired else _CHUNK
    stop = process_time() + _MOST_SECONDS
    try:
        tree = _parser().parse(
            lambda at, _: data[at : at + piece], progress_callback=lambda _, __: process_time() > stop
        )
    except ValueError as error:  # it was stopped
        _parser().reset()
        raise Exhausted from error
    except TypeError:  # a tree-sitter that cannot be stopped
        return _parser().parse(data).root_node
    return tree.root_node


def read_statements(data: bytes) -> Iterator[Statement]:
    """The statements of a script, each read when it is asked for. Raises Unterminated where a quote or bracket never
    closes, and Exhausted where reading on is not worth the time."""
    readable = _readable(data)
    root = _tree(data[:readable])
    nodes = root.children
    if readable < len(data):
        nodes = list(takewhile(lambda node: not node.has_error, nodes))[:-1]  # the last one may go on
    elif root.has_error and len(data) < _LARGE:
        check_balance(data)
    converter = _Converter(data)
    for node, behind in zip_longest(nodes, nodes[1:]):
        yield from converter.block([node, behind] if behind is not None and behind.type == "&" else [node], 0)
    if readable < len(data):
        raise Exhausted


def _readable(data: bytes) -> int:
    """How many bytes of a script the grammar is given: all, unless quotes and brackets are its main content, or it has
    more lines than can be followed."""
    if len(data) < _LARGE:
        return len(data)
    specials, lines = 0, 0
    most_lines = len(data) if b"<<" in data else _MOST_LINES
    for at in range(0, len(data), _CHUNK):
        chunk = data[at : at + _CHUNK]
        specials += len(chunk) - len(chunk.translate(None, _SLOW))
        lines += len(_CODE_LINE.findall(chunk))
        if specials > _MOST_SLOW or lines > most_lines:
            return at
    return len(data)


_CLOSING = regex(rb"^[ \t]*(?:fi|done|esac|then|do|else|elif|\}|;;)(?!\w)", re.MULTILINE)


def is_sound(data: bytes) -> bool:
    """Whether the grammar sees nothing that bash could not parse; where blocks end, it sees not all."""
    return len(data) >= _LARGE or not (_CLOSING.search(data) or _tree(data).has_error)


_OWN = {"array", "process_substitution", "herestring_redirect", "c_style_for_statement", "|&", ";&", ";;&", "select"}
"""Node types that only bash has."""


def own_to_bash(data: bytes) -> tuple[int, int, int] | None:
    """The first statement that a POSIX shell cannot parse, and the bytes for which it cannot; None without one."""
    for top in _tree(data).children if len(data) < _LARGE else ():
        waiting = [top]
        while waiting:
            node = waiting.pop()
            if _is_own(node, data):
                return top.start_byte, node.start_byte, node.end_byte
            waiting += reversed(node.children)
    return None


def _is_own(node: Node, data: bytes) -> bool:
    raw = data[node.start_byte : node.end_byte]
    match node.type:
        case "function_definition":
            return raw.startswith(b"function") or _NAME.match(raw) is None
        case "test_command":
            return raw.startswith(b"[[") and b"(" in _NO_GROUP.sub(b"", raw)
        case "file_redirect":
            return _NO_NUMBER.search(raw) is not None
    return node.type in _OWN


class _Converter:
    """Turns nodes into statements. `cursor` is the byte up to which commands are already scanned."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.cursor = 0
        self.words = 0

    def block(self, nodes: list[Node], depth: int) -> Statements:
        out: list[Statement] = []
        if depth > _MAX_DEPTH:
            return ()
        for node in nodes:
            if node.type == "&" and out and not isinstance(out[-1], Simple):  # it runs beside the script
                out[-1] = syntax.CommandGroup((out[-1],), True, out[-1].start)
            if node.start_byte < self.cursor or not node.is_named or node.type == "comment":
                continue
            out += self.statements(node, depth)
        return tuple(out)

    def statements(self, node: Node, depth: int) -> list[Statement]:
        if node.type in _COMMANDS:
            return self.simple(node)
        if node.type == "redirected_statement":
            body = node.child_by_field_name("body")
            if body is None or body.type in _COMMANDS:
                return self.simple(node)
            return self.statements(body, depth + 1)
        if node.type == "ERROR":
            return list(self.block(list(node.children), depth + 1))
        one = self.compound(node, depth + 1)
        self.cursor = max(self.cursor, node.end_byte)
        return [] if one is None else [one]

    def simple(self, node: Node) -> list[Statement]:
        out: list[Statement] = []
        at = node.start_byte
        while at < node.end_byte:
            try:
                command = scan_command(self.data, at)
            except Unterminated:
                self.cursor = max(self.cursor, node.end_byte)
                break
            if command.end <= at:
                break
            self.count(command)
            out.append(command)
            self.cursor = max(self.cursor, command.end)
            at = command.resume
            if any(redirect.body for redirect in command.redirects):
                out[-1] = self.piped(command)
                break
        return out

    def piped(self, command: Simple) -> Statement:
        """A command with a heredoc, and the one behind `|` on its line, which the grammar puts into the heredoc."""
        if command.operator not in (b"|", b"|&"):
            return command
        try:
            behind = scan_command(self.data, command.resume)
        except Unterminated:
            return command
        self.count(behind)
        return syntax.Pipeline((command, behind), command.start)

    def count(self, command: Simple) -> None:
        self.words += 1 + len(command.words)
        if self.words > _MOST_WORDS:
            raise Exhausted

    def one(self, node: Node | None, depth: int) -> Statement | None:
        if node is None or node.start_byte < self.cursor:
            return None
        found = self.statements(node, depth)
        if len(found) > 1:
            return syntax.CommandGroup(tuple(found), False, node.start_byte)
        return found[0] if found else None

    def compound(self, node: Node, depth: int) -> Statement | None:
        start = node.start_byte
        children = list(node.children)
        match node.type:
            case "list":
                return self.chain(children, depth, start)
            case "pipeline":
                return syntax.Pipeline(self.block(children, depth), start)
            case "negated_command":
                body = self.one(children[-1], depth)
                return None if body is None else syntax.Negation(body, start)
            case "if_statement":
                return self.if_statement(children, depth, start)
            case "for_statement" | "c_style_for_statement":
                return self.for_statement(node, depth)
            case "while_statement":
                return self.while_statement(children, depth, start)
            case "case_statement":
                return self.case_statement(node, depth)
            case "function_definition":
                return self.function(node, depth)
            case "subshell" | "do_group":
                return syntax.CommandGroup(self.block(children, depth), node.type == "subshell", start)
            case "compound_statement" if not children or children[0].type != "((":
                return syntax.CommandGroup(self.block(children, depth), False, start)
            case "compound_statement" | "test_command":
                return self.test(node)
        return None

    def chain(self, children: list[Node], depth: int, start: int) -> Statement | None:
        operator = next((child for child in children if child.type in ("&&", "||")), None)
        left = self.one(children[0], depth)
        right = self.one(children[-1], depth)
        if left is None or right is None or operator is None:
            return left or right
        return syntax.Chain(left, operator.type.encode(), right, start)

    def if_statement(self, children: list[Node], depth: int, start: int) -> syntax.If:
        branches: list[tuple[Statements, Statements]] = []
        otherwise: Statements = ()
        condition, body = _split(children, "then")
        plain = [node for node in body if node.type not in ("elif_clause", "else_clause")]
        branches.append((self.block(condition, depth), self.block(plain, depth)))
        for clause in body:
            if clause.type == "elif_clause":
                condition, rest = _split(list(clause.children), "then")
                branches.append((self.block(condition, depth), self.block(rest, depth)))
            elif clause.type == "else_clause":
                otherwise = self.block(list(clause.children), depth)
        return syntax.If(tuple(branches), otherwise, start)

    def for_statement(self, node: Node, depth: int) -> syntax.For:
        children = list(node.children)
        body = node.child_by_field_name("body") or children[-1]
        name = node.child_by_field_name("variable")
        inside = next((child for child in children if child.type == "in"), None)
        words = None if inside is None else tuple(scan_words(self.data, inside.end_byte))
        header = None
        if node.type == "c_style_for_statement":
            opening = next(child for child in children if child.type == "((")
            closing = next((child for child in children if child.type == "))"), opening)
            header = (opening.end_byte, closing.start_byte)
        self.cursor = max(self.cursor, body.start_byte)
        block = self.block(list(body.children), depth)
        return syntax.For(
            b"" if name is None else self.text(name), words, block, node.start_byte, node.end_byte, header
        )

    def while_statement(self, children: list[Node], depth: int, start: int) -> syntax.While:
        body = next((child for child in children if child.type == "do_group"), children[-1])
        condition = self.block(children[1 : children.index(body)], depth)
        block, until = self.block(list(body.children), depth), children[0].type == "until"
        return syntax.While(condition, block, until, start, body.end_byte)

    def case_statement(self, node: Node, depth: int) -> syntax.CaseStatement | None:
        subject = node.child_by_field_name("value")
        if subject is None:
            return None
        items: list[tuple[tuple[Word, ...], Statements, bytes]] = []
        for item in node.children:
            if item.type != "case_item":
                continue
            closing = next((child for child in item.children if child.type == ")"), None)
            if closing is None:
                continue
            patterns = tuple(scan_words(self.data, item.start_byte, b"|", closing.start_byte))
            self.cursor = max(self.cursor, closing.end_byte)
            ending = next((c.type.encode() for c in item.children if c.type in (";&", ";;&")), b";;")
            block = self.block([c for c in item.children if c.start_byte >= closing.end_byte], depth)
            items.append((patterns, block, ending))
        word = next(iter(scan_words(self.data, subject.start_byte)), Word(0, 0, ()))
        return syntax.CaseStatement(word, tuple(items), node.start_byte)

    def function(self, node: Node, depth: int) -> syntax.Function | None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return None
        self.cursor = max(self.cursor, body.start_byte)
        return syntax.Function(self.text(name), tuple(self.statements(body, depth)), node.start_byte)

    def test(self, node: Node) -> Statement | None:
        brackets = self.data[node.start_byte : node.start_byte + 2]
        if brackets in (b"[[", b"(("):
            return syntax.Test((node.start_byte + 2, node.end_byte - 2), brackets == b"[[", node.start_byte)
        found = self.simple(node)
        return found[0] if found else None

    def text(self, node: Node) -> bytes:
        return self.data[node.start_byte : node.end_byte]


def _split(children: list[Node], keyword: str) -> tuple[list[Node], list[Node]]:
    """Nodes before and after a keyword."""
    index = next((i for i, child in enumerate(children) if child.type == keyword), len(children))
    return children[:index], children[index + 1 :]
