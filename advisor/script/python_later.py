"""Finds where a Python program, or a module beside it, may change an option once its command has been read.

Followed are the names that hold the options: what a parser returned, what hydra hands to `main`, other names of the
same object, and the parameters of functions of these files that are called with it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from advisor.hostile import clean_line
from advisor.language import say
from advisor.script.document import Document, ScriptError
from advisor.script.files import is_file, load
from advisor.script.python_calls import COPIES, changes_of, is_held
from advisor.script.python_commands import LOADS
from advisor.script.python_file import parsed
from advisor.script.python_options import LIBRARIES, NAMING, filled_classes, is_parsing
from advisor.script.python_parser import options_of
from advisor.script.python_tree import called, calls, every, handed, imports, is_one, parameters, text
from advisor.script.python_value import assignments

_DEEPEST = 5
MOST_MODULES = 40
"""Files that are read of one program (judgement)."""
_SAME = ("copy", "deepcopy", "vars", "asdict", "dict", "structured", "create", "to_container")
"""Functions that return what they are handed, or a copy of it."""
_OF_COMMAND = ("from_cli", "from_dotlist")


class LaterChange(Struct, frozen=True):
    """Where an option may get another value. `hands_to`: a function that is not here, which is handed the options."""

    file: Path
    line: int
    any_key: bool = False
    """It changes keys that only running it would tell."""
    hands_to: str = ""

    def told(self, key: str) -> str:
        """Why the key is not changed in the command, in a sentence."""
        names = {"file": clean_line(str(self.file.name)), "line": self.line, "key": clean_line(key)}
        if self.hands_to:
            what = clean_line(self.hands_to, 60)
            return say(
                "Line {line} of {file} hands its options to {name}, which is not here: {key} may not stay.",
                name=what,
                **names,
            )
        return say("{key} may be changed by line {line} of {file} while it runs: change it there.", **names)


class _Module(Struct):
    path: Path
    tree: ast.Module
    absent: dict[str, str] = field(default_factory=dict)
    """Names that it imports of modules that are neither here nor of a library that is known."""


def changed_later(file: Path, key: str, known: Collection[str] = (), config: str = "") -> LaterChange | None:
    """The first place of a program or of the modules beside it that may change an option of the command, or of the
    `config` (its name) that has it, a place that names it before others. `known`: packages that change none.
    """
    modules = _modules(file, frozenset(known))
    places = [*_places(modules, key)]
    if config:  # it may win over the command
        places = [one for one in places if not one.any_key] + [*_places(modules, key, config)]
    return min(places, key=lambda place: (place.any_key, place.file, place.line), default=None)


def _places(modules: Sequence[_Module], key: str, config: str = "") -> Iterator[LaterChange]:
    *way, last = key.lstrip("-").replace("-", "_").split(".")
    for module, node, holders in _holders(modules, config):
        parts = ["".join(f".{part}" for part in way), "".join(f"[{part!r}]" for part in way)]
        inside = _aliases(node, {f"{holder}{part}" for holder in holders for part in parts}, config) if way else holders
        yield from (LaterChange(module.path, line, any_key) for line, any_key in _changes(node, inside, last))
        yield from (LaterChange(module.path, line, True) for line in _merged(node, holders, config))
        if not config and (handed := _handed_away(module, node, holders)) is not None:
            yield LaterChange(module.path, handed[0], True, handed[1])
    yield from _made_of(modules, last)
    for module in modules if not config else ():
        yield from (LaterChange(module.path, line) for line in _argv(module.tree, last))


def _modules(file: Path, known: frozenset[str]) -> list[_Module]:
    """The program and what it imports of the files beside it, each parsed."""
    found: dict[Path, _Module] = {}
    wanted = [file]
    while wanted and len(found) < MOST_MODULES:
        path = wanted.pop(0)
        if path in found:
            continue
        try:
            document: Document = load(path, "python")
            tree = parsed(document.data)
        except (ScriptError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        found[path] = module = _Module(path, tree)
        for name, own in imports(tree):
            if name.partition(".")[0] in known:
                continue
            near = [path.parent, *([] if name.startswith(".") else [file.parent])]
            here = [each for folder in near for each in _files(folder, name, own) if is_file(each)]
            wanted += here
            top = name.partition(".")[0]
            if not here and top and top not in sys.stdlib_module_names | LIBRARIES:
                module.absent[own or top] = name
    return [*found.values()]


def _files(folder: Path, name: str, own: str) -> Iterator[Path]:
    """The files that may be meant by a module's name."""
    bare = name.lstrip(".")
    for _ in range(len(name) - len(bare) - 1):
        folder = folder.parent
    base = folder.joinpath(*bare.split(".")) if bare else folder
    yield from (base.with_suffix(".py"), base / "__init__.py") if bare else ()
    yield from (base / f"{own}.py",) if own.isidentifier() else ()


