"""Finds the calls by which a Python file sets up a training: config objects, the trainer, the model, its adapter.

A setting of a call that is not the run's own config is keyed by that call: `LoraConfig.r`, `Trainer.model`,
`from_pretrained.0` (the first argument without a name). Knows the shapes of names; which key means what, dialects say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from advisor.hostile import clean
from advisor.regex import regex
from advisor.script.python_tree import called, calls, every, handed, is_one, parameters, text
from advisor.script.python_value import NameValues

TRAINER = "Trainer"
LOADER = "from_pretrained"
TOKENIZER = "tokenizer"
ADAPTER = "get_peft_model"
"""PEFT's function that puts an adapter on a model; unsloth's takes the adapter's settings itself."""
_CONFIG_NAME = regex(r"(Config|Arguments|Args)$")
_NOT_SETTINGS = {"ListConfig", "DictConfig"}
_PART = regex(r"\w_config$")
"""A keyword that hands a config object over which is not the run's own: `peft_config=`, `quantization_config=`."""
_NEVER_ITS_OWN = regex(r"(?:Lora|AdaLora|LoHa|LoKr|IA3|\w*Prompt\w*|Prefix\w*|BitsAndBytes|GPTQ|Awq)Config$")
"""Configs of peft and of quantizers, whoever takes them."""
_OWN = ("args", "config")
_OTHER_MODEL = regex(r"^(ref|reward|value|teacher|judge|processing|tokenizer)")
_NO_MODEL = regex(r"Tokenizer|Processor|Config|Extractor|Peft")
_TOKENIZER = regex(r"tokenizer|processor", re.IGNORECASE)
_SWITCHES_ON = regex(r"(?:gradient_checkpointing_enable|enable_gradient_checkpointing)$")
"""Methods of a model (transformers, diffusers) that switch on what else a setting would."""
_OF_ONES_OWN = ("DataLoader", "generate", "LLM", "SamplingParams", "GenerationConfig")
"""Calls (torch, transformers, vLLM) whose arguments size a program that has no config object."""
_DEEPEST = 12


COPIES = ("replace", "copy", "deepcopy", "evolve")
"""Functions that make a config of another one."""


class Setup(Struct):
    """`configs`: the run's own config calls, the one that new settings go to last. `parts`: prefix and call of the
    others, in the order of the file. `trainer`: the trainer's class, "" where none is called."""

    configs: list[ast.Call] = field(default_factory=list)
    parts: list[tuple[str, ast.Call]] = field(default_factory=list)
    trainer: str = ""
    trained: tuple[str, ...] = ()
    """The classes of all trainers that are made, the last one last."""
    numbers: list[tuple[str, ast.expr]] = field(default_factory=list)
    """Names that the file sets once, to a number or a switch; where nothing is configured, they are its settings."""
    lengths: list[tuple[str, ast.keyword]] = field(default_factory=list)
    """Key and argument of what a tokenizer is told of the longest row: when it is loaded, and when it is called."""
    rivals: bool = False
    """Whether several configs are made, and nothing tells which of them the run gets."""
    given: ast.expr | None = None
    """What the trainer gets as its config, where it is none of `configs`; followed to where that is made."""


def spell_out(tree: ast.Module) -> None:
    """Give config classes and trainers that a file imports under another name the package's own."""
    stored = {node.id for node in every(tree, ast.Name) if isinstance(node.ctx, ast.Store)}
    own: dict[str, str] = {}
    for alias in (each for node in every(tree, ast.ImportFrom) for each in node.names):
        made = _CONFIG_NAME.search(alias.name) or alias.name.endswith(TRAINER)
        if alias.asname and alias.asname not in stored and made:
            own[alias.asname], alias.asname = alias.name, None
    for node in every(tree, ast.Name) if own else ():
        node.id = own.get(node.id, node.id)


def is_dataclass(node: ast.ClassDef) -> bool:
    """Whether a class is decorated as one: without that, its fields are no arguments and their values are not taken."""
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def family(tree: ast.Module, names: Collection[str]) -> list[ast.ClassDef]:
    """The classes of a file that go by these names, and those of the file that they are derived from."""
    classes = {node.name: node for node in every(tree, ast.ClassDef)}
    found: dict[str, ast.ClassDef] = {}
    wanted = [name for name in names if name in classes]
    while wanted:
        node = classes[wanted.pop()]
        if node.name not in found:
            found[node.name] = node
            wanted += [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in classes]
    return list(found.values())


