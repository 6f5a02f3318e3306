"""verl: Hydra's compose on the tag's own config folder, then the tag's own validation and dataclasses."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from judges.stand_ins import stand_in_for

HEAVY = (
    *("vllm", "ray", "flash_attn", "tensordict", "megatron", "mbridge", "sglang", "liger_kernel", "torchdata", "peft"),
    *("codetiming", "torch", "transformers", "datasets", "accelerate", "pandas", "dill", "pylatexenc", "wandb", "PIL"),
    *("torchvision", "cachetools", "aiohttp", "fastapi", "uvicorn", "starlette", "zmq", "cupy", "math_verify"),
    *("transfer_queue", "orjson", "openai", "qwen_vl_utils", "torch_npu", "pybind11", "safetensors", "msgspec"),
)


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what Hydra or the validation raises."""
    stand_in_for(HEAVY)
    _leave_models_alone()
    hydra, core = importlib.import_module("hydra"), importlib.import_module("hydra.core.global_hydra")
    omegaconf = importlib.import_module("omegaconf").OmegaConf

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        file = tree / program if program.endswith(".py") else tree / (program.replace(".", "/") + ".py")
        folder, name = _entry(file)
        overrides = []
        for word in _joined(argv):
            option, _, value = word.partition("=")
            if option in ("--config-path", "-cp"):
                folder = value
            elif option in ("--config-name", "-cn"):
                name = value
            else:
                overrides.append(word)
        core.GlobalHydra.instance().clear()
        with hydra.initialize_config_dir(str((file.parent / folder).resolve()), version_base=None):
            config = hydra.compose(name.removesuffix(".yaml"), overrides)
        raw = omegaconf.to_container(config, resolve=False)
        _validate(config)
        omegaconf.to_container(config, resolve=True)
        return {str(key): value for key, value in raw.items() if key != "hydra"}

    return parse


def _joined(argv: Sequence[str]) -> list[str]:
    """Options of Hydra with their values as one word each."""
    words: list[str] = []
    for word in argv:
        if words and words[-1] in ("--config-path", "--config-name", "-cp", "-cn"):
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


def _entry(file: Path) -> tuple[str, str]:
    """config_path and config_name of the entry's own `@hydra.main`."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "hydra.main":
            given = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
            return str(given["config_path"]), str(given["config_name"])
    raise LookupError(f"{file} has no hydra.main")


def _leave_models_alone() -> None:
    """The class that would read the model's own files checks nothing; newer tags have it."""
    with contextlib.suppress(ImportError, AttributeError):
        importlib.import_module("verl.workers.config").HFModelConfig.__post_init__ = lambda self: None


def _validate(config: Any) -> None:
    """What main_ppo and the trainer check before they train."""
    use_critic = str(config.algorithm.adv_estimator) == "gae"
    use_reference = bool(config.actor_rollout_ref.actor.use_kl_loss or config.algorithm.get("use_kl_in_reward", True))
    told = {"use_critic": use_critic, "use_reference_policy": use_reference}
    utils = importlib.import_module("verl.utils.config") if importlib.util.find_spec("verl.utils.config") else None
    if hasattr(utils, "validate_config"):
        utils.validate_config(config=config, **told)
    else:
        trainer = importlib.import_module("verl.trainer.ppo.ray_trainer").RayPPOTrainer
        trainer._validate_config(SimpleNamespace(config=config, use_rm=False, train_dataset=(), **told))
    rollout = config.actor_rollout_ref.rollout
    if hasattr(utils, "omega_conf_to_dataclass") and rollout.get("_target_") is not None:
        utils.omega_conf_to_dataclass(rollout)
