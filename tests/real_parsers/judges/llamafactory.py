"""LLaMA-Factory: get_train_args, whole: the parser of transformers, the checks of each class, its own."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from judges.stand_ins import stand_in_for

HEAVY = ("vllm", "deepspeed", "peft", "trl", "ray", "liger_kernel", "gradio", "wandb")


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what transformers' parser, a config class or get_train_args raises."""
    installed = metadata.metadata
    metadata.metadata = lambda name: installed("torch" if name == "deepspeed" else name)  # transformers looks for it
    stand_in_for(HEAVY)
    sys.path.insert(0, str(tree / "src"))
    arguments = importlib.import_module("transformers.training_args")
    arguments.is_torch_bf16_gpu_available = lambda: True  # as on a GPU
    importlib.import_module("transformers.integrations.deepspeed").dep_version_check = lambda *_: None
    importlib.import_module("llamafactory.extras.misc").require_version = lambda *_: None
    parser = importlib.import_module("llamafactory.hparams.parser")
    parser.check_version = lambda *_, **__: None  # every package is there
    parser.is_torch_bf16_gpu_available = lambda: True
    arguments.TrainingArguments.parallel_mode = arguments.ParallelMode.DISTRIBUTED  # as torchrun starts it

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        sys.argv = ["llamafactory-cli", *argv]
        return {
            field.name: getattr(part, field.name, None)
            for part in parser.get_train_args()
            for field in dataclasses.fields(part)
        }

    return parse
