"""SkyRL: SkyRLTrainConfig (SFTConfig of its SFT program) from the words, and its validation where no card is needed."""

from __future__ import annotations

import importlib
import os
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judges.stand_ins import bare_packages, stand_in_for, stand_in_for_missing

HEAVY = ("ray", "vllm", "transformers", "peft", "megatron", "flash_attn", "wandb", "datasets", "accelerate")


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what OmegaConf, a config class or validate_cfg raises."""
    typing.TypedDict = importlib.import_module("typing_extensions").TypedDict  # pydantic asks for it before Python 3.12
    os.environ.setdefault("WANDB_API_KEY", "none")  # its validation asks for one
    stand_in_for(HEAVY)
    stand_in_for_missing(["skyrl"])
    bare_packages(tree, ["skyrl", "skyrl.train"])
    config = importlib.import_module("skyrl.train.config.config")
    sft = importlib.import_module("skyrl.train.config.sft_config")
    checks = importlib.import_module("skyrl.train.utils.utils")

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        given = [word for word in argv if "=" in word]
        if "sft" in program:
            told = sft.SFTConfig.from_cli_overrides(given)
            sft.validate_sft_cfg(told)
        else:
            told = config.SkyRLTrainConfig.from_cli_overrides(given)
            checks.validate_cfg(told)
        return {str(key): value for key, value in _tree(told).items()}

    def _tree(told: Any) -> dict[str, Any]:
        return dict(importlib.import_module("dataclasses").asdict(told))

    return parse