_HoldingScope = tuple[_Module, ast.AST, set[str]]


def _holders(modules: Sequence[_Module], config: str) -> Iterator[_HoldingScope]:
    """Each file and function in which names hold the options, or what a config file says, with those names."""
    functions: dict[str, list[tuple[_Module, ast.FunctionDef]]] = {}
    classes = filled_classes([module.tree for module in modules])
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, []).append((module, node))
            elif isinstance(node, ast.ClassDef):
                inits = [made for made in node.body if isinstance(made, ast.FunctionDef) and made.name == "__init__"]
                functions.setdefault(node.name, []).extend((module, made) for made in inits)
                if node.name in classes:
                    yield module, node, {"self"}
    waiting: list[_HoldingScope] = []
    for module in modules:
        waiting.append((module, module.tree, set()))
        defined = every(module.tree, ast.FunctionDef)
        called_back = [node for node in defined if node.name.startswith("on_") and "args" in parameters(node)]
        waiting += [(module, node, {"args"}) for node in called_back]  # transformers' TrainerCallback
        mains = [node for node in defined if any("hydra.main" in ast.unparse(d) for d in node.decorator_list)]
        waiting += [(module, node, {each.arg for each in node.args.args[:1]}) for node in mains]
    seen: set[tuple[int, frozenset[str]]] = set()
    while waiting and len(seen) < 20 * MOST_MODULES:
        module, node, given = waiting.pop(0)
        holders = _aliases(node, given, config)
        mark = (id(node), frozenset(holders))
        if not holders or mark in seen:
            continue
        seen.add(mark)
        yield module, node, holders
        for call in calls(node):
            for other, function in functions.get(called(call), ()):
                named = parameters(function)
                named = named[1:] if named[:1] in (["self"], ["cls"]) else named
                taken = {name for name, value in handed(call, named) if is_held(value, holders)}
                if taken:
                    waiting.append((other, function, taken))


def _argv(tree: ast.Module, key: str) -> Iterator[int]:
    """Lines that put the option into the command themselves or sort words out, or have a parser read other words."""
    made = {ast.unparse(one.targets[0]): one.value for one in every(tree, ast.Assign)}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target]) | ast.AugAssign(target=target) if "sys.argv" in ast.unparse(target):
                pass
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=held))) if ast.unparse(held) == "sys.argv":
                pass
            case (
                ast.Call(args=[ast.expr() as given, *_]) | ast.Call(keywords=[ast.keyword(arg="args", value=given)])
            ) if is_parsing(node) and isinstance(made.get(ast.unparse(given), given), ast.List):
                yield node.lineno
                continue
            case ast.Call(args=[ast.ListComp(), *_]) if is_parsing(node):
                pass
            case _:
                continue
        words = [word.replace("-", "_") for word in map(text, every(node, ast.Constant)) if word]
        sorts_out = any(one.ifs for one in every(node, ast.comprehension))
        if any(word.lstrip("_").partition("=")[0] == key for word in words) or (
            sorts_out and (not words or any(word in f"__{key}=" for word in words))
        ):
            yield node.lineno


def _aliases(node: ast.AST, given: set[str], config: str) -> set[str]:
    """The names given, what parsers return (of a config: what loads it), and what is set to either."""
    holders = set(given)
    sets = [each for each in every(node, ast.Assign) if len(each.targets) == 1]
    for _ in range(4):
        for each in sets:
            value = each.value.value if isinstance(each.value, ast.Subscript) else each.value
            through = value.args if isinstance(value, ast.Call) and called(value) in (*_SAME, *COPIES, "merge") else []
            if any(_is_given(one, holders, config) for one in (value, *through)):
                target = each.targets[0]
                items = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                holders |= {ast.unparse(item) for item in items if isinstance(item, (ast.Name, ast.Attribute))}
    return holders


