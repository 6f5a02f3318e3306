"""Measured beside predicted: what `estimate` says of each script as it stands, told its longest row.

`python -m tests.gpu.trainers.compare FOLDER` writes measured.yaml from the results that `python -m tests.gpu.trainers`
left in a folder; without one it prints the table.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from advisor.cli import main as run
from tests.gpu.predicted import OUTSIDE
from tests.gpu.table import Row
from tests.gpu.trainers.scripts import HERE, TrainerRun, runs

FILE = HERE / "measured.yaml"
PHASES = ("rollout_generate", "log_prob", "actor_update", "optimizer_step")
HEAD = """\
# Peaks of TRL's own trainers (runs.yaml) on one GPU: bytes that torch's allocator held, in the fuller of two steps.
# Written by `python -m tests.gpu.trainers.compare FOLDER`.
"""


def measured() -> dict[str, Any]:
    """measured.yaml: card, libraries, and run → phase → bytes."""
    found: dict[str, Any] = yaml.safe_load(FILE.read_bytes())
    return found


@lru_cache(maxsize=1)
def compared() -> tuple[Row, ...]:
    """Every phase that was measured, with what the ledger says of it; driver and allocator are left out."""
    table, rows = measured(), []
    with tempfile.TemporaryDirectory() as folder:
        for each in runs():
            phases = table["runs"].get(each.name, {})
            told = _estimated(each, table, Path(folder)) if phases else {}
            rows += [Row(each.name, phase, held, *told[phase]) for phase, held in phases.items()]
    return tuple(rows)


def _estimated(each: TrainerRun, table: dict[str, Any], folder: Path) -> dict[str, tuple[int, int, int]]:
    """Phase → expected, low and high bytes."""
    libraries = [f"--lib={name}={version}" for name, version in table["libraries"].items()]
    words = [str(each.write_script(folder)), "--gpus", table["gpus"], *libraries, "--max-row", str(each.row)]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run(["estimate", *words, "--format", "json"])
    found = {}
    for phase in json.loads(out.getvalue())["memory"]["gpu"]["phases"]:
        beside = sum(item["bytes"] for item in phase["items"] if item["owner"] in OUTSIDE)
        ends = (phase[f"{end}_bytes"] - beside for end in ("expected", "low", "high"))
        found[phase["phase"]] = tuple(round(end) for end in ends)
    return found  # type: ignore[return-value]


def written(folder: Path, card: str, gpus: str, libraries: dict[str, str]) -> str:
    """measured.yaml of a folder of results."""
    held: dict[str, dict[str, int]] = {}
    for each in runs():
        result = folder / f"{each.name}.json"
        told = json.loads(result.read_text()) if result.exists() and result.stat().st_size else {"died": "not run"}
        if not told["died"]:
            phases = [phase for phase in PHASES if phase != "log_prob" or each.scores]
            held[each.name] = {phase: told["peaks"][phase]["allocated"] for phase in phases if phase in told["peaks"]}
    about = {"card": card, "gpus": gpus, "libraries": libraries, "runs": held}
    return HEAD + yaml.safe_dump(about, sort_keys=False, width=200)


def table() -> list[str]:
    """Lines of a Markdown table, GiB."""
    lines = ["| run | phase | measured | low | expected | high | error |", "| --- | --- |" + " ---: |" * 5]
    for row in compared():
        numbers = " | ".join(f"{size / 2**30:.2f}" for size in (row.measured, row.low, row.predicted, row.high))
        lines.append(f"| {row.configuration} | {row.phase} | {numbers} | {row.error:+.1%} |")
    return lines


def main() -> int:
    """Write or print."""
    if len(sys.argv) > 1:
        about = json.loads((Path(sys.argv[1]) / "about.json").read_text())
        FILE.write_text(written(Path(sys.argv[1]), **about))
    print("\n".join(table()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
