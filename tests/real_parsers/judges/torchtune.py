"""torchtune: the recipe's parser merges file and words, config.validate binds the components."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from judges.stand_ins import stand_in_for, stand_in_for_missing

HEAVY = (
    *("torchao", "torchvision", "torchdata", "datasets", "wandb", "vllm", "ray", "bitsandbytes", "sentencepiece"),
    *("tiktoken", "regex"),
)


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what it, OmegaConf or config.validate raises; gives what the recipe reads."""
    stand_in_for(HEAVY)
    torch = importlib.import_module("torch")
    torch.npu = torch.hpu = SimpleNamespace(is_available=lambda: False)  # their packages are stand-ins
    stand_in_for_missing(["torchtune"])
    config = importlib.import_module("torchtune.config._parse")
    merge = importlib.import_module("torchtune.config._utils")._merge_yaml_and_cli_args
    validate = importlib.import_module("torchtune.config._validate").validate
    omegaconf = importlib.import_module("omegaconf").OmegaConf
    shared = "".join(file.read_text() for file in (tree / "torchtune").rglob("*.py"))
    recipes = {file.stem: file.read_text() for file in (tree / "recipes").rglob("*.py")}

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        words = list(argv)
        file = words[words.index("--config") + 1]
        recipe = re.search(r"tune run (?:--\S+ \S+ |\\\n# +)*(\w+) --config", Path(file).read_text())
        name = recipe[1] if recipe else program
        merged = merge(*config.TuneRecipeArgumentParser().parse_known_args(words))
        validate(merged)
        reads = recipes.get(name, "".join(recipes.values())) + shared
        told = omegaconf.to_container(merged, resolve=True)
        return {key: value for key, value in told.items() if re.search(rf"""cfg\.{key}\b|["']{key}["']""", reads)}

    return parse
