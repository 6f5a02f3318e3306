"""Reads what a Python file starts a training with: hydra's overrides (`compose(overrides=[…])`), what a launcher hands
to a function of the file (`notebook_launcher(train, (8, 4))`), and what a call is handed with `**`: a dictionary, a row
of a table, the content of a file.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from msgspec import Struct

from advisor.regex import regex
from advisor.script.python_calls import once_set
from advisor.script.python_tree import called, calls, every, is_one, parameters, parents, text
from advisor.script.python_value import Evaluator, NameValues

_OVERRIDE = regex(r"\+{0,2}([\w./@-]+)=(.*)\Z")
_CHANGES_WHOLE = ("update", "merge", "merge_with", "merge_with_dotlist", "setattr", "set", "unsafe_merge", "modify")
"""Functions and methods that change any key of a config of OmegaConf's."""
_BEFORE = {"notebook_launcher": 0, "debug_launcher": 0, "Process": 0, "spawn": 1, "start_processes": 1}
"""Launchers (accelerate, torch.multiprocessing) that call a function with `args`, and how many come before those."""


def overrides(tree: ast.Module, source: bytes) -> Iterator[tuple[str, ast.expr]]:
    """Key and value of the overrides that the file's one `compose` hands to hydra: the value is a part of its text."""
    given = [each.value for call in calls(tree, "compose") for each in call.keywords if each.arg == "overrides"]
    words = _told_once(tree, given[0]) if len(given) == len(calls(tree, "compose")) == 1 else None
    entries = (one for one in every(tree, ast.AST) if isinstance(one, (ast.Attribute, ast.Subscript)))
    if calls(tree, *_CHANGES_WHOLE) or not all(isinstance(one.ctx, ast.Load) for one in entries):
        return
    out: dict[str, ast.expr] = {}
    for word in words.elts if isinstance(words, ast.List) else ():
        found = _OVERRIDE.match(text(word.values[0] if isinstance(word, ast.JoinedStr) and word.values else word))
        if found is None:
            return
        out.pop(found[1], None)
        if ast.get_source_segment(source.decode(), word) in (f'"{found[0]}"', f"'{found[0]}'"):
            out[found[1]] = value = ast.copy_location(ast.Constant(found[2]), word)
            value.end_col_offset = (word.end_col_offset or 0) - 1
            value.col_offset = value.end_col_offset - len(found[2].encode())
    yield from out.items()


def _told_once(tree: ast.Module, node: ast.expr, shown_only: Collection[int] = ()) -> ast.expr | None:
    """What an expression stands for, where nothing else can change it: itself, or what its name is set to."""
    if not isinstance(node, ast.Name):
        return node
    read = (one for one in every(tree, ast.Name) if one.id == node.id and isinstance(one.ctx, ast.Load))
    alone = all(one is node or id(one) in shown_only for one in read)
    return dict(once_set(tree)).get(node.id) if alone else None


def handed_on(tree: ast.Module, values: NameValues) -> Iterator[tuple[str, ast.expr]]:
    """Parameter, or key that it is read by, and value of what a launcher hands to the one function that it calls."""
    functions = {node.name: node for node in every(tree, ast.FunctionDef)}
    names = [node.id for node in every(tree, ast.Name)]
    for call in calls(tree):
        named = {each.arg or "": each.value for each in call.keywords}
        taking = [functions.get(ast.unparse(one)) for one in (*call.args[:1], *named.values())]
        function, before = next(filter(None, taking), None), _BEFORE.get(called(call))
        once = values.loop(call) is None and values.is_certain(call)
        if function is None or names.count(function.name) != 1 or not once:
            continue
        given = [*filter(None, (named.get("train_loop_config"), named.get("args"))), *call.args[1:2]]
        made, taken = _told_once(tree, given[0]) if given else None, parameters(function)
        if before is not None and isinstance(made, (ast.Tuple, ast.List)):
            changed = {one.id for one in every(function, ast.Name) if not isinstance(one.ctx, ast.Load)}
            starred = any(isinstance(one, ast.Starred) for one in made.elts)
            pairs = zip(taken[before:], () if starred else made.elts, strict=False)
            yield from ((name, value) for name, value in pairs if name not in changed)
        elif "train_loop_config" in named and isinstance(made, ast.Dict) and taken:
            read = _entries_read(function, taken[0])
            yield from ((text(key), one) for key, one in zip(made.keys, made.values, strict=True) if text(key) in read)


def _entries_read(function: ast.FunctionDef, name: str) -> set[str]:
    """The entries of a parameter that a function reads by their keys; none where it does anything else to it."""
    inside = (one for one in every(function, ast.Subscript) if isinstance(one.ctx, ast.Load))
    keys = [one.slice for one in inside if is_one(one.value, [name])]
    got = ((call.args[0], call.func) for call in calls(function, "get") if call.args)
    keys += [key for key, asked in got if isinstance(asked, ast.Attribute) and is_one(asked.value, [name])]
    names = [one for one in every(function, ast.Name) if one.id == name]
    return {*map(text, keys)} - {""} if len(keys) == len(names) else set()


Entry = tuple[str, ast.keyword | ast.expr, ast.expr]
"""Key, node and expression of one entry of a dictionary."""
_READS = ("list", "sorted", "len", "print", "set", "tuple")
LOADS = regex(r"(?:json|tomllib|tomli|toml|yaml|OmegaConf)\.\w*load\w*\Z")


class FileTable(Struct, frozen=True):
    """A file that is loaded, and the table of it ("" for all) that is handed over."""

    name: str
    table: str


