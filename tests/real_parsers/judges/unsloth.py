"""unsloth: a script's calls, bound to the package's own signatures and to TRL's config class with its checks."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judges.stand_ins import stand_in_for

HEAVY = ("vllm", "deepspeed", "flash_attn", "ray", "liger_kernel", "peft", "wandb", "bitsandbytes")
LOADERS = {"from_pretrained": ("loader.py",), "get_peft_model": ("llama.py", "vision.py")}
CALLS = re.compile(
    r"(?:Fast\w+\.)(from_pretrained|get_peft_model)|(?:\w+\.)?(\w+Config|\w*TrainingArguments|\w+Trainer)"
)
OWN = re.compile(r"^    (\w+) ?: Optional\[.*\] = field\($", re.MULTILINE)
"""Fields that unsloth writes into each config class which it makes of TRL's."""


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises where a signature has no such argument, and what a config class raises."""
    stand_in_for(HEAVY)
    importlib.import_module("transformers.training_args").is_torch_bf16_gpu_available = lambda: True  # as on a GPU
    trl = importlib.import_module("trl")
    found = importlib.util.find_spec("unsloth")
    models = Path(next(iter(found.submodule_search_locations or ()))) / "models" if found else tree
    own = {*OWN.findall((models / "rl.py").read_text()), "max_seq_length"}
    arguments = {name: {a for file in of for a in _arguments(models / file, name)} for name, of in LOADERS.items()}

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, given in _calls(ast.parse(Path(argv[-1]).read_text())):
            if name in arguments:
                if wrong := sorted(given.keys() - arguments[name]):
                    raise TypeError(f"{name} has no {wrong}")
                values |= {f"{name}.{key}": value for key, value in given.items()}
            elif name.endswith("Trainer"):
                values |= {f"Trainer.{key}": value for key, value in given.items()}
            elif (kind := getattr(trl, name.removeprefix("Unsloth"), None)) is not None:
                names = {field.name for field in dataclasses.fields(kind)}
                theirs = {key: value for key, value in given.items() if key in names and value is not UNKNOWN}
                theirs = {"output_dir": "out", "report_to": "none", **_whole_groups(theirs)}  # others it drops, too
                made = kind(**theirs)
                values |= {name: getattr(made, name, None) for name in names}
                values |= {key: value for key, value in given.items() if key in own or key == BATCH}
        return {key: value for key, value in values.items() if value is not UNKNOWN}

    return parse


BATCH = "per_device_train_batch_size"
SIGNS = {ast.Mult: operator.mul, ast.Add: operator.add, ast.Sub: operator.sub}
UNKNOWN = object()
"""What only the running script knows."""


def _whole_groups(given: dict[str, Any]) -> dict[str, Any]:
    """unsloth raises a batch that holds no whole group to one group (rl.py, where it writes GRPOConfig's __init__)."""
    group = given.get("num_generations", 0)
    odd = group and given.get(BATCH, 4) * given.get("gradient_accumulation_steps", 2) % group
    return {**given, BATCH: group} if odd else given


def _arguments(file: Path, name: str) -> set[str]:
    """The parameters of all functions of that name, without those that go on to another library."""
    found = {node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}
    return {one.arg for node in found if node.name == name for one in (*node.args.args, *node.args.kwonlyargs)}


def _calls(module: ast.Module) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The calls that configure, in their order, with the values that the file itself gives."""
    told: dict[str, Any] = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            told[node.targets[0].id] = _value(node.value, told)
        for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)):
            if (match := CALLS.fullmatch(ast.unparse(call.func))) is not None:
                yield match[1] or match[2], {one.arg: _value(one.value, told) for one in call.keywords if one.arg}


def _value(node: ast.expr, told: Mapping[str, Any]) -> Any:
    """A literal, a name that the file sets to one, or a product or sum of such numbers; nothing is run."""
    if isinstance(node, ast.Name):
        return told.get(node.id, UNKNOWN)
    if isinstance(node, ast.BinOp) and (sign := SIGNS.get(type(node.op))) is not None:
        left, right = _value(node.left, told), _value(node.right, told)
        return sign(left, right) if isinstance(left, int) and isinstance(right, int) else UNKNOWN
    try:
        return ast.literal_eval(node)
    except ValueError:
        return UNKNOWN
