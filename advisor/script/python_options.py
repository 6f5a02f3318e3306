"""Finds the defaults of a Python program's own options, those of dataclass fields and of argparse, and what it demands
of them: assertions, and conditions under which it stops.

`script_args.batch` of `script_args = HfArgumentParser(ScriptArguments).parse_args_into_dataclasses()[0]` is the field's
default, `args.batch` of `args = parser.parse_args()` that of `add_argument("--batch", default=8)`.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from advisor.hostile import clean_line
from advisor.language import say
from advisor.script.document import ScriptError
from advisor.script.python_calls import once_set
from advisor.script.python_parser import names_of, options_of, switches_of
from advisor.script.python_tree import called, calls, every, imports, parents, text
from advisor.script.python_value import Evaluated, Evaluator, PythonValue

_INTO_CLASSES = ("parse_args_into_dataclasses", "parse_args_and_config", "parse")
"""Methods of transformers' HfArgumentParser, TRL's TrlParser and alignment-handbook's H4ArgumentParser."""
_INTO_ONE = ("parse_args", "parse_known_args")
_SWITCHES = {"store_true": True, "store_false": False}
"""Actions of argparse that take no value, and what they set."""
_COMMAND_LINES = frozenset(
    ("absl", "docopt", "draccus", "jsonargparse", "simple_parsing", "tap", "tyro")
)  # fmt: skip
"""Packages that read the command line, or let it be read."""
NAMING = frozenset(("click", "fire", "typer"))
"""Packages for which the file spells out each option, or has an argument of a function by its name."""
_OF_WHOLE_KEYS = frozenset(("hydra", "omegaconf"))
"""Packages that read `key=value`, with the whole key: what the command does not set yet may go by a longer one."""
_FROM_A_FILE = ("parse_yaml_file", "parse_json_file")
"""Methods of transformers' HfArgumentParser for a config file that stands alone."""
LIBRARIES = frozenset(
    ("accelerate", "bitsandbytes", "datasets", "deepspeed", "numpy", "pandas", "peft", "torch", "transformers", "trl",
     "tqdm", "unsloth", "vllm", "wandb", "yaml")
)  # fmt: skip
"""Packages that read none on their own; of what a module of another name does nothing is known."""
_OF_ONE_CLASS = ("cli", "parse_cli", "tap", "instantiate")
"""Functions that fill the class they are handed: `tyro.cli(Args)`."""


def option_defaults(tree: ast.Module, classes: Mapping[str, ast.ClassDef]) -> Iterator[tuple[str, ast.expr]]:
    """ "name.option" and the expression of its default, for each name of the file that holds parsed options."""
    parsers = _parsers(tree)
    flags = {flag: default for flag, _, default in _flags(tree) if default is not None}
    yield from ((f"{name}.{flag}", default) for name in _holders(tree) for flag, default in flags.items())
    for function in _run_by_name(tree):
        taken = function.args.args[len(function.args.args) - len(function.args.defaults) :]
        yield from ((f"{function.name}.{one.arg}", d) for one, d in zip(taken, function.args.defaults, strict=True))
    for names, call in _options_read(tree):
        for name, filled in zip(names, _filled(call, parsers), strict=False):
            for field, default in _fields(filled, classes):
                yield f"{name}.{field}", default


