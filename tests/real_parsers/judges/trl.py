"""TRL: TrlParser (transformers' HfArgumentParser) on the script's own config class, its `__post_init__` included."""

from __future__ import annotations

import ast
import dataclasses
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judges.stand_ins import stand_in_for

HEAVY = ("vllm", "deepspeed", "flash_attn", "ray", "liger_kernel", "unsloth", "peft", "wandb")


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what the parser or a config class raises."""
    stand_in_for(HEAVY)
    importlib.import_module("transformers.training_args").is_torch_bf16_gpu_available = lambda: True  # as on a GPU

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        trl = importlib.import_module("trl")
        classes = [trl.ScriptArguments, *_configs_of(tree, program), trl.ModelConfig]
        parsed = trl.TrlParser(classes).parse_args_and_config(list(argv))
        return {
            field.name: getattr(part, field.name, None) for part in parsed for field in dataclasses.fields(type(part))
        }

    return parse


def _configs_of(tree: Path, program: str) -> list[Any]:
    """The config classes that the program hands to its parser: `trl grpo`'s, or those of a script."""
    file = program if program.endswith(".py") else f"trl/scripts/{program}.py"
    nodes = list(ast.walk(ast.parse((tree / file).read_text())))
    told = [(ast.unparse(node.targets[0]), node.value) for node in nodes if isinstance(node, ast.Assign)]
    homes = {one.name: node.module for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names}
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("TrlParser"):
            given = node.args[0] if node.args else node.keywords[0].value
            listed = next((value for name, value in told if name == ast.unparse(given)), given)
            words = ast.unparse(listed).strip("()[]").split(", ")
            wanted = [word for word in words if word.endswith("Config") and word != "ModelConfig"]
            return [getattr(importlib.import_module(homes.get(word) or "trl"), word) for word in wanted]
    raise LookupError(f"{program} has no TrlParser")
