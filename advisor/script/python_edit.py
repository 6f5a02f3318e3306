"""Edits a Python config file: the literal of the branch that is taken, a new field, a field taken away."""

from __future__ import annotations

import ast
import keyword
import re

from advisor.bash.text import Varies
from advisor.hostile import clean_line
from advisor.language import listed
from advisor.regex import regex
from advisor.script.document import ANEW, Changes, EditRequest, Value, comment_text, encoded, refused
from advisor.script.python_file import FieldSource, PythonReading, parsed, text_of
from advisor.script.python_options import stopped_by
from advisor.script.python_tree import called, calls, every, handed, parameters

_NUMBER = regex(r"-?(?:\d+(?:_\d+)*|(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)\Z")
_NAMES = {**dict.fromkeys(("true", "True"), "True"), **dict.fromkeys(("false", "False"), "False"),
          **dict.fromkeys(("null", "none", "None"), "None")}  # fmt: skip
_TYPES = {"True": "bool", "False": "bool"}


class PythonEditor:
    def __init__(self, reading: PythonReading, changes: Changes) -> None:
        self.reading = reading
        self.data = reading.document.data
        self.changes = changes

    def setting(self, wanted: EditRequest) -> None:
        source = self.reading.find(wanted.key)
        self.refuse_changed(wanted)
        if wanted.value is None:
            if source is not None:
                self.remove(source, wanted)
        elif source is None:
            self.add(wanted, wanted.value)
        else:
            new = _NAMES.get(wanted.value, wanted.value) if isinstance(wanted.value, str) else wanted.value
            if not source.found.known or text_of(self.reading, source.found) != new:
                self.change(source, wanted, wanted.value)

    def refuse_changed(self, wanted: EditRequest) -> None:
        """Raises EditRefused where the file changes the field later, makes several configs, or checks what it is."""
        line = self.reading.changed.get(wanted.key, self.reading.changed.get(""))
        if line is not None:
            raise refused(
                "{key} may be changed by line {line} while the file runs: change it there.", wanted.key, line=line
            )
        self.in_one_config(wanted)
        if (line := stopped_by(parsed(self.data), wanted.key, {}, {})) is not None:
            raise refused(
                "Line {line} stops the run where {key} is another: change both by hand.", wanted.key, line=line
            )

    def in_one_config(self, wanted: EditRequest) -> None:
        """Raises EditRefused where nothing tells which config the run gets, or every round of a loop makes another."""
        if "." in wanted.key:
            return
        rivals, made = self.reading.rivals.get(wanted.key, []), self.reading.rivals.get("", [])
        lines = listed(map(str, sorted(rivals if len(rivals) > 1 else made)))
        if len(rivals) > 1:
            raise refused(
                "{key} is set in lines {lines}, and nothing tells which of them the run gets.", wanted.key, lines=lines
            )
        if made:
            raise refused(
                "The file makes several configs (lines: {lines}), and nothing tells which the run gets.", lines=lines
            )
        source, line = self.reading.find(wanted.key), self.reading.rounds.get(id(self.reading.holder))
        if line is not None and source is not None and not source.found.known:
            raise refused("{key} is another one in every round of line {line}.", wanted.key, line=line)

    def alone(self, source: FieldSource, wanted: EditRequest) -> None:
        """Raises EditRefused where what stands in a field's statement decides other things, too."""
        name, key = self.reading.handed.get(id(source.own)), wanted.key
        if name is not None:
            raise refused("{key} stands in {name}, which other calls are handed, too.", key, name=name)
        computed = (other for other in self.reading.fields if other.key != key and not other.found.known)
        for other in computed:
            read = (ast.unparse(node) for node in every(other.own, ast.Attribute) if node.attr == key)
            if any(each != ast.unparse(source.own) for each in read):  # of another object: that one stays as it is
                raise refused("{key} also decides {others}.", key, others=other.key)
        for named in every(source.own, ast.NamedExpr):
            raise refused("{key} also decides {others}.", key, others=named.target.id)

    def change(self, source: FieldSource, wanted: EditRequest, value: Value) -> None:
        """Replace what decides the field in its own statement: its literal, or the name or sum that stands there."""
        node = source.own
        self.alone(source, wanted)
        if isinstance(why := source.found.reason, Varies):
            raise refused(ANEW, wanted.key, why=why)
        if (name := several_calls(parsed(self.data), node)) is not None:
            raise refused("{key} is what each call of {name} gives it: change it there.", wanted.key, name=name)
        if isinstance(node, ast.IfExp):
            raise refused("{key} depends on a condition that only running the file would tell.", wanted.key)
        if isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func).endswith("ListConfig"):
            node = node.args[0]
        new = encoded(literal(value, self.reading.words.get(id(node), self.reading.raw(node))))
        self.changes.replace(0, self.reading.start(node), self.reading.end(node), new, wanted.key)
        self.comment(wanted, source.node)

    def add(self, wanted: EditRequest, value: Value) -> None:
        """A new field behind the last one of the class, or a new argument of the call."""
        part, dot, name = wanted.key.rpartition(".")
        holder = self.reading.parts.get(part) if dot else self.reading.holder
        if not name.isidentifier() or keyword.iskeyword(name):
            raise refused("{key} is not the name of a field.", wanted.key)
        shown = literal(value, b"")
        if isinstance(holder, ast.ClassDef):
            self.add_field(holder, wanted, shown)
        elif isinstance(holder, ast.Call) and id(holder) in self.reading.spread:
            self.add_behind(holder, name, wanted, encoded(shown))
        elif isinstance(holder, ast.Call) and (holder.keywords or holder.args or not dot):
            self.add_keyword(holder, wanted, encoded(name) + b"=", encoded(shown), b"")
        elif isinstance(own := self.reading.holder, ast.Call) and own.keywords and part.endswith("_kwargs"):
            self.add_entry(own, part, name, wanted, encoded(shown))
        elif (given := self.reading.given) is not None and not dot:
            raise refused(
                "The trainer gets {made} (line {line}), of which {key} cannot be read: set it there.",
                wanted.key,
                line=given.lineno,
                made=clean_line(ast.unparse(given), 60),
            )
        else:
            raise refused("The file has no config class that {key} could be added to.", wanted.key)

    def add_behind(self, call: ast.Call, name: str, wanted: EditRequest, shown: bytes) -> None:
        """An entry that wins over what the call is handed with `**`, whatever that holds."""
        spread, tree = [each.value for each in call.keywords if each.arg is None], parsed(self.data)
        if len(spread) > 1 or in_rounds(tree, spread[0]) or several_calls(tree, spread[0]):
            hidden = self.reading.spread[id(call)]
            raise refused("{key} may be among **{name} already: set it there.", wanted.key, name=hidden)
        inside, head = isinstance(spread[0], ast.Dict), b', "' + encoded(name) + b'": '
        end, tail = self.reading.end(spread[0]) - inside, b"" if inside else b"}"
        if not inside:
            self.changes.replace(0, self.reading.start(spread[0]), self.reading.start(spread[0]), b"{**")
        self.changes.replace(0, end, end, head + shown + tail, wanted.key, (len(head), len(head + shown)))
        self.comment(wanted, call)

    def add_entry(self, call: ast.Call, part: str, name: str, wanted: EditRequest, shown: bytes) -> None:
        """A new entry of the dictionary that the call is handed as an argument, which comes with it where it is new."""
        inside = next((each.value for each in call.keywords if each.arg == part), None)
        label = b'"' + encoded(name) + b'": '
        unread = ast.unparse(inside) if inside is not None else self.reading.spread.get(id(call))
        if inside is None and unread is None:
            self.add_keyword(call, wanted, encoded(part) + b"={" + label, shown, b"}")
        elif isinstance(inside, ast.Dict) and None not in inside.keys:
            head = (b", " if inside.values else b"") + label
            at = self.reading.end(inside.values[-1]) if inside.values else self.reading.end(inside) - 1
            self.changes.replace(0, at, at, head + shown, wanted.key, (len(head), len(head + shown)))
            self.comment(wanted, call)
        elif isinstance(inside, ast.Call) and called(inside) == "dict" and all(each.arg for each in inside.keywords):
            self.add_keyword(inside, wanted, encoded(name) + b"=", shown, b"")
        else:
            raise refused(
                "{key} may be among **{name} already: set it there.", wanted.key, name=clean_line(unread or part, 60)
            )

    def add_keyword(self, call: ast.Call, wanted: EditRequest, head: bytes, shown: bytes, tail: bytes) -> None:
        """A new argument behind the last one of the call."""
        given = [self.reading.end(item) for item in (*call.keywords, *call.args)]
        at = max(given) if given else self.reading.end(call) - 1
        head = (b", " if given else b"") + head
        self.changes.replace(0, at, at, head + shown + tail, wanted.key, (len(head), len(head + shown)))
        self.comment(wanted, call)

    def add_field(self, holder: ast.ClassDef, wanted: EditRequest, shown: str) -> None:
        fields = [s for s in holder.body if isinstance(s, (ast.AnnAssign, ast.Assign))]
        last = fields[-1]
        end = self.reading.end(last)
        at = self.data.find(b"\n", end)
        line = self.reading.offset(last.lineno, 0)
        indent = self.data[line : self.reading.start(last)]
        if indent.strip() or b";" in self.data[end : len(self.data) if at < 0 else at]:
            raise refused("The config class is written on one line; add the field by hand.")
        number = "int" if re.fullmatch(r"-?\d+", shown) else "float" if _NUMBER.match(shown) else "str"
        kind = _TYPES.get(shown, number)
        head = indent + encoded(f"{wanted.key}: {kind} = ")
        text = head + encoded(shown)
        note = b"  # " + comment_text(wanted.comment) if wanted.comment else b""
        if at < 0:
            lead, at, tail = self.reading.document.newline, len(self.data), b""
        else:
            lead, at, tail = b"", at + 1, self.reading.document.newline
        low = len(lead) + len(head)
        self.changes.replace(0, at, at, lead + text + note + tail, wanted.key, (low, low + len(encoded(shown))))

    def remove(self, source: FieldSource, wanted: EditRequest) -> None:
        node, holder, name = source.node, self.reading.holder, wanted.key
        lonely = not isinstance(holder, ast.ClassDef) or len(holder.body) == 1
        if lonely or not isinstance(node, (ast.AnnAssign, ast.Assign)):
            raise refused("{key} cannot be taken away without leaving a gap; do it by hand.", name)
        start, behind = self.reading.offset(node.lineno, 0), self.reading.document.line_end(self.reading.end(node))
        end = min(behind + 1, len(self.data))
        rest = self.data[self.reading.end(node) : end].strip()
        if self.data[start : self.reading.start(node)].strip() or (rest and not rest.startswith(b"#")):
            raise refused("{key} shares its line with others; take it away by hand.", name)
        self.changes.replace(0, start, end, b"")

    def comment(self, wanted: EditRequest, node: ast.AST) -> None:
        """Behind the statement, or above it where its line already ends in something."""
        if not wanted.comment:
            return
        end = self.reading.end(node)
        rest = self.data[end : self.reading.document.line_end(end)].rstrip(b"\r")
        if not rest.strip(b" \t,"):
            at = end + len(rest)
            self.changes.replace(0, at, at, b"  # " + comment_text(wanted.comment))
            return
        line = self.reading.offset(node.lineno, 0)  # type: ignore[attr-defined]
        indent = self.data[line : self.reading.start(node)]
        if not indent.strip():
            self.changes.replace(
                0, line, line, indent + b"# " + comment_text(wanted.comment) + self.reading.document.newline
            )