def _run_by_name(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions whose arguments are the options: `fire.Fire(train)`, `typer.run(train)`."""
    named = [ast.unparse(call.args[0]) for call in calls(tree, "Fire", "run") if call.args]
    run = named if {module.partition(".")[0] for module, _ in imports(tree)} & {"fire", "typer"} else []
    return [function for function in every(tree, ast.FunctionDef) if function.name in run]


def given_options(tree: ast.Module, arguments: Sequence[str]) -> dict[str, Evaluated]:
    """ "name.option" and what a command gives it (`--option=value` or `--switch`; NUL: not known), for options of the
    file's argparse. Raises ScriptError for an argument that is none of them."""
    flags = {flag: action for flag, action, _ in _flags(tree)}
    spelled = {name: option.field for option in options_of(tree, {}) for name in option.names}  # "m" of "-m", "--model"
    classes = {node.name: node for node in every(tree, ast.ClassDef)}
    filled = [
        (name, _own_fields(classes[one]))
        for names, call in _options_read(tree)
        for name, one in zip(names, _filled(call, _parsers(tree)), strict=False)
        if one in classes
    ]
    filled += [(one.name, [each.arg for each in one.args.args]) for one in _run_by_name(tree)]
    flags |= {field: "" for _, fields in filled for field in fields}
    given: dict[str, Evaluated] = {}
    for argument in arguments:
        option, equals, text = argument.partition("=")
        bare = option.lstrip("-").replace("-", "_")
        action = flags.get(bare := spelled.get(bare, bare))
        if action is None or (equals and action in _SWITCHES):
            raise ScriptError(say("{option} is no option of the file's own parser.", option=clean_line(argument, 60)))
        value = Evaluated(_number(text) if equals else _SWITCHES.get(action, True))
        lost = say("the command gives it, as what is not known") if text == "\0" else ""
        given[bare] = Evaluated(reason=lost) if lost else value
    told = {f"{name}.{option}": value for name in _holders(tree) for option, value in given.items()}
    return told | {f"{name}.{field}": given[field] for name, fields in filled for field in fields if field in given}


def _number(text: str) -> PythonValue:
    """A word as a number or truth value, where it is one."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, (bool, int, float)) else text


def _holders(tree: ast.Module) -> list[str]:
    """Names that hold what argparse read, `args = parser.parse_args()`, and functions that click calls with options."""
    clicked = [
        one.name
        for one in every(tree, ast.FunctionDef)
        if any(ast.unparse(getattr(each, "func", each)) == "click.option" for each in one.decorator_list)
    ]
    return [names[0] for names, call in _options_read(tree) if called(call) in _INTO_ONE] + clicked


def is_parsing(call: ast.Call) -> bool:
    return called(call) in {*_INTO_CLASSES, *_INTO_ONE, *_OF_ONE_CLASS, *_FROM_A_FILE, "parse_dict"}


def filled_classes(trees: Sequence[ast.Module]) -> frozenset[str]:
    """The classes that parsers of these files fill."""
    found: set[str] = set()
    for tree in trees:
        parsers = _parsers(tree)
        found |= {name for call in calls(tree) for name in _filled(call, parsers)}
        found |= {name for names in parsers.values() for name in names}
    return frozenset(found)


def _options_read(tree: ast.Module) -> Iterator[tuple[list[str], ast.Call]]:
    """`_parsed`, with the call that a function returns in place of the function's."""
    returned = {
        function.name: statement.value
        for function in every(tree, ast.FunctionDef)
        for statement in every(function, ast.Return)
        if statement.value is not None
    }
    for names, call in _parsed(tree):
        inner = returned.get(called(call)) if isinstance(call.func, ast.Name) else None
        yield names, inner if isinstance(inner, ast.Call) else call  # args = parse_args()


def _parsed(tree: ast.Module) -> Iterator[tuple[list[str], ast.Call]]:
    """Names that a statement sets from one call, and the call; of `call(…)[0]` too."""
    for node in every(tree, ast.Assign):
        if len(node.targets) == 1:
            target, value = node.targets[0], node.value
            value = value.value if isinstance(value, ast.Subscript) else value
            items = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            names = [item.id for item in items if isinstance(item, ast.Name)]
            if isinstance(value, ast.Call) and names and len(names) == len(items):
                yield names, value


def _parsers(tree: ast.Module) -> dict[str, list[str]]:
    """Name of a parser → the classes that it fills, in order."""
    return {
        names[0]: _class_names(call.args[0])
        for names, call in _parsed(tree)
        if called(call).endswith("Parser") and call.args
    }


def _filled(call: ast.Call, parsers: Mapping[str, list[str]]) -> list[str]:
    if called(call) in _OF_ONE_CLASS and call.args:
        return _class_names(call.args[0])
    owner = call.func.value if isinstance(call.func, ast.Attribute) and called(call) in _INTO_CLASSES else None
    if isinstance(owner, ast.Call) and owner.args:  # HfArgumentParser(Arguments).parse_args_into_dataclasses()
        return _class_names(owner.args[0])
    return parsers.get(owner.id, []) if isinstance(owner, ast.Name) else []


def _class_names(node: ast.expr) -> list[str]:
    items = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    return [item.id if isinstance(item, ast.Name) else "" for item in items]


def _fields(name: str, classes: Mapping[str, ast.ClassDef]) -> Iterator[tuple[str, ast.expr]]:
    holder = classes.get(name)
    for statement in holder.body if holder is not None else ():
        match statement:
            case ast.AnnAssign(target=ast.Name(id=field), value=ast.expr() as value):
                yield field, value


def _flags(tree: ast.Module) -> Iterator[tuple[str, str, ast.expr | None]]:
    """Name, action ("" for one that takes a value) and default of every option of argparse."""
    for option in options_of(tree, {}):
        action = text(option.told("action"))
        switch = ast.copy_location(ast.Constant(not _SWITCHES[action]), option.call) if action in _SWITCHES else None
        if name := option.dest or option.long:
            yield name, action, option.told("default") or switch


def own_defaults(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Name and default of the options of argparse that take a value and that nothing else in the file sets."""
    flags = list(_flags(tree))
    times = Counter(name for name, _, _ in flags)  # subcommands have options of one name
    set_anew = later_defaults(tree) | {
        node.attr for node in every(tree, ast.Attribute) if isinstance(node.ctx, ast.Store)
    }
    for name, action, default in flags:
        if default is not None and not action and times[name] == 1 and name not in set_anew:
            yield name, default


def later_defaults(tree: ast.Module) -> frozenset[str]:
    """Options whose default is set anew: `parser.set_defaults(batch=8)`."""
    anew = calls(tree, "set_defaults")
    return frozenset(keyword.arg for call in anew for keyword in call.keywords if keyword.arg)


def own_options(tree: ast.Module) -> frozenset[str] | None:
    """The options of the one argparse parser that reads the command; None where another one may read it, too."""
    others = calls(tree, *_INTO_CLASSES[:-1], *_OF_ONE_CLASS, "add_arguments")
    read = {node.id for node in every(tree, ast.Name) if isinstance(node.ctx, ast.Load)}
    told = {id(call): names for names, call in _parsed(tree)}
    for call in calls(tree, "parse_known_args"):  # what it does not know is dropped, or handed to somebody
        names = told.get(id(call), [])
        dropped = (
            isinstance(parents(tree)[id(call)], ast.Subscript) if len(names) == 1 else names and names[1] not in read
        )
        others += [] if dropped else [call]
    added = calls(tree, "add_argument")
    spelled_out = all(any(isinstance(arg, ast.Constant) for arg in call.args) for call in added)
    if len(calls(tree, "ArgumentParser")) != 1 or not spelled_out or others:
        return None
    return names_of(tree)


def takes(tree: ast.Module, key: str, configured: bool) -> bool | None:
    """Whether the file takes `--key value` from its command; `configured`: the command names a config file. None:
    nobody knows; a class or a module that is not read here may have it."""
    name = key.lstrip("-").replace("-", "_")
    own = own_options(tree)
    if own is not None:
        return name in own
    if is_configurator(tree):
        return any(
            one.id == name for node in tree.body for one in every(node, ast.Name) if isinstance(node, ast.Assign)
        )
    if configured and calls(tree, *_FROM_A_FILE):
        return False  # `if len(sys.argv) == 2`: a file, or options
    imported = {module.partition(".")[0] for module, _ in imports(tree)}
    if imported & NAMING:
        texts = {*map(text, every(tree, ast.Constant))}
        arguments = {node.arg for node in every(tree, ast.arg)}
        return not texts.isdisjoint((f"--{key.lstrip('-')}", f"--{name}", f"--{name.replace('_', '-')}")) or (
            not imported.isdisjoint(("fire", "typer")) and name in arguments
        )
    defined = [call for call in calls(tree) if called(call).startswith("DEFINE_")]
    if "absl" in imported and defined:
        return name in {text(call.args[0]) for call in defined if call.args}
    classes = {node.name: node for node in every(tree, ast.ClassDef)}
    filled = [one for call in calls(tree, *_OF_ONE_CLASS) for one in _filled(call, {})]
    if filled and all(one in classes for one in filled):
        return any(field == name for one in filled for field in _own_fields(classes[one]))
    if any(name in _own_fields(classes[one]) for one in filled_classes([tree]) if one in classes):
        return True
    read = calls(tree, *_INTO_CLASSES, *_INTO_ONE, *_OF_ONE_CLASS)
    read = read or [call for call in calls(tree) if called(call).endswith("Parser")]
    harmless = sys.stdlib_module_names | LIBRARIES | _OF_WHOLE_KEYS
    return None if read or any(top in _COMMAND_LINES or top not in harmless for top in imported) else False


def is_configurator(tree: ast.Module) -> bool:
    """Whether a file runs nanoGPT's configurator: `--name=value`, and no other form, sets a variable of the file."""
    return any("configurator" in ast.unparse(one) for one in calls(tree, "exec"))


def switches(tree: ast.Module, key: str) -> dict[str, tuple[str, ...]] | None:
    """`switches_of`, and the pair that tyro and typer make of a truth value."""
    imported, name = {module.partition(".")[0] for module, _ in imports(tree)}, key.lstrip("-").replace("-", "_")
    filled = {one for call in calls(tree, *_OF_ONE_CLASS) for one in _filled(call, {})} if "tyro" in imported else ()
    holders = [node for node in every(tree, ast.ClassDef) if node.name in filled]
    fields = [each for node in holders for each in every(node, ast.AnnAssign) if ast.unparse(each.target) == name]
    given = [each for each in every(tree, ast.arg) if each.arg == name] if "typer" in imported else []
    kinds = [*(each.annotation for each in fields), *(each.annotation for each in given)]
    if not any(isinstance(kind, ast.Name) and kind.id == "bool" for kind in kinds):
        return switches_of(tree, key)
    bare = name.replace("_", "-")
    return {"true": (f"--{bare}",), "false": (f"--no-{bare}",)}


def decided_by(tree: ast.Module, node: ast.expr | None) -> str:
    """What the command decides an expression by, alone: the name of an option of the file's argparse, "$NAME" for a
    variable of the environment; "" where it is neither."""
    holders, taken = _holders(tree), {arg.arg for arg in every(tree, ast.arg)}
    for _ in range(10):
        match node:
            case ast.Name(id=name) if name not in taken:
                sets = [each.value for each in every(tree, ast.Assign) if name in map(ast.unparse, each.targets)]
                times = [each for each in every(tree, ast.Name) if each.id == name and isinstance(each.ctx, ast.Store)]
                node = sets[0] if len(sets) == len(times) == 1 else None
            case ast.Call(func=ast.Name(id="int" | "float" | "str"), args=[inner], keywords=[]):
                node = inner
            case ast.BoolOp(op=ast.Or(), values=[first, *_]):
                node = first
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in holders:
                return name
            case (
                ast.Call(func=func, args=[ast.Constant(value=str(name)), *_])
                | ast.Subscript(value=func, slice=ast.Constant(value=str(name)))
            ) if ast.unparse(func).removeprefix("os.") in ("environ", "environ.get", "getenv"):
                return f"${name}"
            case _:
                break
    return ""


def _own_fields(node: ast.ClassDef) -> list[str]:
    """The fields of a class, with and without defaults."""
    return [
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]


def read_names(tree: ast.Module) -> frozenset[str]:
    """Names of attributes that the file reads of anything: an option that is not among them has no effect."""
    return frozenset(node.attr for node in every(tree, ast.Attribute) if isinstance(node.ctx, ast.Load))


def is_filled(name: str, tree: ast.Module) -> bool:
    """Whether a parser fills this class and hands it to the program."""
    parsers = _parsers(tree)
    return any(name in _filled(call, parsers) for _, call in _parsed(tree))


_ENDS = ("exit", "_exit", "quit", "error", "fail")


def stopped_by(tree: ast.Module, key: str, before: Mapping[str, float], after: Mapping[str, float]) -> int | None:
    """The line that stops a program with the options `after` and did not with those `before`; of a line that asks for
    one fixed number and cannot be computed here, too.
    """
    names = dict(once_set(tree))
    for line, test, wanted in _tests(tree):
        if key not in _read(test, names):
            continue
        was, now = _Options(before, names).holds(test), _Options(after, names).holds(test)
        if now is not None and now is not wanted and was is not now:
            return line
        fixed = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq if wanted else ast.NotEq)
        if now is None and fixed and not any(isinstance(one, ast.Mod) for one in ast.walk(test)):
            return line
    return None


def _tests(tree: ast.Module) -> Iterator[tuple[int, ast.expr, bool]]:
    """Line, condition and what it must be for the program to go on."""
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test):
                yield node.lineno, test, True
            case ast.If(test=test, body=[ast.Raise(), *_]):
                yield node.lineno, test, False
            case ast.If(test=test, body=[ast.Expr(value=ast.Call() as call), *_]) if called(call) in _ENDS:
                yield node.lineno, test, False


