"""slime: `parse_args` of its own module on Megatron-LM's parser (MEGATRON_LM names a checkout), and its checks."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
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
    os.path.exists = lambda path: True  # checkpoints lie on the cluster
    cuda = importlib.import_module("torch").cuda
    card = SimpleNamespace(major=9, minor=0, name="NVIDIA H100", total_memory=80 << 30, multi_processor_count=132)
    cuda._lazy_init, cuda.is_available, cuda.current_device = lambda: None, lambda: True, lambda: 0
    cuda.get_device_properties, cuda.get_device_capability = lambda *device: card, lambda *device: (9, 0)
    cuda.device_count = lambda: 8
    arguments = importlib.import_module("slime.utils.arguments")
    arguments.sglang_validate_args = lambda args: None  # its options are not parsed here

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        sys.argv = [program, *argv]
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"  # the scripts' --runtime-env-json
        engine = {w[2:].replace("-", "_"): v for w, v in itertools.pairwise(argv) if w.startswith("--sglang-")}
        return {**vars(arguments.parse_args()), **engine}  # SGLang's own parser is not here: as they are written

    return parse
