"""axolotl: file and options as load_cfg merges them, then validate_config (pydantic) as on eight cards."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from judges.stand_ins import stand_in_for

HEAVY = (
    *("vllm", "deepspeed", "peft", "trl", "ray", "bitsandbytes", "flash_attn", "wandb", "datasets", "liger_kernel"),
    *("posthog", "fire", "numba"),
)


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The schema of this tag: raises what pydantic or a validator raises; keys that it does not have, it drops."""
    stand_in_for(HEAVY)
    sys.path.insert(0, str(tree / "src"))
    config = importlib.import_module("axolotl.utils.config")
    dictionary = importlib.import_module("axolotl.utils.dict").DictDefault
    loader = importlib.import_module("axolotl.cli.config")

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        file, *words = argv
        told = dictionary(yaml.safe_load(Path(file).read_text()))
        for word in words:
            name, _, value = word.lstrip("-").replace("-", "_").partition("=")
            told[name] = loader._coerce_value(value, told.get(name))
        config.prepare_plugins(told)
        card = {"bf16": True, "fp8": True, "n_gpu": 8, "n_node": 1, "compute_capability": "sm_90", "tf32": True}
        done = config.validate_config(told, capabilities=card, env_capabilities={"torch_version": "2.9.1"}).to_dict()
        done["gradient_checkpointing"] = str(told.gradient_checkpointing).lower()  # of "offload" it makes another key
        if isinstance(fsdp := done.get("fsdp_config"), dict):  # under its older names, too
            done["fsdp_config"] = {**fsdp, **{f"fsdp_{key}": value for key, value in fsdp.items()}}
        return {str(key): value for key, value in done.items() if key not in ("capabilities", "env_capabilities")}

    return parse
