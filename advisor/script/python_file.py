"""Reads Python config files: fields of a config dataclass, or keywords of `…Config(…)` and `…Arguments(…)` calls."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.hostile import clean, clean_line
from advisor.language import listed, say
from advisor.regex import regex
from advisor.script.document import Document, ScriptError, Setting, Span, Value
from advisor.script.launch import Launch
from advisor.script.python_calls import (
    LOADER,
    TRAINER,
    AttributeChange,
    Setup,
    changes_inside,
    changes_of,
    config_names,
    find_setup,
    imported,
    is_dataclass,
    spell_out,
)
from advisor.script.python_commands import Entry, FileTable, Spread, entries, handed_on, overrides
from advisor.script.python_options import (
    given_options,
    is_filled,
    later_defaults,
    option_defaults,
    read_names,
    takes,
)
from advisor.script.python_tree import called, calls, every
from advisor.script.python_value import Evaluated, Evaluator, FileEnvironment, NameValues, assignments

_NEWLINE = regex(rb"\r\n|\n|\r")
_CONFIG_NAME = regex(r"(Config|Arguments|Args)$")


FieldNode = ast.AnnAssign | ast.Assign | ast.keyword | ast.expr


class FieldSource(Struct, frozen=True):
    """A setting of a Python file: the statement or keyword that sets it, and the expression that counts. `own` is the
    field's own expression, after the branches that are taken."""

    key: str
    node: FieldNode
    own: ast.expr
    found: Evaluated


class PythonReading(Struct):
    """A Python file read to the byte."""

    document: Document
    lines: list[int]
    shift: int
    fields: list[FieldSource] = field(default_factory=list)
    bases: tuple[str, ...] = ()
    holder: ast.ClassDef | ast.Call | None = None
    given: ast.expr | None = None
    """What the trainer gets as its config, where that is made in a way that is not read."""
    parts: dict[str, ast.Call] = field(default_factory=dict)
    """Calls beside the run's own config, by what their settings' keys begin with: "LoraConfig"."""
    spread: dict[int, str] = field(default_factory=dict)
    """`id` of a call → what it is handed with `**` and nobody can read: any key may be among it."""
    files: dict[int, FileTable] = field(default_factory=dict)
    """`id` of a config's call → the file whose content it is handed so."""
    trained: tuple[str, ...] = ()
    """The classes of all trainers that are made, the last one last."""
    rivals: dict[str, list[int]] = field(default_factory=dict)
    """Key → lines of the configs that set it, where nothing tells which of them the run gets; "": of all of them."""
    rounds: dict[int, int] = field(default_factory=dict)
    """`id` of a config's call → line of the loop that makes it anew in every round."""
    handed: dict[int, str] = field(default_factory=dict)
    """`id` of a value in a dictionary that several calls are handed → the dictionary."""
    changed: dict[str, int] = field(default_factory=dict)
    """Key → the line that may change it once the config is made; "": any key, where its name is computed."""
    words: dict[int, bytes] = field(default_factory=dict)
    """`id` of values that are words of a command → the quote that begins them."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that the file is known to be run with."""

    def start(self, node: ast.AST) -> int:
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def offset(self, line: int, column: int) -> int:
        return self.lines[line - 1] + column + (self.shift if line == 1 else 0)

    def find(self, key: str) -> FieldSource | None:
        return next((source for source in reversed(self.fields) if source.key == key), None)

    def raw(self, node: ast.AST) -> bytes:
        return self.document.data[self.start(node) : self.end(node)]


