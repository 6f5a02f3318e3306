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
        names = ("ScriptArguments", *_config_of(tree, program), "ModelConfig")
        parsed = trl.TrlParser([getattr(trl, name) for name in names]).parse_args_and_config(list(argv))
        return {
            field.name: getattr(part, field.name, None) for part in parsed for field in dataclasses.fields(type(part))
        }

    return parse


def _config_of(tree: Path, program: str) -> tuple[str, ...]:
    """The config classes that the program hands to its parser: `trl grpo`'s, or those of a script."""
    if not program.endswith(".py"):
        return (f"{program.upper()}Config",)
    for node in ast.walk(ast.parse((tree / program).read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("TrlParser"):
            words = ast.unparse(node.args[0] if node.args else node.keywords[0].value).strip("()[]").split(", ")
            return tuple(word for word in words if word.endswith("Config") and word != "ModelConfig")
    raise LookupError(f"{program} has no TrlParser")
