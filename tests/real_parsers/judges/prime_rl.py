"""prime-rl: its pydantic config class of the program from the TOML files and the words, all validators included."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from judges.stand_ins import stand_in_for, stand_in_for_missing


def opened(tree: Path) -> Callable[[str, Sequence[str]], dict[str, Any]]:
    """The parser of this tag: raises what pydantic, its command line or a validator raises."""
    sys.path.insert(0, str(tree / "packages/prime-rl-configs/src"))
    cli = importlib.import_module("pydantic_config").cli
    stand_in_for(["verifiers"])  # environments: each is a package of its own
    some = SimpleNamespace(env_id="any")
    importlib.import_module("verifiers.v1").resolve_env_field = lambda told, _: {**told, "env": some}
    stand_in_for_missing(["prime_rl", "pydantic_config"])

    def parse(program: str, argv: Sequence[str]) -> dict[str, Any]:
        kind = "SFTConfig" if "sft" in argv[-1] else "RLConfig"  # the file says what it is for
        module = importlib.import_module(f"prime_rl.configs.{kind.removesuffix('Config').lower()}")
        return dict(cli(getattr(module, kind), args=list(argv)).model_dump())

    return parse