def read_python(
    document: Document, environment: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
) -> PythonReading:
    """Read a Python file as it would be run in an environment, with arguments. Raises ScriptError with the line of a
    syntax error, and where an argument is none of the file's own options."""
    name = clean_line(str(document.path))
    try:
        document.data.decode("utf-8")
        tree = parsed(document.data)
    except UnicodeDecodeError as error:
        line = document.line_of(error.start)
        raise ScriptError(say("{file}, line {line}: not UTF-8 text.", file=name, line=line)) from error
    except SyntaxError as error:
        problem = clean_line(error.msg or say("invalid syntax"), 200)
        where = {"file": name, "line": error.lineno or 1}
        raise ScriptError(say("{file}, line {line}: {problem}.", **where, problem=problem)) from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise ScriptError(say("{file}: not a Python file that can be parsed.", file=name)) from error
    lines = [0, *(found.end() for found in _NEWLINE.finditer(document.data))]
    spell_out(tree)
    reading = PythonReading(document, lines, 3 if document.data.startswith(b"\xef\xbb\xbf") else 0)
    reading.environment = FileEnvironment(environment or {}, tree)
    try:
        _read_module(reading, tree, arguments)
    except RecursionError as error:
        raise ScriptError(say("{file}: nested too deeply to be a config file.", file=name)) from error
    return reading


_MAGIC = regex(rb"^([ \t]*)[%!](?=[%A-Za-z])", re.MULTILINE)
"""What a notebook runs that is no Python: "%%writefile train.py", "!pip install trl"."""


def parsed(data: bytes) -> ast.Module:
    """The syntax tree. What was cut out of a function begins with blanks: it is parsed as the body of something. The
    magics of a notebook count as comments. Raises SyntaxError, and what `ast` raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = _MAGIC.sub(rb"\1#", data)
        try:
            return ast.parse(data)
        except IndentationError as error:
            with suppress(SyntaxError):
                first, *others = ast.parse(b"if 1:\n" + data).body
                assert isinstance(first, ast.If)
                return ast.increment_lineno(ast.Module([*first.body, *others], []), -1)
            raise error from None


def takes_option(document: Document, key: str, *, configured: bool = False) -> bool | None:
    """Whether a well-formed Python file reads an option of this name from its command; None: nobody knows."""
    return takes(parsed(document.data), key, configured)


def _read_module(reading: PythonReading, tree: ast.Module, arguments: Sequence[str]) -> None:
    given = given_options(tree, arguments)
    classes = {statement.name: statement for statement in tree.body if isinstance(statement, ast.ClassDef)}
    values = NameValues(tree, reading.environment)
    names = values.at(tree)
    setup = find_setup(tree, values, reading.document.trainer)
    made = {called(call) for call in setup.configs}
    candidates = [node for node in classes.values() if _is_config(node, made)]
    reading.given = setup.given
    if candidates:
        holder = max(candidates, key=lambda node: (sum(1 for _ in _fields(node)), node.lineno))
        _read_class(reading, holder, classes, names)
        if not setup.trainer and holder.name not in made:
            return
        if not holder.bases and is_filled(holder.name, tree):
            read = read_names(tree)
            reading.fields = [source for source in reading.fields if source.key in read]
    if setup.configs or setup.parts:  # numbers alone are any program's
        evaluator = Evaluator(names, reading.environment)
        options = {key: evaluator.evaluate(value) for key, value in option_defaults(tree, classes)}
        options |= {key: Evaluated(value) for key, value in given.items()}
        for option in options:
            owner, _, name = option.rpartition(".")
            defaults = name in later_defaults(tree) and option not in given
            if defaults or any(change.key in ("", name) for change in changes_of(tree, {owner})):
                options[option] = Evaluated(reason=say("{name} is set in several places", name=option))
        values.options = options
        setup.parts = [(prefix, call) for prefix, call in setup.parts if values.holds(call)]
        _read_setup(reading, setup, values, Spread(tree, values))
        loaders = [ast.unparse(call.func).partition(".")[0] for prefix, call in setup.parts if prefix == LOADER]
        reading.bases += tuple(imported(tree, classes, (*reading.bases, *loaders)))
        holders, last = config_names(tree, setup), _last_training(tree, values)
        around = values.scope(setup.configs[-1]) if setup.configs else None
        for change in (*changes_of(tree, holders), *changes_inside(tree, setup, holders)):
            inside = values.scope(change.node)
            if last is None or inside is not None or change.node.lineno <= last:
                handed = inside is not None and inside is not around and _takes_over(inside, change.node)
                _read_change(reading, replace(change, value=None) if handed else change, values)
        _read_handed(reading, tree, values)
        return
    for key, value in () if candidates else overrides(tree, reading.document.data):
        _add(reading, key, value, value, {})
        reading.words[id(value)] = b""
    _read_handed(reading, tree, values)
    modules = {one.name.partition(".")[0] for node in tree.body if isinstance(node, ast.Import) for one in node.names}
    loops = not modules.isdisjoint(("torch", "lightning"))
    for statement in tree.body:  # a fragment of a config class, or what a loop of one's own is set by
        if isinstance(statement, ast.AnnAssign) or (
            loops and isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        ):
            for key, value in assignments(statement):
                _add(reading, key, statement, value, names)


def _read_handed(reading: PythonReading, tree: ast.Module, values: NameValues) -> None:
    """What a launcher hands to a function of the file, where the file's configs have no setting of that name."""
    for key, value in handed_on(tree, values):
        if reading.find(key) is None:
            _add(reading, key, value, value, values.at(value))


