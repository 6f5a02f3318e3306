"""OpenRLHF: the entry's own argparse block with every check it makes before it trains."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judges.stand_ins import stand_in_for

HEAVY = (
    *("torch", "ray", "deepspeed", "vllm", "transformers", "datasets", "flash_attn", "peft", "bitsandbytes", "optree"),
    *("torchdata", "tqdm", "einops", "torchmetrics", "wandb", "ring_flash_attn", "accelerate", "jsonlines", "PIL"),
    *("modelscope", "aiohttp", "fastapi", "uvicorn", "liger_kernel", "loralib", "isort", "pandas", "numpy", "httpx"),
    *("requests", "pylatexenc", "sympy", "math_verify", "pebble", "word2number"),
)


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what argparse or an assertion of the entry raises."""
    stand_in_for(HEAVY)

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        file = tree / program if program.endswith(".py") else tree / (program.replace(".", "/") + ".py")
        space: dict[str, Any] = {"__name__": "__main__"}
        sys.argv = [str(file), *argv]
        exec(compile(_without_training(file), str(file), "exec"), space)
        return _flat(space["args"])

    return parse


def _without_training(file: Path) -> ast.Module:
    """The entry as it stands, its `train` emptied."""
    tree = ast.parse(file.read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "train":
            node.body = [ast.Pass()]
    return ast.fix_missing_locations(tree)


def _flat(arguments: Any) -> dict[str, Any]:
    """A namespace as a dictionary; newer tags nest them."""
    if not hasattr(arguments, "__dict__"):
        return {"": arguments}
    return {key: _flat(value) if hasattr(value, "__dict__") else value for key, value in vars(arguments).items()}
