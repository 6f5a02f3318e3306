"""Evaluates Python expressions as far as they follow from the file alone, and tells what its variables are worth where
they are used: by scope and in order. Nothing is executed.

What depends on a condition, a loop, or who calls is unknown, unless there is but one place that sets it.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise

from msgspec import Struct
from msgspec.structs import replace

from advisor.bash.text import Varies
from advisor.language import mark, say
from advisor.regex import regex
from advisor.script.python_tree import every, parents

_MAX_DEPTH = 40
_AS_TEXT = (-1, ord("s"))
"""Conversions of `{value}` and `{value!s}`."""
_DRAWS = regex(r"\.suggest_\w+\Z|^(?:np\.|numpy\.)?random\.|^wandb\.config\b")
"""Calls that a search or a draw answers, another value in every run."""
_RUNS = mark("an expression that only running it would tell")
_LONGEST = 100_000
_DTYPE = regex(r"(?:b?float|u?int|half|double|bool)\d*(?:_\w+)?\Z")
"""A type of torch's numbers: `torch.bfloat16` is as good as its name."""
ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], Callable[[object, object], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
ORDERED: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_MOST = 1e30
"""Numbers above it are not computed with."""

PythonValue = int | float | str | bool | None | list["Evaluated"]
_CONVERSIONS: dict[str, Callable[[int | float | str | bool], PythonValue]] = {
    "int": int, "float": float, "str": str, "bool": bool,
}  # fmt: skip


class Evaluated(Struct, frozen=True):
    """What an expression is worth. `literal` is the one node that decides it, None where it is computed. `reason` is
    not empty where the value is not known. `sources` are all literals it rests on; `assumed` names environment
    variables that were taken as not set."""

    value: PythonValue = None
    literal: ast.expr | None = None
    reason: str = ""
    sources: tuple[ast.expr, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the value follows from the file."""
        return not self.reason


class FileEnvironment(dict[str, str]):
    """The variables that a file is run with. Those that it sets itself may not be set yet where it reads them; `texts`
    has what they are once it trains."""

    def __init__(self, given: Mapping[str, str], tree: ast.Module) -> None:
        super().__init__(given)
        self.own = {name for node in every(tree, ast.AST) for name in _set_variables(node)}
        self.texts = set_once(tree)

    def sets(self, name: str) -> bool:
        return name in self.own or "" in self.own


def _set_variables(node: ast.AST) -> Iterator[str]:
    """Environment variables that a node sets; "": any."""
    name: ast.expr | None = None
    match node:
        case ast.Subscript(value=ast.Attribute(attr="environ") | ast.Name(id="environ"), slice=name, ctx=ast.Store()):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="setdefault"), args=[name, *_]):
            pass
        case ast.Call(func=ast.Attribute(attr="putenv"), args=[name, *_]):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="update"), args=args):
            keys = args[0].keys if len(args) == 1 and isinstance(args[0], ast.Dict) else [None]
            yield from (str(key.value) if isinstance(key, ast.Constant) else "" for key in keys)
        case ast.Call(func=ast.Name(id="load_dotenv")):
            yield ""
    if name is not None:
        yield name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


def set_once(tree: ast.Module) -> dict[str, str]:
    """The variables that the file itself sets, each to one text, where nothing decides whether it does."""
    main = [node.body for node in tree.body if isinstance(node, ast.If) and "__main__" in ast.dump(node.test)]
    found: dict[str, list[str]] = {}
    texts: list[str | None]
    for node in (*tree.body, *chain.from_iterable(main)):
        match node:
            case ast.Assign(targets=[ast.expr() as target], value=ast.Constant(value=str() as text)):
                names, texts = _set_variables(target), [text]
            case ast.Expr(value=ast.Call(args=[_, ast.Constant(value=str() as text)]) as call):
                names, texts = _set_variables(call), [text]
            case ast.Expr(value=ast.Call(args=[ast.Dict(values=values)]) as call):
                names = _set_variables(call)
                texts = [
                    one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else None
                    for one in values
                ]
            case _:
                continue
        for name, told in zip(names, texts, strict=False):
            if isinstance(told, str):
                found.setdefault(name, []).append(told)
    times = Counter(name for node in every(tree, ast.AST) for name in _set_variables(node))
    return {name: texts[0] for name, texts in found.items() if name and times[name] == 1 and not times[""]}


class Evaluator:
    """Evaluates expressions over names that are already known."""

    def __init__(self, names: Mapping[str, Evaluated], environment: Mapping[str, str] | None = None) -> None:
        self.names = names
        self.environment = {} if environment is None else environment

    def evaluate(self, node: ast.expr, depth: int = 0) -> Evaluated:
        """The value of one expression; unknown, with a reason, where it needs running."""
        if depth > _MAX_DEPTH:
            return Evaluated(reason=say("an expression nested too deeply"))
        match node:
            case ast.Constant(value=(int() | float() | str() | bool() | None) as value):
                return Evaluated(value, node, sources=(node,))
            case ast.Name(id=name):
                return self.names.get(name, Evaluated(reason=say("{name} is not set in this file", name=name)))
            case ast.Attribute(value=ast.Name(id="torch"), attr=name) if _DTYPE.match(name):
                return Evaluated(name, node, sources=(node,))
            case ast.Attribute(value=ast.Name(id=holder), attr=name) if f"{holder}.{name}" in self.names:
                return self.names[f"{holder}.{name}"]
            case ast.UnaryOp():
                return self.unary(node, depth)
            case ast.IfExp():
                return self.choice(node, depth)
            case ast.BinOp():
                return self.binary(node, depth)
            case ast.Compare(ops=[comparison], comparators=[right]):
                return self.compare(self.evaluate(node.left, depth + 1), comparison, self.evaluate(right, depth + 1))
            case ast.BoolOp():
                return self.boolean(node, depth)
            case ast.JoinedStr():
                return self.joined(node, depth)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return self.items(node, items, depth)
            case ast.Call():
                return self.call(node, depth)
        return Evaluated(reason=say(_RUNS))

    def unary(self, node: ast.UnaryOp, depth: int) -> Evaluated:
        inner = self.evaluate(node.operand, depth + 1)
        if not inner.known:
            return inner
        if isinstance(node.op, ast.Not):
            return Evaluated(not inner.value, None, "", inner.sources, inner.assumed)
        if isinstance(node.op, ast.USub) and isinstance(inner.value, (int, float)):
            literal = node if isinstance(node.operand, ast.Constant) else None
            return Evaluated(-inner.value, literal, "", (node,) if literal else inner.sources, inner.assumed)
        return Evaluated(reason=say(_RUNS), sources=inner.sources)

    def choice(self, node: ast.IfExp, depth: int) -> Evaluated:
        test = self.evaluate(node.test, depth + 1)
        if not test.known:
            return Evaluated(reason=test.reason, sources=test.sources)
        chosen = self.evaluate(node.body if test.value else node.orelse, depth + 1)
        return replace(chosen, assumed=(*test.assumed, *chosen.assumed))

    def binary(self, node: ast.BinOp, depth: int) -> Evaluated:
        left, right = self.evaluate(node.left, depth + 1), self.evaluate(node.right, depth + 1)
        sources, assumed = (*left.sources, *right.sources), (*left.assumed, *right.assumed)
        if not left.known or not right.known:
            return Evaluated(reason=left.reason or right.reason, sources=sources)
        a, b = left.value, right.value
        if isinstance(a, str) and isinstance(b, str) and isinstance(node.op, ast.Add) and len(a) + len(b) < _LONGEST:
            return Evaluated(a + b, None, "", sources, assumed)
        rule = ARITHMETIC.get(type(node.op))
        if (
            not isinstance(a, (int, float))
            or not isinstance(b, (int, float))
            or rule is None
            or abs(a) + abs(b) > _MOST
        ):
            return Evaluated(reason=say(_RUNS), sources=sources)
        if not b and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
            return Evaluated(reason=say("a division by zero"), sources=sources)
        return Evaluated(rule(a, b), None, "", sources, assumed)

    def compare(self, left: Evaluated, comparison: ast.cmpop, right: Evaluated) -> Evaluated:
        sources, assumed = (*left.sources, *right.sources), (*left.assumed, *right.assumed)
        if not left.known or not right.known:
            return Evaluated(reason=left.reason or right.reason, sources=sources)
        rule, ordered = _COMPARISONS.get(type(comparison)), ORDERED.get(type(comparison))
        if rule is not None:
            return Evaluated(rule(left.value, right.value), None, "", sources, assumed)
        if ordered is not None and isinstance(left.value, (int, float)) and isinstance(right.value, (int, float)):
            return Evaluated(ordered(left.value, right.value), None, "", sources, assumed)
        return Evaluated(reason=say("a comparison that only running it would tell"), sources=sources)

    def boolean(self, node: ast.BoolOp, depth: int) -> Evaluated:
        out = Evaluated()
        for operand in node.values:
            out = self.evaluate(operand, depth + 1)
            if not out.known or bool(out.value) is isinstance(node.op, ast.Or):
                return out
        return out

    def joined(self, node: ast.JoinedStr, depth: int) -> Evaluated:
        out: list[str] = []
        sources: list[ast.expr] = []
        assumed: list[str] = []
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            found = self.evaluate(inner, depth + 1)
            sources += found.sources
            assumed += found.assumed
            formatted = isinstance(part, ast.FormattedValue) and (part.format_spec or part.conversion not in _AS_TEXT)
            if not found.known or formatted or isinstance(found.value, list):
                return Evaluated(reason=found.reason or say("a formatted text"), sources=tuple(sources))
            out.append(str(found.value))
        return Evaluated("".join(out)[:_LONGEST], None, "", tuple(sources), tuple(assumed))

    def items(self, node: ast.expr, items: list[ast.expr], depth: int) -> Evaluated:
        found = [self.evaluate(item, depth + 1) for item in items]
        sources = tuple(source for item in found for source in item.sources)
        unknown = next((item.reason for item in found if not item.known), "")
        if unknown:
            return Evaluated(reason=unknown, sources=sources)
        return Evaluated(found, node, "", (node,), tuple(name for item in found for name in item.assumed))

    def call(self, node: ast.Call, depth: int) -> Evaluated:
        name = ast.unparse(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else ""
        if name in ("os.environ.get", "os.getenv", "environ.get", "getenv") and node.args:
            return self.from_environment(node, depth)
        if name.endswith("ListConfig") and len(node.args) == 1:
            return self.evaluate(node.args[0], depth + 1)
        if name in ("field", "dataclasses.field"):
            return self.field_default(node, depth)
        if name in ("int", "float", "str", "bool") and len(node.args) == 1:
            return self.converted(name, self.evaluate(node.args[0], depth + 1))
        if not name:
            return Evaluated(reason=say("a call(…) is known only when it runs"))
        why = say("{name}(…) is known only when it runs", name=name)
        return Evaluated(reason=Varies(why) if _DRAWS.search(name) else why)

    def converted(self, name: str, inner: Evaluated) -> Evaluated:
        value = inner.value
        if inner.known and not isinstance(value, list) and value is not None:
            with suppress(ValueError, OverflowError):
                return Evaluated(_CONVERSIONS[name](value), None, "", inner.sources, inner.assumed)
        reason = inner.reason or say("a conversion that only running it would tell")
        return Evaluated(reason=reason, sources=inner.sources)

    def from_environment(self, node: ast.Call, depth: int) -> Evaluated:
        variable = self.evaluate(node.args[0], depth + 1)
        if not isinstance(variable.value, str):
            return Evaluated(reason=say("an environment variable"))
        if isinstance(self.environment, FileEnvironment) and self.environment.sets(variable.value):
            return Evaluated(reason=say("${name} is set by the file itself", name=variable.value))
        if variable.value in self.environment:
            return Evaluated(self.environment[variable.value])
        if len(node.args) < 2:
            return Evaluated(reason=say("${name} is not known", name=variable.value))
        default = self.evaluate(node.args[1], depth + 1)
        return replace(default, assumed=(variable.value, *default.assumed))

    def field_default(self, node: ast.Call, depth: int) -> Evaluated:
        for keyword in node.keywords:
            if keyword.arg == "default":
                return self.evaluate(keyword.value, depth + 1)
            if keyword.arg == "default_factory" and isinstance(keyword.value, ast.Lambda):
                return self.evaluate(keyword.value.body, depth + 1)
        return Evaluated(reason=say("a field without a default"))


_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Names = dict[str, Evaluated]


class NameValues:
    """The variables of one file. `options`: what parsed options are worth, "args.batch" by name."""

    def __init__(self, tree: ast.Module, environment: Mapping[str, str]) -> None:
        self.tree, self.environment = tree, environment
        self.options: Mapping[str, Evaluated] = {}
        self._parents = parents(tree)
        self._global: set[str] = set()
        for node in every(tree, ast.AST):
            self._global.update(node.names if isinstance(node, ast.Global) else _set_by_name(node))

    def _around(self, node: ast.AST) -> list[ast.AST]:
        """What a node stands in, the file first."""
        found: list[ast.AST] = []
        at = self._parents.get(id(node))
        while at is not None:
            found.append(at)
            at = self._parents.get(id(at))
        return found[::-1]

    def is_certain(self, node: ast.AST) -> bool:
        """Whether a statement, or an expression of it, is run once whenever its function is, or the file."""
        inner = [each for each in self._around(node) if isinstance(each, ast.stmt) and any(_blocks(each))]
        while inner and not isinstance(inner[-1], _FunctionNode):
            if not _is_straight(inner.pop()):
                return False
        return True

    def holds(self, node: ast.AST) -> bool:
        """Whether the conditions around a node may all hold: none is known to be otherwise."""
        around = [*self._around(node), node]
        for one, below in pairwise(around):
            if isinstance(one, ast.If) and below is not one.test and "__name__" not in ast.unparse(one.test):
                found = Evaluator(self.at(one), self.environment).evaluate(one.test)
                if found.known and bool(found.value) is not any(below is each for each in one.body):
                    return False
        return True

    def scope(self, node: ast.AST) -> ast.AST | None:
        """The function that a node stands in; None: the file."""
        return next((each for each in reversed(self._around(node)) if isinstance(each, _FunctionNode)), None)

    def loop(self, node: ast.AST) -> ast.For | ast.While | None:
        """The loop in whose every round a node is run anew."""
        around = [
            each for each in self._around(node) if isinstance(each, (*_FunctionNode.__args__, ast.For, ast.While))
        ]
        return around[-1] if around and isinstance(around[-1], (ast.For, ast.While)) else None

    def at(self, node: ast.AST) -> _Names:
        """What each variable is worth at a node; what is worth at the file's end for the file itself."""
        around = self._around(node)
        functions = [each for each in around if isinstance(each, _FunctionNode)]
        names = dict(self.options)
        self._follow(
            self.tree.body, None if functions or node is self.tree else node, names, Counter(_stored(self.tree.body))
        )
        for name in names if "" in self._global else self._global:
            names[name] = _unknown(name)
        for function in functions:
            for name in [each.arg for each in every(function.args, ast.arg)]:
                handed = Evaluated(reason=say("{name} is handed over", name=name))
                names[name] = self.options.get(f"{getattr(function, 'name', '')}.{name}", handed)
            if not isinstance(function, ast.Lambda):
                last = node if function is functions[-1] else None
                self._follow(function.body, last, names, Counter(_stored(function.body)))
        return names

    def _follow(self, body: Sequence[ast.stmt], until: ast.AST | None, names: _Names, counts: Counter[str]) -> None:
        """Run through statements up to a node; without one to their end."""
        inside = {id(each) for each in (*self._around(until), until)} if until is not None else set()
        for statement in body:
            if until is not None and statement.lineno > getattr(until, "lineno", 0):
                return
            within = id(statement) in inside
            if _is_straight(statement):
                for block in _blocks(statement):
                    self._follow(block, until if within else None, names, counts)
            elif within and isinstance(statement, (ast.If, ast.For, ast.While, ast.Try)):
                if isinstance(statement, (ast.For, ast.While)):
                    names |= {name: _unknown(name) for name in _stored([statement])}
                block = next((b for b in _blocks(statement) if any(id(each) in inside for each in b)), [])
                self._follow(block, until, names, counts)
            elif within:
                return
            else:
                self._take(statement, names, counts)

    def _take(self, statement: ast.stmt, names: _Names, counts: Counter[str]) -> None:
        """One statement: what it assigns, or that what it may assign is unknown."""
        certain = dict(assignments(statement))
        for name in _stored([statement]):
            if name not in certain:
                names[name] = _unknown(name)
        for name, value in certain.items():
            names[name] = Evaluator(names, self.environment).evaluate(value)
        for inner in ast.walk(statement) if not certain else ():
            for name, value in assignments(inner) if isinstance(inner, ast.stmt) else ():
                if counts[name] == 1:  # whoever reaches its use came by here
                    names[name] = Evaluator(names, self.environment).evaluate(value)


def _set_by_name(node: ast.AST) -> Iterator[str]:
    """Variables of the file that a node sets otherwise than by their name alone; "": any of them."""
    match node:
        case ast.Subscript(value=ast.Call(func=ast.Name(id="globals")), slice=name, ctx=ast.Store()):
            yield str(name.value) if isinstance(name, ast.Constant) else ""
        case (
            ast.Attribute(value=ast.Call(func=ast.Name(id="globals")), attr="update")
            | ast.Call(func=ast.Name(id="exec"))
        ):
            yield ""


def assignments(statement: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Name and value of what a statement, or an expression by itself, surely assigns."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                match target, value:
                    case ast.Name(id=name), _:
                        yield name, value
                    case ast.Tuple(elts=items), ast.Tuple(elts=values) if len(items) == len(values):
                        yield from ((i.id, v) for i, v in zip(items, values, strict=True) if isinstance(i, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name) as target, op=operator, value=value):
            before = ast.copy_location(ast.Name(name, ast.Load()), target)
            yield name, ast.copy_location(ast.BinOp(before, operator, value), statement)


def _unknown(name: str) -> Evaluated:
    return Evaluated(reason=say("{name} is set in several places", name=name))


def _is_straight(statement: ast.AST) -> bool:
    """A statement whose block is surely run: `with`, and the program's own part."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return True
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body


def _stored(body: Sequence[ast.AST]) -> Iterator[str]:
    """Names that statements may set, those of functions and classes in them left out."""
    for node in body:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        if not isinstance(node, (*_FunctionNode.__args__, ast.ClassDef)):
            yield from _stored(list(ast.iter_child_nodes(node)))