def _takes_over(function: ast.AST, node: ast.AST) -> bool:
    """Whether the object that a statement of a function changes is what the function is called with, each time anew."""
    given = {each.arg for each in every(getattr(function, "args", function), ast.arg)}
    target = node.targets[0] if isinstance(node, ast.Assign) else node
    return any(one.id in given for one in every(target, ast.Name))


def _last_training(tree: ast.Module, values: NameValues) -> int | None:
    """The last line that trains, where all of that is the file's own: what it sets behind it, no training gets."""
    trains = calls(tree, "train")
    own = bool(trains) and all(values.scope(call) is None for call in trains)
    return max(call.lineno for call in trains) if own else None


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.AnnAssign | ast.Assign, ast.expr]]:
    for statement in node.body:
        for key, value in assignments(statement):
            if isinstance(statement, (ast.AnnAssign, ast.Assign)):
                yield key, statement, value


def _is_config(node: ast.ClassDef, made: Collection[str]) -> bool:
    """`made`: classes whose calls are read; of one derived without being a dataclass, the call alone counts."""
    named = _CONFIG_NAME.search(node.name) is not None and not (node.bases and node.name in made)
    return (is_dataclass(node) or named) and any(True for _ in _fields(node))


def _read_class(
    reading: PythonReading, node: ast.ClassDef, classes: dict[str, ast.ClassDef], names: dict[str, Evaluated]
) -> None:
    reading.holder = node
    reading.bases = tuple(clean(ast.unparse(base), 200) for base in node.bases)
    chain, current, seen = [node], node, {node.name}
    while True:
        parent = next((b.id for b in current.bases if isinstance(b, ast.Name) and b.id in classes), None)
        if parent is None or parent in seen:
            break
        seen.add(parent)
        current = classes[parent]
        chain.append(current)
    for number, holder in reversed([*enumerate(chain)]):
        if not is_dataclass(holder) and any(map(is_dataclass, chain[number + 1 :])):
            continue  # what it sets is no field: the values of the class that it is derived from are taken
        scope = dict(names)
        for key, statement, value in _fields(holder):
            scope[key] = _add(reading, key, statement, value, scope)


def _add(
    reading: PythonReading, key: str, statement: FieldNode, value: ast.expr, scope: dict[str, Evaluated]
) -> Evaluated:
    found = Evaluator(scope, reading.environment).evaluate(value)
    reading.fields.append(FieldSource(key, statement, _taken(reading, value, scope), found))
    return found


def _taken(reading: PythonReading, node: ast.expr, scope: dict[str, Evaluated]) -> ast.expr:
    """The branch of (nested) conditional expressions that counts; the whole where it cannot be told."""
    for _ in range(40):
        if not isinstance(node, ast.IfExp):
            break
        test = Evaluator(scope, reading.environment).evaluate(node.test)
        if not test.known:
            break
        node = node.body if test.value else node.orelse
    return node


