"""slime: `parse_args` of its own module on Megatron-LM's parser (MEGATRON_LM names a checkout), and its checks."""

from __future__ import annotations

import importlib
import os
import sys
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judges.stand_ins import stand_in_for

HEAVY = (
    *("ray", "sglang", "sglang_router", "transformers", "transformer_engine", "flash_attn", "apex", "datasets"),
    *("wandb", "tensordict", "httpx", "aiohttp", "PIL", "mbridge", "tensorboard", "pybase64", "qwen_vl_utils"),
    *("ring_flash_attn", "torch_memory_saver", "safetensors", "einops", "nvidia_resiliency_ext", "modelopt"),
    *("tqdm", "pynvml"),
)


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what argparse or a check raises."""
    sys.path.insert(0, os.environ["MEGATRON_LM"])
    stand_in_for(HEAVY)
    if not hasattr(typing, "override"):  # Megatron-LM asks for Python 3.12
        typing.override = lambda method: method  # type: ignore[attr-defined]
    importlib.import_module("slime.backends.megatron_utils.arguments")._hf_validate_args = lambda *args: None
    arguments = importlib.import_module("slime.utils.arguments")

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        sys.argv = [program, *argv]
        return dict(vars(arguments.parse_args()))

    return parse
