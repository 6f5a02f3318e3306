"""EasyR1: PPOConfig merged with file and words as its `main` does, then its own deep_post_init."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from judges.stand_ins import stand_in_for

HEAVY = (
    *(
        "torch",
        "ray",
        "vllm",
        "transformers",
        "tensordict",
        "flash_attn",
        "torchdata",
        "datasets",
        "accelerate",
        "peft",
    ),
    *("codetiming", "PIL", "qwen_vl_utils", "wandb", "mathruler", "liger_kernel", "pylatexenc", "jinja2", "numpy"),
    *("torch_functional", "huggingface_hub", "swanlab", "mlflow", "tensorboard", "cupy"),
)


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what OmegaConf or a check raises."""
    stand_in_for(HEAVY)
    omegaconf = importlib.import_module("omegaconf").OmegaConf
    config_class = importlib.import_module("verl.trainer.config").PPOConfig

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        given = omegaconf.from_cli(list(argv))
        config = omegaconf.structured(config_class())
        if hasattr(given, "config"):
            config = omegaconf.merge(config, omegaconf.load(given.pop("config")))
        done = omegaconf.to_object(omegaconf.merge(config, given))
        done.deep_post_init()
        return {str(key): value for key, value in asdict(done).items()}

    return parse
