"""NeMo-RL: its own loader (defaults, overrides, interpolations), then the MasterConfig of the method's program."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judges.stand_ins import bare_packages, stand_in_for, stand_in_for_missing

HEAVY = (
    *(
        "google",
        "ray",
        "transformers",
        "accelerate",
        "vllm",
        "sglang",
        "megatron",
        "tensordict",
        "flash_attn",
        "torchdata",
        "datasets",
        "peft",
    ),
    *("wandb", "mlflow", "swanlab", "nemo_automodel", "nvidia_resiliency_ext", "zmq", "PIL"),
    *("matplotlib", "torchvision", "tiktoken", "math_verify", "prometheus_client", "setproctitle", "pynvml"),
    *("debugpy", "aiohttp", "nemo_gym", "decord", "plotly", "tensorboard", "fastapi", "uvicorn", "openai"),
    *("transfer_queue", "modelopt", "nccl4py", "nccl", "cuda", "nixl", "nltk", "langdetect", "torchaudio"),
    *("soundfile", "librosa", "pandas", "blobfile", "colored", "rich", "cloudpickle", "hf_xet", "causal_conv1d"),
    *("mamba_ssm", "deep_ep", "torchx", "IPython", "gymnasium"),
)
METHODS = {"run_dpo": "dpo", "run_sft": "sft", "run_rm": "rm", "run_ppo": "ppo", "run_distillation": "distillation"}


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what OmegaConf or pydantic raises."""
    stand_in_for(HEAVY)
    stand_in_for_missing(["nemo_rl"])
    bare_packages(tree, ["nemo_rl"])
    importlib.import_module("transformers").__version__ = "5.11.0"  # it asks for less than 5.12
    config = importlib.import_module("nemo_rl.utils.config")
    omegaconf = importlib.import_module("omegaconf").OmegaConf
    config.register_omegaconf_resolvers()

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        words = list(argv)
        at = words.index("--config")
        file = words[at + 1]
        del words[at : at + 2]
        loaded = config.load_config(file)
        if words:
            loaded = config.parse_hydra_overrides(loaded, words)
        flat = omegaconf.to_container(loaded, resolve=True)
        method = next((kind for name, kind in METHODS.items() if name in program), _method_of(flat))
        importlib.import_module(f"nemo_rl.algorithms.{method}").MasterConfig(**flat)
        return {str(key): value for key, value in flat.items()}

    return parse


def _method_of(config: dict[str, Any]) -> str:
    """The algorithm whose section the file has."""
    return next((name for name in ("distillation", "ppo", "dpo", "rm", "sft") if name in config), "grpo")
