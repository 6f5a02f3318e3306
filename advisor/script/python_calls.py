"""Finds the calls by which a Python file sets up a training: config objects, the trainer, the model, its adapter.

A setting of a call that is not the run's own config is keyed by that call: `LoraConfig.r`, `Trainer.model`,
`from_pretrained.0` (the first argument without a name). Knows the shapes of names; which key means what, dialects say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from msgspec import Struct, field

TRAINER = "Trainer"
LOADER = "from_pretrained"
ADAPTER = "get_peft_model"
"""PEFT's function that puts an adapter on a model; unsloth's takes the adapter's settings itself."""
_CONFIG_NAME = re.compile(r"(Config|Arguments|Args)$")
_NOT_SETTINGS = {"ListConfig", "DictConfig"}
_PART = re.compile(r"\w_config$")
"""A keyword that hands a config object over which is not the run's own: `peft_config=`, `quantization_config=`."""
_OWN = ("args", "config")
_OTHER_MODEL = re.compile(r"^(ref|reward|value|teacher|judge|processing|tokenizer)")
_NO_MODEL = re.compile(r"Tokenizer|Processor|Config|Extractor|Peft")
_DEEPEST = 12


class Setup(Struct):
    """`configs`: the run's own config calls, the one that new settings go to last. `parts`: prefix and call of the
    others, in the order of the file. `trainer`: the trainer's class, "" where none is called.
    """

    configs: list[ast.Call] = field(default_factory=list)
    parts: list[tuple[str, ast.Call]] = field(default_factory=list)
    trainer: str = ""
    rivals: bool = False
    """Whether several configs of one class are made, and no trainer takes one of them, or each takes its own."""


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


