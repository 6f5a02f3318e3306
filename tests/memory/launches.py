"""Estimates a launch script as a user would, in this process."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from advisor.cli import main
from advisor.units import GIB


class Estimate:
    """What `estimate` says of a script: GiB of a phase, or of an owner in it."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.said = said
        self.phases = {phase["phase"]: phase for phase in said["memory"]["gpu"]["phases"]}

    def gib(self, phase: str = "actor_update") -> float:
        """Expected GiB on one card."""
        return float(self.phases[phase]["expected_bytes"] / GIB)

    def of(self, owner: str, phase: str = "actor_update") -> float:
        """GiB of one owner."""
        return float(sum(item["bytes"] for item in self.phases[phase]["items"] if item["owner"] == owner) / GIB)


def estimate(script: str, gpus: str = "1xA100-80GB", name: str = "train.sh") -> Estimate:
    """The JSON of `rl-oom-advisor estimate` on a script of this text, without how far it could go: that is a search."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
        file = Path(folder) / name
        file.write_text(script)
        with patch("advisor.run_file.sizes_of", return_value=None):
            main(["estimate", str(file), "--gpus", gpus, "--host-ram", "2000GB", "--format", "json"])
    return Estimate(json.loads(out.getvalue()))
