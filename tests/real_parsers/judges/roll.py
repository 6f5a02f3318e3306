"""ROLL: Hydra's compose as its start scripts do it, then dacite into the pipeline's config class with its checks."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judges.stand_ins import stand_in_for, stand_in_for_missing

HEAVY = (
    *("ray", "vllm", "sglang", "megatron", "mcore_adapter", "deepspeed", "tensordict", "flash_attn", "datasets"),
    *("peft", "accelerate", "wandb", "swanlab", "PIL", "torchvision", "trl", "codetiming", "gem", "gymnasium"),
    *("nltk", "latex2sympy2_extended", "math_verify", "openai", "aiohttp", "fastapi", "uvicorn", "pandas"),
    *("langid", "diffusers", "rock", "cloudpickle", "more_itertools", "httpx", "zmq", "mlflow", "tensorboard"),
    *("qwen_vl_utils", "nest_asyncio", "jsonlines", "torch_npu", "iflow"),
)
PIPELINES = {
    "agentic": ("roll.pipeline.agentic.agentic_config", "AgenticConfig"),
    "onpolicy_distill": ("roll.pipeline.rlvr.rlvr_config", "RLVRConfig"),
    "rlvr": ("roll.pipeline.rlvr.rlvr_config", "RLVRConfig"),
    "distill": ("roll.pipeline.distill.distill_config", "DistillConfig"),
    "dpo": ("roll.pipeline.dpo.dpo_config", "DPOConfig"),
    "sft": ("roll.pipeline.sft.sft_config", "SFTConfig"),
}


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what Hydra, dacite or a config class raises."""
    stand_in_for(HEAVY)
    stand_in_for_missing(["roll"])
    hydra, core = importlib.import_module("hydra"), importlib.import_module("hydra.core.global_hydra")
    omegaconf, dacite = importlib.import_module("omegaconf").OmegaConf, importlib.import_module("dacite")

    platforms = importlib.import_module("roll.platforms")
    type(platforms.current_platform).device_count = lambda self=None: 8

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        told = dict(zip(argv[::2], argv[1::2], strict=True))
        pipeline = Path(program).name.removeprefix("start_") or Path(told["--config_path"]).name.rpartition("-")[2]
        module, name = next((at for word, at in PIPELINES.items() if pipeline.startswith(word)), PIPELINES["rlvr"])
        kind = getattr(importlib.import_module(module), name)
        folder = (tree / "examples" / told["--config_path"]).resolve()
        core.GlobalHydra.instance().clear()
        with hydra.initialize_config_dir(str(folder), version_base=None):
            config = hydra.compose(told["--config_name"])
        done = dacite.from_dict(data_class=kind, data=omegaconf.to_container(config, resolve=True))
        return dataclasses.asdict(done)

    return parse
