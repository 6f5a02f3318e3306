"""AReaL: Hydra's compose on the file that --config names, merged into the config class, whose own checks run."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judges.stand_ins import bare_packages, stand_in_for, stand_in_for_missing

HEAVY = (
    *("torch", "ray", "vllm", "sglang", "transformers", "megatron", "mbridge", "tensordict", "flash_attn"),
    *("torchdata", "datasets", "accelerate", "peft", "uvloop", "aiohttp", "aiofiles", "fastapi", "uvicorn"),
    *("openai", "httpx", "PIL", "wandb", "swanlab", "trackio", "tensorboardX", "colorlog", "numba", "numpy"),
    *("pynvml", "psutil", "zmq", "kernels", "torch_memory_saver", "torchao", "einops", "qwen_agent", "agents"),
    *("litellm", "orjson", "setproctitle", "anthropic", "prettytable", "matplotlib", "networkx", "pandas", "ninja"),
    *("nltk", "blosc", "requests", "pybase64", "safetensors", "torch_npu", "python_dateutil", "tabulate"),
    *("tenacity", "tqdm", "cloudpickle", "flask", "pebble", "math_verify", "latex2sympy2"),
)


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what Hydra, OmegaConf or a config class raises."""
    stand_in_for(HEAVY)
    stand_in_for_missing(["areal"])
    bare_packages(tree, ["areal", "areal.api", "areal.engine", "areal.engine.fsdp_utils", "areal.infra", "areal.utils"])
    cli = importlib.import_module("areal.api.cli_args")
    omegaconf = importlib.import_module("omegaconf").OmegaConf

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        config, file = cli.parse_cli_args(list(argv))
        kind = getattr(cli, _class_of(omegaconf.to_container(config, resolve=False), Path(file).read_text()))
        done = omegaconf.to_object(cli.to_structured_cfg(config, config_cls=kind))
        return dataclasses.asdict(done)

    return parse


def _class_of(config: dict[str, Any], text: str) -> str:
    """The config class of the trainer that such a file is for."""
    kind = (config.get("train_dataset") or {}).get("type", "")
    of_kind = {"sft": "SFTConfig", "rw": "RWConfig", "dpo": "DPOConfig"}.get(kind, "")
    return of_kind or ("PPOConfig" if "critic" in config else "GRPOConfig")