def _read(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 0) -> frozenset[str]:
    """The attributes that an expression is computed of."""
    found = {one.attr for one in every(node, ast.Attribute)}
    for one in every(node, ast.Name) if depth < len(names) and depth < 8 else ():
        if isinstance(names.get(one.id), ast.BinOp):
            found |= _read(names[one.id], names, depth + 1)
    return frozenset(found)


class _Options(Evaluator):
    """What a condition is where options have these values, whatever object they are attributes of."""

    def __init__(self, values: Mapping[str, float], once: Mapping[str, ast.expr]) -> None:
        super().__init__({name: Evaluated(value) for name, value in values.items()})
        self.once = once

    def evaluate(self, node: ast.expr, depth: int = 0) -> Evaluated:
        match node:
            case ast.Name(id=name) if name in self.once:
                return self.evaluate(self.once[name], depth + 1)
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.BoolOp(op=op, values=parts):  # one that decides is enough
                each = [self.holds(part, depth + 1) for part in parts]
                decided = isinstance(op, ast.Or)
                return Evaluated(decided) if decided in each else super().evaluate(node, depth)
            case ast.Compare(left=left, ops=[_, _, *_] as ops, comparators=others):
                pairs = zip((left, *others), ops, others, strict=False)
                return self.evaluate(
                    ast.BoolOp(ast.And(), [ast.Compare(a, [op], [b]) for a, op, b in pairs]), depth + 1
                )
        return super().evaluate(node, depth)

    def holds(self, test: ast.expr, depth: int = 0) -> bool | None:
        found = self.evaluate(test, depth)
        return bool(found.value) if found.known else None