def _is_given(node: ast.expr, holders: set[str], config: str) -> bool:
    """Whether an expression is what the command gave, or what the config file says."""
    if not isinstance(node, ast.Call) or is_held(node, holders):
        return is_held(node, holders)
    if not config:
        return called(node) in _OF_COMMAND or is_parsing(node)
    named = [one for one in map(text, every(node, ast.Constant)) if "." in one]
    return LOADS.match(ast.unparse(node.func)) is not None and (not named or named[-1].endswith(config))


def _changes(node: ast.AST, holders: set[str], key: str) -> Iterator[tuple[int, bool]]:
    """Lines that may set an attribute of one of the holders to something else than the command gave, and whether they
    may set any.
    """
    tests = {id(each): under for each, under in _under(node, ())}
    for change in changes_of(node, holders):
        kept = change.value is not None and _keeps(change.value, key)
        kept = kept or any(_only_where_unset(test, key) for test in tests.get(id(change.node), ()))
        if change.key in ("", key) and not kept:
            yield change.node.lineno, not change.key


class _OptionFlow:
    """What the names of some files stand for: all that they are set to in their function, or in the file."""

    def __init__(self, trees: Sequence[ast.Module], key: str) -> None:
        self.key = key
        self.scopes: dict[int, list[ast.AST]] = {}
        self.sets: dict[tuple[int, str], list[ast.expr]] = {}
        self.functions: dict[str, ast.FunctionDef | ast.Lambda] = {}
        for tree in trees:
            self._read(tree, [tree])
        for call in [each for tree in trees for each in calls(tree)]:
            if (function := self.functions.get(called(call))) is not None:
                for name, value in handed(call, [each.arg for each in function.args.args]):
                    self.sets.setdefault((id(function), name), []).append(value)

    def _read(self, tree: ast.AST, scopes: list[ast.AST]) -> None:
        for node, tests in _under(tree, ()):
            if id(node) not in self.scopes:
                self.scopes[id(node)] = scopes
                for name, value in assignments(node):
                    if not any(_only_where_unset(test, name) for test in tests):
                        self.sets.setdefault((id(scopes[-1]), name), []).append(value)
                    if isinstance(value, ast.Lambda):
                        self.functions[name] = value
                if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                    self.functions |= {node.name: node} if isinstance(node, ast.FunctionDef) else {}
                    self._read(node, [*scopes, node])

    def stands_for(self, node: ast.Name) -> list[ast.expr]:
        scopes = reversed(self.scopes.get(id(node), []))
        return next((found for scope in scopes if (found := self.sets.get((id(scope), node.id)))), [])

    def is_it(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether an expression is the option, whatever way it came there."""
        match node:
            case ast.Name() if depth < _DEEPEST and (values := self.stands_for(node)):
                return len(values) < _DEEPEST and all(self.is_it(value, depth + 1) for value in values)
            case ast.BoolOp(op=ast.Or(), values=[inner, *_]) | ast.NamedExpr(value=inner):
                return self.is_it(inner, depth)
            case ast.Call(func=ast.Name(id="int" | "float" | "str" | "bool"), args=[inner]):
                return self.is_it(inner, depth)
            case ast.Call(func=ast.Attribute(attr="get"), args=[name, *_]):
                return text(name) == self.key
        return _keeps(node, self.key)

    def rests_on_it(self, node: ast.expr) -> bool:
        """Whether an expression is computed of the option."""
        waiting, seen = [node], set[int]()
        while waiting:
            for one in every(waiting.pop(), ast.expr):
                if _reads(one, self.key):
                    return True
                inner = self.stands_for(one) if isinstance(one, ast.Name) else []
                function = self.functions.get(getattr(one, "attr", getattr(one, "id", "")))
                if function is not None and id(function) not in seen:
                    seen.add(id(function))
                    given = [each.value for each in every(function, ast.Return) if each.value is not None]
                    inner = [*inner, *([function.body] if isinstance(function, ast.Lambda) else given)]
                waiting += [each for each in inner if id(each) not in seen]
                seen |= {id(each) for each in inner}
        return False


def _made_of(modules: Sequence[_Module], key: str) -> Iterator[LaterChange]:
    """Where a call is handed something computed of the option by the option's name, and none gets the option itself;
    where what reads it, or a function whose argument it is (click, fire, typer), makes another one of it.
    """
    flow, handed_on = _OptionFlow([module.tree for module in modules], key), list[tuple[Path, ast.expr]]()
    for made in modules:
        handed_on += [(made.path, each.value) for each in every(made.tree, ast.keyword) if each.arg == key]
        named = {name.partition(".")[0] for name, _ in imports(made.tree)} & NAMING
        for function in every(made.tree, ast.FunctionDef) if named else ():
            if key in [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]:
                yield from (LaterChange(made.path, one.lineno) for one in flow.sets.get((id(function), key), ()))
        for option in options_of(made.tree, {}):
            kind = option.told("type") if key in (option.dest, *option.names) else None
            reads = flow.functions.get(getattr(kind, "id", "")) or kind
            if reads is not None and (every(reads, ast.BinOp) or calls(reads, "max", "min")):
                yield LaterChange(made.path, reads.lineno)
    if not any(flow.is_it(value) for _, value in handed_on):
        yield from (LaterChange(path, value.lineno) for path, value in handed_on if flow.rests_on_it(value))


def _under(node: ast.AST, tests: tuple[ast.expr, ...]) -> Iterator[tuple[ast.AST, tuple[ast.expr, ...]]]:
    """What stands in a node, and the conditions under which it runs."""
    for child in ast.iter_child_nodes(node):
        inside = (*tests, node.test) if isinstance(node, ast.If) and child in node.body else tests
        yield child, inside
        yield from _under(child, inside)


def _reads(node: ast.expr, key: str) -> bool:
    match node:
        case ast.Attribute(attr=attr) | ast.Name(id=attr):
            return attr == key
        case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]) | ast.Subscript(slice=name):
            return text(name) == key
    return False


def _keeps(value: ast.expr, key: str) -> bool:
    """Whether an expression is the option itself, or that with a value for where none was given."""
    match value:
        case ast.BoolOp(op=ast.Or(), values=[first, *_]):
            return _reads(first, key)
        case ast.IfExp(test=test, orelse=other) if _only_where_unset(test, key):
            return _reads(other, key)
        case ast.Call(func=ast.Name(id="int" | "float" | "str" | "bool"), args=[inner]):
            return _reads(inner, key)
    return _reads(value, key)


def _only_where_unset(test: ast.expr, key: str) -> bool:
    """Whether a condition holds only where an option was not given: `args.key is None`, `not args.key`."""
    match test:
        case ast.Compare(left=left, ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=None)]):
            return _reads(left, key)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _reads(operand, key)
        case ast.BoolOp(op=ast.And(), values=values):
            return any(_only_where_unset(one, key) for one in values)
    return False


def _merged(node: ast.AST, holders: set[str], config: str) -> Iterator[int]:
    """Lines that merge something else over what the command, or the config, gave."""
    for call in calls(node, "merge"):
        given = [_is_given(one, holders, config) for one in call.args]
        if any(given) and not given[-1]:
            yield call.lineno


def _handed_away(module: _Module, node: ast.AST, holders: set[str]) -> tuple[int, str] | None:
    """Line and name of a function that nobody can read and that may change what it is handed: `args = fix(args)`."""
    for each in ast.walk(node):
        match each:
            case ast.Expr(value=ast.Call() as call) | ast.Assign(targets=[ast.Name()], value=ast.Call() as call):
                pass
            case _:
                continue
        kept = isinstance(each, ast.Expr) or (isinstance(each, ast.Assign) and is_one(each.targets[0], holders))
        name = ast.unparse(call.func)
        if kept and name.partition(".")[0] in module.absent and any(is_held(one, holders) for one in call.args):
            return each.lineno, name
    return None
