"""What the ledger says of the same run: a run file in knobs, sized as `rl-oom-advisor estimate --run` does."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from advisor import run_file as run_files
from advisor.crash.evidence import NOTHING
from advisor.knowledge import load_knowledge
from advisor.memory.cells import Cell, Ledger
from advisor.memory.ledger import build_ledger
from advisor.run.build import build_run
from advisor.session import SessionRequest
from tests.gpu.configurations import Configuration
from tests.replacing import replace

OUTSIDE = ("context", "fragmentation")
"""Owners that a count of tensors does not hold: driver and communicators, and what the allocator keeps beside them."""

SETTINGS: dict[str, dict[str, object]] = {
    "openrlhf": {"actor_num_nodes": 1, "actor_num_gpus_per_node": 1, "colocate_all_models": True},
    "verl": {"trainer.n_gpus_per_node": 1, "trainer.nnodes": 1},
    "easyr1": {"trainer.n_gpus_per_node": 1, "trainer.nnodes": 1},
}
"""What a framework has to be told of its GPUs where no launch does."""
BUCKETS = "buckets the trainer holds"
"""DeepSpeed's buckets and allowances, a constant that none of these runs holds."""


def run_file(configuration: Configuration, folder: Path) -> Path:
    """Write the run file; the model is a folder with a config.json."""
    stated = {
        "framework": configuration.framework,
        "model": str(configuration.shape.write(folder)),
        "gpus": f"{configuration.ranks}xH100-80GB",
        "libraries": {configuration.framework: configuration.version},
        "settings": _settings(configuration),
        "knobs": configuration.run_knobs,
    }
    file = folder / "run.yaml"
    file.write_text(yaml.safe_dump(stated))
    return file


def _settings(configuration: Configuration) -> dict[str, object]:
    own = SETTINGS.get(configuration.framework, {})
    return {key: configuration.ranks if "gpus_per_node" in key else value for key, value in own.items()}


def ledger_of(configuration: Configuration) -> Ledger:
    """The ledger of the configuration: `size_run_file` without its search for what else would fit, which takes long."""
    knowledge, asked = load_knowledge(), SessionRequest()
    with tempfile.TemporaryDirectory() as folder:
        stated = run_files._read(run_file(configuration, Path(folder)))
        machine = run_files._machine(stated, asked, knowledge)
        run = build_run(run_files._inputs(stated, asked, machine, knowledge, configuration.name)).run
    return build_ledger(run, machine, NOTHING)


def cells_of(ledger: Ledger, phase: str) -> list[Cell]:
    """The cells of a phase that torch's allocator holds."""
    cells = [cell for s in ledger.gpu if s.phase == phase for cell in s.cells]
    return [cell for cell in cells if cell.owner not in OUTSIDE and not cell.formula.startswith(BUCKETS)]


def predicted(ledger: Ledger, phase: str) -> tuple[int, int, int]:
    """Low, expected and high bytes of a phase, allocated by torch, with the bounds that the ledger gives a phase."""
    whole = next((s for s in ledger.gpu if s.phase == phase), None)
    if whole is None:
        return 0, 0, 0
    held = replace(whole, cells=tuple(cells_of(ledger, phase)))
    return held.low, held.expected, held.high