def several_calls(tree: ast.Module, value: ast.expr) -> str | None:
    """The function whose parameter an expression takes, where that is handed to something that calls it, or is called
    more than once.
    """
    functions = every(tree, ast.FunctionDef)
    around = [node for node in functions if node.lineno <= value.lineno <= (node.end_lineno or node.lineno)]
    read = {node.id for node in every(value, ast.Name)}
    function = around[-1] if around else None
    if function is None or function.decorator_list or read.isdisjoint(each.arg for each in function.args.args):
        return None
    method = any(function in node.body for node in every(tree, ast.ClassDef))
    kind = ast.Attribute if method else ast.Name
    own = [call for call in calls(tree, function.name) if isinstance(call.func, kind) and call not in calls(function)]
    launched = [
        call
        for call in calls(tree)
        if any(isinstance(arg, ast.Name) and arg.id == function.name for arg in call.args)
        and called(call) not in ("Fire", "run", "cli", "main")  # which hand it the options of the command
    ]
    taken = parameters(function)[method:]
    given = [value for call in own for name, value in handed(call, taken) if name in (*read, "") or method]
    given += [one for call in own for one in (*call.args, call.func) if method or isinstance(one, ast.Starred)]
    often = len(own) > 1 or launched or any(in_rounds(tree, one) or several_calls(tree, one) for one in given)
    return function.name if often else None