def _read_change(reading: PythonReading, change: AttributeChange, values: NameValues) -> None:
    """What the file sets of its config after the config was made: exact where it surely does so, else unknown."""
    if change.value is not None and isinstance(change.node, ast.Assign) and values.is_certain(change.node):
        _add(reading, change.key, change.node, change.value, values.at(change.node))
        return
    line = change.node.lineno
    reading.changed[change.key] = line
    for key in [change.key] if change.key else dict.fromkeys(source.key for source in reading.fields):
        found = Evaluated(reason=say("line {line} may change it while the file runs", line=line))
        own = change.node if isinstance(change.node, ast.expr) else ast.Constant(None)
        reading.fields.append(FieldSource(key, own, own, found))


_COUNTS = regex(r"(?:^|_)(?:r|rank|length|len|tokens|batch_size)$")
"""Ends of arguments that are counts, never objects of the program: one that cannot be read is a setting, too."""


def _read_setup(reading: PythonReading, setup: Setup, values: NameValues, spread: Spread) -> None:
    """Keywords of the run's own config under their names; those of other calls, as far as they are known, under the
    call's, where the call itself counts as a switch."""
    handed: dict[int, list[tuple[Entry, str]]] = {}
    for call in (*setup.configs, *(call for _, call in setup.parts)):
        for keyword in call.keywords:
            found = None if keyword.arg else spread.listed(keyword.value)
            handed[id(keyword)] = found or []
            if found is None and keyword.arg is None:
                reading.spread[id(call)] = clean_line(ast.unparse(keyword.value), 60)
                if call in setup.configs and (file := spread.file(keyword.value)) is not None:
                    reading.files[id(call)] = file
    reading.holder = setup.configs[-1] if setup.configs else reading.holder
    reading.trained = setup.trained
    classes = [called(call) for call in reversed(setup.configs)] + [setup.trainer] * bool(setup.trainer)
    reading.bases = tuple(dict.fromkeys((*(clean(name, 200) for name in classes), *reading.bases)))
    for prefix, call in setup.parts:
        reading.parts[prefix] = call
        names = values.at(call)
        what = setup.trainer if prefix == TRAINER else True
        reading.fields.append(FieldSource(prefix, call.func, call.func, Evaluated(what, call.func, "", (call.func,))))
        for number, value in enumerate(call.args):
            _add_part(reading, f"{prefix}.{number}", value, value, names)
        for keyword in call.keywords:
            left_out = prefix == TRAINER and isinstance(keyword.value, ast.Constant) and keyword.value.value is None
            if keyword.arg and _COUNTS.search(keyword.arg) and not left_out:
                _add(reading, f"{prefix}.{keyword.arg}", keyword, keyword.value, names)
            elif keyword.arg and not left_out:
                _add_part(reading, f"{prefix}.{keyword.arg}", keyword, keyword.value, names)
    for name, told in setup.numbers:
        _add(reading, name, told, told, {})
    for key, keyword in setup.lengths:
        _add(reading, key, keyword, keyword.value, values.at(keyword.value))
    if setup.trainer and setup.configs:
        own = setup.configs[-1].func
        taken = Evaluated(called(setup.configs[-1]), own, "", (own,))
        reading.fields.append(FieldSource(f"{TRAINER}.args", own, own, taken))
    if setup.rivals:
        reading.rivals[""] = [call.lineno for call in setup.configs]
    before = len(reading.fields)
    for call in setup.configs:
        names = values.at(call)
        if (loop := values.loop(call)) is not None:
            reading.rounds[id(call)] = loop.lineno
        for keyword in call.keywords:
            if keyword.arg and setup.rivals:
                reading.rivals.setdefault(keyword.arg, []).append(keyword.value.lineno)
            if keyword.arg:
                if not _add_part(reading, keyword.arg, keyword, keyword.value, names, inside_only=True):
                    _add(reading, keyword.arg, keyword, keyword.value, names)
                continue
            for (name, node, value), several in handed.get(id(keyword), ()):
                _add(reading, name, node, value, values.at(value))
                if several:
                    reading.handed[id(value)] = several
    if setup.rivals:
        _doubt(reading, reading.fields[before:], len(setup.configs))