class _Bound:
    """What each name of the file is set to, in order; one that a function takes is set to nothing that is known."""

    def __init__(self, tree: ast.Module) -> None:
        self.values: dict[str, list[ast.expr]] = {}
        self.bindings: dict[str, int] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                self.count(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.count(node.id)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
                    if isinstance(first, (ast.Name, ast.Attribute)):
                        self.values.setdefault(ast.unparse(first), []).append(node.value)

    def count(self, name: str) -> None:
        self.bindings[name] = self.bindings.get(name, 0) + 1

    def reached(self, node: ast.expr, depth: int = 0) -> Iterator[ast.Call]:
        """The calls that an expression may stand for: by its names, either branch, or the model that a call wraps."""
        if depth > _DEEPEST:
            return
        match node:
            case ast.Name() | ast.Attribute():
                values = self.values.get(ast.unparse(node), [])
                before = [value for value in values if value.lineno < node.lineno]  # what is set later it never was
                for value in reversed(before or values):
                    yield from self.reached(value, depth + 1)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self.reached(body, depth + 1)
                yield from self.reached(orelse, depth + 1)
            case ast.Call():
                yield node
                inner = node.func.value if isinstance(node.func, ast.Attribute) else None
                if isinstance(inner, ast.Call):  # from_pretrained(…).to("cuda")
                    yield from self.reached(inner, depth + 1)
                elif called(node).islower() and node.args:  # get_peft_model(model, …)
                    yield from self.reached(node.args[0], depth + 1)


def _once_set(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names that the whole file, functions included, sets in one place only, and what they are set to."""
    bound = _Bound(tree)
    for name, values in bound.values.items():
        if len(values) == 1 and bound.bindings.get(name) == 1:
            yield name, values[0]


class AttributeChange(Struct):
    """What a file does to an attribute of an object once it is made. `value` None: only running it would tell."""

    key: str
    """"": any attribute."""
    node: ast.stmt | ast.expr
    value: ast.expr | None = None


def changes_of(tree: ast.Module, holders: Collection[str]) -> Iterator[AttributeChange]:
    """Where a file sets an attribute of an object that goes by one of these names ("config", "trainer.args")."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=holder, attr=key)], value=value) if _is_one(holder, holders):
                yield AttributeChange(key, node, value)
            case ast.AnnAssign(target=ast.Attribute(value=holder, attr=key), value=value) if _is_one(holder, holders):
                yield AttributeChange(key, node, value)
            case ast.AugAssign(target=ast.Attribute(value=holder, attr=key)) if _is_one(holder, holders):
                yield AttributeChange(key, node)
            case ast.Call(func=ast.Name(id="setattr"), args=[holder, name, _]) if _is_one(holder, holders):
                yield AttributeChange(str(name.value) if isinstance(name, ast.Constant) else "", node)
            case ast.Call(args=[holder], keywords=keywords) if called(node) == "replace" and _is_one(holder, holders):
                yield from (AttributeChange(keyword.arg or "", node) for keyword in keywords)


def _is_one(node: ast.expr, holders: Collection[str]) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in holders


def config_names(tree: ast.Module, setup: Setup) -> set[str]:
    """Names by which a file reaches the run's own config: the variable, and the trainer's `args`."""
    bound, own = _Bound(tree), {id(call) for call in setup.configs}
    made = {(name, call) for name, values in bound.values.items() for value in values for call in bound.reached(value)}
    return {name for name, call in made if id(call) in own} | {
        f"{name}.args" for name, call in made if setup.trainer and called(call) == setup.trainer
    }


def unchanged_dictionaries(tree: ast.Module) -> dict[str, ast.expr]:
    """What names are set to that the file sets once and only hands over with `**`: nothing changes it between."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    handed = {id(keyword.value) for call in calls for keyword in call.keywords if keyword.arg is None}
    loads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    read = {node.id for node in loads if id(node) not in handed}
    return {name: value for name, value in _once_set(tree) if name not in read}


def find_setup(tree: ast.Module) -> Setup:
    """The calls of a file that say what is trained and how."""
    bound = _Bound(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    configs = [call for call in calls if _is_config(call)]
    parts = {id(call) for handed in _handed_over(tree, calls) for call in bound.reached(handed) if _is_config(call)}
    taken = False
    trainers = [call for call in calls if called(call).endswith(TRAINER) and called(call)[:1].isupper()]
    out = Setup([call for call in configs if id(call) not in parts])
    out.configs.sort(key=lambda call: len(call.keywords))
    for call in configs:
        if id(call) in parts:
            out.parts.append((called(call), call))
    if trainers:
        trainer = trainers[-1]
        out.trainer = called(trainer)
        out.parts.append((TRAINER, trainer))
        own, *others = ({id(c) for v in _own_config(each) for c in bound.reached(v)} for each in reversed(trainers))
        out.configs.sort(key=lambda call: id(call) in own)
        taken = any(id(call) in own for call in out.configs) and all(other <= own for other in others)
    names = [called(call) for call in out.configs]
    out.rivals = not taken and bool(names) and names.count(names[-1]) > 1
    load = _model_load(calls, trainers, bound)
    out.parts += [] if load is None else [(LOADER, load)]
    out.parts += [(ADAPTER, call) for call in calls if called(call) == ADAPTER]
    return out


def _is_config(call: ast.Call) -> bool:
    return bool(call.keywords) and _CONFIG_NAME.search(called(call)) is not None and called(call) not in _NOT_SETTINGS


def _handed_over(tree: ast.Module, calls: list[ast.Call]) -> Iterator[ast.expr]:
    """Expressions handed over as a part of something else, not as the run's own config."""
    for call in calls:
        if not _is_config(call):
            yield from (keyword.value for keyword in call.keywords if _PART.search(keyword.arg or ""))
        if called(call) == ADAPTER:
            yield from call.args[1:]
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and _PART.search(key.value):
                    yield value


def _own_config(trainer: ast.Call) -> Iterator[ast.expr]:
    yield from (keyword.value for keyword in trainer.keywords if keyword.arg in _OWN)
    yield from trainer.args


def _model_load(calls: list[ast.Call], trainers: list[ast.Call], bound: _Bound) -> ast.Call | None:
    """The call that loads the model the trainer trains; without a trainer the first that loads any."""
    for trainer in reversed(trainers):
        for value in (*trainer.args, *(k.value for k in trainer.keywords if not _OTHER_MODEL.match(k.arg or ""))):
            found = next((call for call in bound.reached(value) if _loads_model(call)), None)
            if found is not None:
                return found
    return None if trainers else next((call for call in calls if _loads_model(call)), None)


def _loads_model(call: ast.Call) -> bool:
    return called(call) == LOADER and not _NO_MODEL.search(ast.unparse(call.func))