def _derived(tree: ast.Module) -> dict[str, bool]:
    """Classes of the file that are derived from a package's config class, and whether they are dataclasses."""
    named = {node.name for node in every(tree, ast.ClassDef)}
    lines = {name: family(tree, [name]) for name in named}
    bases = {name: [ast.unparse(base) for node in nodes for base in node.bases] for name, nodes in lines.items()}
    return {
        name: all(map(is_dataclass, nodes))
        for name, nodes in lines.items()
        if any(_CONFIG_NAME.search(base) and base not in named for base in bases[name])
    }


class _Bound:
    """What each name of the file is set to, in order; one that a function takes is set to nothing that is known."""

    def __init__(self, tree: ast.Module) -> None:
        self.values: dict[str, list[ast.expr]] = {}
        self.bindings: dict[str, int] = {}
        for node in every(tree, ast.AST):
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

    def made(self, node: ast.expr) -> ast.expr:
        """The expression that a name was set to last; the node itself where nothing does."""
        values = self.values.get(ast.unparse(node), [node])
        return ([value for value in values if value.lineno < node.lineno] or values)[-1]

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


def once_set(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
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


def changes_of(tree: ast.AST, holders: Collection[str]) -> Iterator[AttributeChange]:
    """Where a file sets an attribute, or an entry, of what goes by one of these names ("args"), or of a copy of it."""
    for node in ast.walk(tree):
        yield from (AttributeChange(key, node, value) for key, value in _set_by(node, holders))  # type: ignore[arg-type]


def _set_by(node: ast.AST, holders: Collection[str]) -> Iterator[tuple[str, ast.expr | None]]:
    """The keys that a statement or an expression sets ("": any), and the values."""
    match node:
        case ast.Assign(value=ast.Dict() as made) | ast.keyword(arg=None, value=ast.Dict() as made):
            spread = [n for n, key in enumerate(made.keys) if key is None]
            first = next((n for n in spread if is_held(made.values[n], holders)), len(spread))
            yield from (("", None) for n in spread if n > first)
        case ast.Assign(value=ast.Attribute(value=held, attr=method)) if method in _CHANGES and is_held(held, holders):
            yield "", None  # change = vars(config).update
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((key, value) for one in targets if (key := _key_of(one, holders)) is not None)
        case ast.AnnAssign(target=target, value=ast.expr() as value) if (key := _key_of(target, holders)) is not None:
            yield key, value
        case ast.AugAssign(target=target, value=value):
            if (key := _key_of(target, holders)) is not None:
                yield key, None
            elif is_held(target, holders):  # config |= {…}
                yield from _entries_of([value])
        case ast.Call(args=[held, name, *_]) if called(node) in _SETS and is_held(held, holders):
            yield text(name), None
        case ast.Call(args=[held, *_], keywords=keywords) if called(node) in COPIES and is_held(held, holders):
            yield from ((each.arg or "", each.value) for each in keywords)
        case ast.Call(func=ast.Attribute(value=held, attr=method)) if method in _CHANGES and is_held(held, holders):
            yield from _entries_of([*node.args[:1], *node.keywords]) if node.args or node.keywords else [("", None)]
        case ast.BinOp(left=held, op=ast.BitOr(), right=value) if is_held(held, holders):
            yield from _entries_of([value])
        case ast.Dict(keys=[*keys], values=[*values]):  # {**vars(config), "key": value}
            spread = [n for n, name in enumerate(keys) if name is None and is_held(values[n], holders)]
            behind = list(zip(keys, values, strict=True))[spread[0] + 1 :] if spread else []
            yield from ((text(name), value) for name, value in behind if name is not None)


def _entries_of(given: Sequence[ast.expr | ast.keyword]) -> Iterator[tuple[str, ast.expr | None]]:
    """What arguments that change a dictionary set: those of `update({…})`, `update(key=value)`."""
    for each in given:
        if isinstance(each, ast.Dict):
            yield from ((text(key), value) for key, value in zip(each.keys, each.values, strict=True))
        else:
            yield (each.arg or "", each.value) if isinstance(each, ast.keyword) else (text(each), None)


def _key_of(target: ast.expr, holders: Collection[str]) -> str | None:
    """The attribute or entry of one of the holders that a target is; "" where its name is computed, None of others."""
    match target:
        case ast.Attribute(value=held, attr=key) if is_one(held, holders):
            return key
        case ast.Subscript(value=held, slice=name) if is_held(held, holders):
            return text(name) if text(name) or not isinstance(name, (ast.Constant, ast.Slice)) else None
    return None


_SETS = ("setattr", "__setattr__", "update", "__setitem__")
_CHANGES = ("update", "setdefault", "pop", "clear", "popitem", "__setitem__", "__ior__", "merge_with")
"""Methods that change a dictionary."""


def is_held(node: ast.expr, holders: Collection[str]) -> bool:
    """Whether an expression is one of the holders, or the dictionary of its attributes: `vars(config)`."""
    match node:
        case ast.Call(args=[holder]) if called(node) in ("vars", "asdict"):
            return is_one(holder, holders)
        case ast.Attribute(value=holder, attr="__dict__"):
            return is_one(holder, holders)
        case ast.Call(func=ast.Attribute(value=holder, attr="copy" | "dict" | "to_dict" | "_asdict" | "model_dump")):
            return is_held(holder, holders)
    return is_one(node, holders)


def changes_inside(tree: ast.Module, setup: Setup, holders: Collection[str]) -> Iterator[AttributeChange]:
    """Where functions of the file that are handed the run's own config, and classes of the file that it or its trainer
    is one of, set its attributes: when that is, only running the file would tell."""
    own = {id(call) for call in setup.configs}
    functions = {node.name: node for node in every(tree, ast.FunctionDef)}
    for call in calls(tree, *functions) if functions else ():
        function = functions[called(call)]
        given = handed(call, parameters(function))
        taken = {name for name, value in given if id(value) in own or is_one(value, holders)}
        yield from _changes_in(function, taken)
    yield from (AttributeChange("", call) for call in setup.configs if len(call.args) > 1)  # which fields get them?
    for call in calls(tree, *COPIES) if len(setup.trained) > 1 else ():
        if call.args and is_one(call.args[0], holders):  # one of the trainers gets the copy
            yield AttributeChange("", call)
    made = family(tree, {called(call) for call in setup.configs})
    for node in every(tree, ast.ClassDef):
        if node in made:
            yield from _changes_in(node, {"self"})
            yield from _handed_on(node)
        elif node.name == setup.trainer or any(ast.unparse(base).endswith(TRAINER) for base in node.bases):
            yield from _changes_in(node, {"self.args", "args"})


def _handed_on(node: ast.ClassDef) -> Iterator[AttributeChange]:
    """What a config class of the file gives the one that it is derived from, where it is made in a way of its own."""
    for made in (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"):
        match made.body:
            case [ast.Expr(value=ast.Call() as call)] if called(call) == "__init__" and made.args.kwarg is not None:
                yield from (AttributeChange(keyword.arg, call) for keyword in call.keywords if keyword.arg)
            case _:
                yield AttributeChange("", made)


def _changes_in(node: ast.FunctionDef | ast.ClassDef, holders: Collection[str]) -> Iterator[AttributeChange]:
    for each in changes_of(ast.Module(node.body, []), holders):
        yield AttributeChange(each.key, each.node)


def config_names(tree: ast.Module, setup: Setup) -> set[str]:
    """Names by which a file reaches the run's own config: the variable, and the trainer's `args`."""
    bound, own = _Bound(tree), {id(call) for call in setup.configs}
    for loop in (node for node in every(tree, ast.For) if isinstance(node.target, ast.Name)):
        for item in loop.iter.elts if isinstance(loop.iter, (ast.List, ast.Tuple)) else ():
            bound.values.setdefault(ast.unparse(loop.target), []).append(item)
    for node in every(tree, ast.ClassDef):
        for name in {one.id for each in node.body for one in getattr(each, "targets", ()) if isinstance(one, ast.Name)}:
            bound.values |= {f"{owner}.{name}": bound.values[name] for owner in ("self", "cls", node.name)}
    made = {(name, call) for name, values in bound.values.items() for value in values for call in bound.reached(value)}
    return {name for name, call in made if id(call) in own} | {
        f"{name}.args" for name, call in made if setup.trainer and called(call) == setup.trainer
    }


def _taken(trainer: ast.Call, configs: list[ast.Call], bound: _Bound, values: NameValues) -> set[int]:
    """Which of the configs a trainer may get: the last one that is surely made before it, and what comes behind."""
    made = {id(call) for call in configs}
    out: set[int] = set()
    named = (keyword.value for keyword in trainer.keywords if keyword.arg in _OWN)
    for given in (*named, *trainer.args):
        for call in bound.reached(given):
            if id(call) in made:
                out.add(id(call))
                if values.is_certain(call) and not isinstance(given, ast.IfExp):
                    break
    return out


def _of_another(call: ast.Call, others: list[set[int]], tree: ast.Module) -> bool:
    """Whether a config is the one of another training: another trainer gets it, or could by its name."""
    if any(id(call) in other for other in others):
        return True
    name = called(call)
    trainer = name.removesuffix("Config") + TRAINER if name.endswith("Config") else TRAINER
    names = {node.id for node in every(tree, ast.Name)}
    return name.endswith("TrainingArguments") or trainer in names


def _leads_to(made: ast.expr, configs: list[ast.Call], bound: _Bound, tree: ast.Module) -> bool:
    """Whether one of the configs, or its name, stands in an expression or in the functions that it calls."""
    own = {id(call) for call in configs}
    names = {name for name, values in bound.values.items() if any(id(value) in own for value in values)}
    functions = {node.name: node for node in every(tree, ast.FunctionDef)}
    waiting: list[ast.AST] = [made]
    while waiting:
        node = waiting.pop()
        if any(id(one) in own or is_one(one, names) for one in ast.walk(node)):
            return True
        waiting += [function for call in calls(node) if (function := functions.pop(called(call), None)) is not None]
    return False


def _runs_after(before: ast.Call, trainer: ast.Call, values: NameValues) -> bool:
    """Whether a file that trains with one trainer surely trains with another, too: both stand in one block."""
    return values.is_certain(before) and values.is_certain(trainer) and values.scope(before) is values.scope(trainer)


def find_setup(tree: ast.Module, values: NameValues, chosen: int | None = None) -> Setup:
    """The calls of a file that say what is trained and how. `values` are those of its variables, `chosen` is the number
    of the trainer that is asked for among several: else it is the last."""
    bound = _Bound(tree)
    made = sorted(calls(tree), key=lambda call: (call.lineno, call.col_offset))
    derived = _derived(tree)
    configs = [
        call
        for call in made
        if _is_config(call) or (called(call) in derived and (call.keywords or call.args or not derived[called(call)]))
    ]
    parts = {id(call) for handed in _handed_over(tree, made) for call in bound.reached(handed) if _is_config(call)}
    parts |= {id(call) for call in configs if _NEVER_ITS_OWN.match(called(call))}
    taken, ambiguous = False, False
    trainers = [call for call in made if called(call).endswith(TRAINER) and called(call)[:1].isupper()]
    out = Setup([call for call in configs if id(call) not in parts])
    out.configs.sort(key=lambda call: len(call.keywords))
    for call in configs:
        if id(call) in parts:
            out.parts.append((called(call), call))
    if trainers:
        out.trained = tuple(map(called, trainers))
        if chosen is not None and chosen < len(trainers):
            trainers.append(trainers.pop(chosen))
        trainer = trainers[-1]
        out.trainer = called(trainer)
        out.parts.append((TRAINER, trainer))
        own, *others = (_taken(each, out.configs, bound, values) for each in reversed(trainers))
        same = {called(call) for call in out.configs if id(call) in own}
        apart = not all(_runs_after(before, trainer, values) for before in trainers[:-1])
        others = [other - own for other in others]
        alike = any(called(call) in same for call in out.configs for other in others if id(call) in other)
        ambiguous = len(own) > 1 or (chosen is None and (alike or (apart and any(others))))
        if own and not ambiguous:
            out.configs = [c for c in out.configs if id(c) in own or not _of_another(c, others, tree)]
        out.configs.sort(key=lambda call: id(call) in own)
        taken = any(id(call) in own for call in out.configs)
        handed = [keyword.value for keyword in trainer.keywords if keyword.arg in _OWN]
        out.given = bound.made(handed[0]) if handed and not own else None
        elsewhere = isinstance(out.given, ast.Call) and called(out.given) not in derived
        if elsewhere and out.given is not None and not _leads_to(out.given, out.configs, bound, tree):
            out.configs = []
    names = [called(call) for call in out.configs]
    out.rivals = ambiguous or (not taken and bool(names) and names.count(names[-1]) > 1)
    load = _model_load(made, trainers, bound)
    out.parts += [] if load is None else [(LOADER, load)]
    out.parts += [(ADAPTER, call) for call in made if called(call) == ADAPTER]
    of_ones_own = () if out.configs else _OF_ONES_OWN
    switched = [call for call in made if _SWITCHES_ON.match(called(call)) and _is_done(call, tree, values)]
    beside = (call for call in made if call in switched or called(call) in of_ones_own)
    out.parts += [(called(call), call) for call in beside]
    if not out.configs and not out.trainer:
        once = ((name, value) for name, value in once_set(tree) if name.isidentifier())
        out.numbers = [
            (name, value) for name, value in once
            if isinstance(value, ast.Constant) and isinstance(value.value, (bool, int, float))
        ]  # fmt: skip
    out.lengths = [(f"{TOKENIZER}.{keyword.arg}", keyword) for call in made for keyword in _cuts(call)]
    return out


def _is_done(call: ast.Call, tree: ast.Module, values: NameValues) -> bool:
    """Whether a call surely runs where its function does, and is no function of the file's own."""
    own = any(node.name == called(call) for node in every(tree, ast.FunctionDef))
    return isinstance(call.func, ast.Attribute) and values.is_certain(call) and not own


def _cuts(call: ast.Call) -> Iterator[ast.keyword]:
    """The argument by which a tokenizer cuts rows: model_max_length where it is loaded, max_length where it is called
    with truncation."""
    named = {keyword.arg: keyword for keyword in call.keywords}
    if called(call) == LOADER and _TOKENIZER.search(ast.unparse(call.func)):
        wanted = "model_max_length"
    elif _TOKENIZER.search(called(call)) and _is_true(named.get("truncation")):
        wanted = "max_length"
    else:
        return
    if wanted in named:
        yield named[wanted]


def _is_true(keyword: ast.keyword | None) -> bool:
    return keyword is not None and isinstance(keyword.value, ast.Constant) and bool(keyword.value.value)


def imported(tree: ast.Module, classes: Mapping[str, ast.ClassDef], names: Iterable[str]) -> Iterator[str]:
    """ "trl.GRPOTrainer" of a name, or of the base of a class of the file's own, that the file takes from a package."""
    sources = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in every(tree, ast.ImportFrom)
        if node.level == 0
        for alias in node.names
    }
    for name in names:
        own = [ast.unparse(base) for base in classes[name].bases] if name in classes else [name]
        yield from (clean(sources[one], 200) for one in own if one in sources)


def _is_config(call: ast.Call) -> bool:
    return bool(call.keywords) and _CONFIG_NAME.search(called(call)) is not None and called(call) not in _NOT_SETTINGS


def _handed_over(tree: ast.Module, calls: list[ast.Call]) -> Iterator[ast.expr]:
    """Expressions handed over as a part of something else, not as the run's own config."""
    for call in calls:
        if not _is_config(call):
            yield from (keyword.value for keyword in call.keywords if _PART.search(keyword.arg or ""))
        if called(call) == ADAPTER:
            yield from call.args[1:]
    for node in every(tree, ast.Dict):
        yield from (value for key, value in zip(node.keys, node.values, strict=True) if _PART.search(text(key)))


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
