"""Runs a Python file with made-up classes of TRL: what each of its trainings gets."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from typing import Any


@dataclass
class GRPOConfig:
    output_dir: str = "out"
    batch_size: int | None = None
    lr: int = 0


def trained(text: str) -> list[dict[str, Any]]:
    """The config of every trainer that trains, in order."""
    got: list[dict[str, Any]] = []

    class GRPOTrainer:
        def __init__(self, model: str = "", args: GRPOConfig | None = None) -> None:
            self.args = args

        def train(self) -> None:
            got.append(dict(vars(self.args)) if self.args else {})

    module = types.ModuleType("trl")
    module.__dict__.update(GRPOConfig=GRPOConfig, GRPOTrainer=GRPOTrainer)
    kept, sys.modules["trl"] = sys.modules.get("trl"), module
    try:
        exec(compile(text, "run.py", "exec"), {"__name__": "__main__"})
    finally:
        del sys.modules["trl"]
        if kept is not None:
            sys.modules["trl"] = kept
    return got