def in_rounds(tree: ast.Module, value: ast.expr) -> bool:
    """Whether an expression takes what every round of a loop makes anew."""
    read, at = {node.id for node in every(value, ast.Name)}, (value.lineno, value.col_offset)
    loops: list[ast.stmt | ast.expr] = [*every(tree, ast.For), *every(tree, ast.While)]
    loops += [*every(tree, ast.ListComp), *every(tree, ast.GeneratorExp)]
    around = (each for each in loops if (each.lineno, 0) <= at < (each.end_lineno or 0, each.end_col_offset or 0))
    return any(node.id in read for loop in around for node in every(loop, ast.Name) if isinstance(node.ctx, ast.Store))


def literal(value: Value, old: bytes) -> str:
    """A value as a Python literal; text keeps the quotes that the old literal had."""
    quoted = old[:1] in (b"'", b'"')
    if isinstance(value, tuple):
        return "[" + ", ".join(literal(item, b'"' if b'"' in old or b"'" in old else b"") for item in value) + "]"
    if not quoted and value in _NAMES:
        return _NAMES[value]
    if not quoted and _NUMBER.match(value) and not re.fullmatch(r"-?0\d+", value):
        return value
    sign = "'" if old[:1] == b"'" else '"'
    body = value.translate({ord("\\"): r"\\", ord(sign): "\\" + sign, 10: r"\n", 13: r"\r", 9: r"\t"})
    body = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\U{ord(c):08x}" for c in body)
    return sign + body + sign