def _doubt(reading: PythonReading, sources: list[FieldSource], configs: int) -> None:
    """What several configs set, of which the run gets one, is known only where all of them agree."""
    for key in dict.fromkeys(source.key for source in sources):
        same = [source for source in sources if source.key == key]
        texts = {str(text_of(reading, source.found)) if source.found.known else None for source in same}
        if len(same) != configs or len(texts) > 1:
            found = Evaluated(reason=say("nothing tells which of several configs the run gets"))
            reading.fields.append(FieldSource(key, same[-1].node, same[-1].own, found))


def _add_part(
    reading: PythonReading,
    key: str,
    node: FieldNode,
    value: ast.expr,
    names: dict[str, Evaluated],
    *,
    inside_only: bool = False,
) -> bool:
    """An argument that is known, or what a dictionary handed over as one holds. Objects of the program are none.
    Returns whether it is a dictionary that is known to its last entry."""
    pairs = entries(value, partly=True) or []
    known = [pair for pair in pairs if Evaluator(names, reading.environment).evaluate(pair[2]).known]
    for name, inner, own in known:
        _add(reading, f"{key}.{name}", inner, own, names)
    if not pairs and not inside_only and Evaluator(names, reading.environment).evaluate(value).known:
        _add(reading, key, node, value, names)
    return bool(known) and len(known) == len(entries(value) or [])


def python_launch(reading: PythonReading) -> Launch:
    """The file as one launch whose settings are the fields."""
    path = str(reading.document.path)
    last = {source.key: number for number, source in enumerate(reading.fields)}
    rests_on: dict[int, list[str]] = {}
    for source in reading.fields:
        for node in source.found.sources:
            rests_on.setdefault(reading.start(node), []).append(source.key)
    settings: list[Setting] = []
    for number, source in enumerate(reading.fields):
        literal = source.found.literal
        span = None
        shared: tuple[str, ...] = ()
        if literal is not None:
            start = reading.start(literal)
            span = Span(path, literal.lineno, start, reading.end(literal))
            shared = tuple(dict.fromkeys(key for key in rests_on.get(start, ()) if key != source.key))
        value = None if not source.found.known else text_of(reading, source.found)
        settings.append(
            Setting(
                clean(source.key), value, "file", value is not None, last[source.key] == number, span,
                clean(source.found.reason), shared,
            )
        )  # fmt: skip
    assumed = dict.fromkeys(name for source in reading.fields for name in source.found.assumed)
    notes = tuple(say("${name} is taken as not set in the environment.", name=clean(name, 100)) for name in assumed)
    if len(reading.trained) > 1:
        chosen, names = reading.document.trainer, listed(clean_line(name, 60) for name in reading.trained)
        of_last = say("The file makes several trainers ({names}): what is told is of the last.", names=names)
        number = 0 if chosen is None else chosen + 1
        told = say(
            "The file makes several trainers ({names}): what is told is of number {number}.", names=names, number=number
        )
        notes = (*notes, of_last if chosen is None else told)
    program = clean_line(reading.document.path.stem)
    own = reading.environment.texts if isinstance(reading.environment, FileEnvironment) else {}
    environment = {**reading.environment, **{clean(name, 100): clean_line(text, 200) for name, text in own.items()}}
    return Launch(0, program, (), environment, tuple(settings), files=(path,), bases=reading.bases, notes=notes)


def text_of(reading: PythonReading, found: Evaluated) -> Value:
    """A value as text: numbers as they are written, True, False and None by name, lists as tuples."""
    if isinstance(found.value, list):
        return tuple(clean(str(text_of(reading, item)), 100_000) for item in found.value)
    if isinstance(found.value, (int, float)) and not isinstance(found.value, bool) and found.literal is not None:
        return reading.raw(found.literal).decode("utf-8", "replace")
    return clean(str(found.value), 100_000)