def entries(value: ast.expr, *, partly: bool = False) -> list[Entry] | None:
    """What a dictionary holds; None where a key cannot be read, or it is none. `partly`: the keys that can be read."""
    if isinstance(value, ast.Dict):
        keys = zip(value.keys, value.values, strict=True)
        found: list[Entry] = [
            (k.value, v, v) for k, v in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)
        ]
        return found if partly or len(found) == len(value.keys) else None
    if isinstance(value, ast.Call) and called(value) == "dict":
        found = [(k.arg, k, k.value) for k in value.keywords if k.arg]
        return found if partly or (len(found) == len(value.keywords) and not value.args) else None
    return None


class Spread:
    """What names stand for that a file sets once and changes nowhere."""

    def __init__(self, tree: ast.Module, values: NameValues) -> None:
        self.values = values
        self.parents = parents(tree)
        self.loads: dict[str, list[ast.Name]] = {}
        for node in every(tree, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self.loads.setdefault(node.id, []).append(node)
        opened = (item for node in every(tree, ast.With) for item in node.items)
        self.streams = {
            item.optional_vars.id: item.context_expr for item in opened if isinstance(item.optional_vars, ast.Name)
        }
        self.once = dict(once_set(tree))
        self.handed = {name: self._handed(name) for name in self.once}
        """Name → how often it is handed on; None where something may change what it stands for."""

    def _handed(self, name: str, depth: int = 0) -> int | None:
        loads = self.loads.get(name, [])
        rows = [parent.slice for load in loads if isinstance(parent := self.parents[id(load)], ast.Subscript)]
        counts = [self._part(load, [ast.dump(row) for row in rows], depth) for load in loads]
        return None if depth > 5 or None in counts else sum(count or 0 for count in counts)

    def _part(self, node: ast.expr, rows: list[str], depth: int) -> int | None:
        """1 where an expression is handed on, 0 where it is only looked at, None where it may be changed."""
        parent = self.parents[id(node)]
        match parent:
            case ast.keyword(arg=None):
                return 1
            case ast.Dict(keys=keys, values=values):
                return 1 if any(k is None and v is node for k, v in zip(keys, values, strict=True)) else None
            case ast.Compare() | ast.FormattedValue() | ast.Attribute(attr="keys"):
                return 0
            case ast.Call() if called(parent) in _READS and parent.func is not node:
                return 0
            case ast.Subscript(value=inner, ctx=ast.Load(), slice=row) if inner is node:
                outer = self.parents[id(parent)]
                if isinstance(outer, ast.Subscript) and isinstance(outer.ctx, ast.Load) and outer.value is parent:
                    return self._part(parent, [], depth) or 0
                found = self._part(parent, [], depth)
                other = isinstance(row, ast.Constant) and rows.count(ast.dump(row)) == 1
                apart = other and isinstance(outer, (ast.Call, ast.keyword, ast.BinOp, ast.Assign))
                return 0 if found is None and apart else found
            case ast.Assign(targets=[ast.Name(id=name)]) if name in self.once:
                return self._handed(name, depth + 1)
        return None

    def behind(self, node: ast.expr, depth: int = 0) -> tuple[ast.expr, str]:
        """What an expression stands for, and the name that it was reached by last; itself where that is not known."""
        if depth < 20 and isinstance(node, ast.Name) and self.handed.get(node.id) is not None:
            found, name = self.behind(self.once[node.id], depth + 1)
            return found, name or node.id
        if depth < 20 and isinstance(node, ast.Subscript):
            table, name = self.behind(node.value, depth + 1)
            row = Evaluator(self.values.at(node), self.values.environment).evaluate(node.slice)
            rows = [value for key, _, value in entries(table) or () if row.known and key == row.value]
            return self.behind(rows[-1], depth + 1)[0] if rows else node, name
        return node, ""

    def listed(self, value: ast.expr) -> list[tuple[Entry, str]] | None:
        """All of `entries`; None where one cannot be read."""
        try:
            return list(self.entries(value))
        except LookupError:
            return None

    def entries(self, value: ast.expr, name: str = "") -> Iterator[tuple[Entry, str]]:
        """The entries of what is handed over, each with the name of the dictionary that several calls are handed.
        Raises LookupError where one cannot be read."""
        found, reached = self.behind(value)
        name = reached if (self.handed.get(reached) or 0) > 1 else name
        if isinstance(found, ast.Dict):
            for key, inner in zip(found.keys, found.values, strict=True):
                if key is None:
                    yield from self.entries(inner, name)
                elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield (key.value, inner, inner), name
                else:
                    raise LookupError
            return
        listed = entries(found)
        if listed is None:
            raise LookupError
        yield from ((entry, name) for entry in listed)

    def file(self, value: ast.expr) -> FileTable | None:
        """The file whose content is handed over."""
        keys: list[str] = []
        node, _ = self.behind(value)
        while isinstance(node, ast.Subscript):
            key = Evaluator(self.values.at(node), self.values.environment).evaluate(node.slice)
            if not isinstance(key.value, str):
                return None
            keys.insert(0, key.value)
            node, _ = self.behind(node.value)
        given = node.args if isinstance(node, ast.Call) and LOADS.match(ast.unparse(node.func)) else []
        stream = next(iter(given), None)
        stream = self.streams.get(stream.id, stream) if isinstance(stream, ast.Name) else stream
        if not isinstance(stream, ast.Call) or ast.unparse(stream.func) != "open" or not stream.args:
            return None
        name = Evaluator(self.values.at(stream), self.values.environment).evaluate(stream.args[0])
        return FileTable(name.value, ".".join(keys)) if isinstance(name.value, str) and not name.assumed else None
