"""Other estimators on the dense published rows: `python -m tests.measured.peers` prints a table in GiB.

accelerate and DeepSpeed by their own formulas (neither counts activations nor logits). llm-analysis itself where it is
installed (`pip install llm-analysis==0.2.2`; its dependencies are old: give it an environment of its own and put that
one's site-packages on PYTHONPATH), else what it said once (peers.yaml, which `--write` writes anew).
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from advisor.run.run import ModelShape
from advisor.units import GIB
from tests.measured.published import Row, Sized, rows, size

FILE = Path(__file__).with_name("peers.yaml")
WHOLE_CARD = "the reading is the whole card"


@dataclass(frozen=True, slots=True)
class Compared:
    """One row: GiB per GPU by each estimator, None where it has no answer for such a run."""

    row: Row
    ours: float
    accelerate: float | None
    deepspeed: float | None
    llm_analysis: float | None


def compared() -> Iterator[Compared]:
    """The dense rows of runs that a dialect describes, or torch's FSDP."""
    for row in rows():
        if row.kind != "dense" or row.doubt == WHOLE_CARD:
            continue
        found = size(row.run)
        shape = found.run.model
        assert shape is not None
        formulas = (accelerate(shape, found), deepspeed(shape, found))
        by_formula = (None if peer is None else peer / GIB for peer in formulas)
        told = llm_analysis(shape, found) if installed() else _remembered().get(row.id)
        yield Compared(row, found.expected, *by_formula, told)


def is_lora(found: Sized) -> bool:
    """Whether the run trains adapters only."""
    return bool(found.run.number("actor.lora_rank")) and found.run.value("actor.full_finetuning") is not True


def installed() -> bool:
    """Whether llm-analysis can be asked."""
    return importlib.util.find_spec("llm_analysis") is not None


def _remembered() -> dict[str, float]:
    return {str(row): gib for row, gib in yaml.safe_load(FILE.read_text()).items()}


def accelerate(shape: ModelShape, found: Sized) -> float | None:
    """`accelerate estimate-memory`, "Training using Adam" in bf16: four times the weights (accelerate@16cb6eb
    src/accelerate/commands/estimate.py); it knows no sharding, and no adapters."""
    return None if is_lora(found) else 4.0 * 2 * shape.parameters


def deepspeed(shape: ModelShape, found: Sized) -> float | None:
    """DeepSpeed's estimators of model states (deepspeedai/DeepSpeed@edaa722 deepspeed/runtime/zero/stage3.py:3744,
    stage_1_and_2.py:3081), FSDP as stage 3; full training of all weights on several GPUs only."""
    gpus, stage = found.run.topology.actor_gpus, found.run.number("actor.zero_stage")
    if is_lora(found) or gpus == 1:
        return None
    if stage == 3 or found.run.number("actor.shard_size"):
        return 4.0 * shape.vocab * shape.hidden + 18.0 * shape.parameters / gpus
    return 2.0 * shape.parameters + 18.0 * shape.parameters / gpus


def llm_analysis(shape: ModelShape, found: Sized) -> float | None:
    """cli99/llm-analysis 0.2.2, full recomputation, the run's stage, one row of its length; no adapters. GiB."""
    if is_lora(found):
        return None
    analysis: Any = importlib.import_module("llm_analysis.analysis")
    config: Any = importlib.import_module("llm_analysis.config")
    logging.disable(logging.CRITICAL)
    model = config.ModelConfig(
        name=shape.name,
        num_layers=shape.layers,
        n_head=shape.heads,
        hidden_dim=shape.hidden,
        vocab_size=shape.vocab,
        max_seq_len=1 << 17,
        num_key_value_heads=shape.kv_heads,
        expansion_ratio=shape.intermediate / shape.hidden,
    )
    run, gpus = found.run, found.run.topology.actor_gpus
    sharded = run.number("actor.zero_stage") == 3 or run.number("actor.shard_size")
    ways = int(run.number("actor.tensor_parallel") or 1)
    tokens = (
        run.number("data.pack_tokens") or run.number("data.total_tokens") or run.number("data.prompt_tokens") or 2048
    )
    parallel = config.ParallelismConfig(tp_size=ways, dp_size=gpus // ways)
    types = config.get_dtype_config_by_name("w16a16e16")
    card = config.get_gpu_config_by_name("a100-sxm-80gb")
    card.mem_per_GPU_in_GB = 10_000  # it answers nothing where it thinks that a run does not fit
    tool = analysis.LLMAnalysis(model, card, types, parallel)
    told = tool.training(
        batch_size_per_gpu=int(run.number("actor.micro_batch") or 1),
        seq_len=int(tokens),
        activation_recomputation=analysis.ActivationRecomputation.FULL,
        ds_zero=analysis.DSZeRO(3 if sharded else 0),
        mlp_gated_linear_units=True,
    )
    return float(told["(weight+op_state+grad+act)_memory_per_gpu"]) / GIB


def table() -> list[str]:
    """The table, and the mean absolute error of each column over the rows that it answers."""
    lines = ["| # | run | read | this ledger | accelerate | DeepSpeed | llm-analysis |"]
    lines.append("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    columns: dict[str, list[float]] = {"ours": [], "accelerate": [], "deepspeed": [], "llm_analysis": []}
    for found in compared():
        told = [getattr(found, name) for name in columns]
        for errors, value in zip(columns.values(), told, strict=True):
            errors += [] if value is None else [abs(value / found.row.reading - 1)]
        shown = " | ".join("–" if value is None else f"{value:.1f}" for value in told)
        lines.append(f"| {found.row.id} | {found.row.what} | {found.row.reading:g} | {shown} |")
    means = " | ".join(f"{sum(e) / len(e):.0%} of {len(e)}" if e else "–" for e in columns.values())
    return [*lines, f"| | mean absolute error | | {means} |"]


def main() -> None:
    """Print the table, or with --write keep what llm-analysis says."""
    if sys.argv[1:] == ["--write"]:
        kept = {found.row.id: round(found.llm_analysis, 1) for found in compared() if found.llm_analysis is not None}
        FILE.write_text("# GiB by row, as llm-analysis 0.2.2 says (tests/measured/peers.py)\n" + yaml.safe_dump(kept))
    else:
        print("\n".join(table()))


if __name__ == "__main__":
    main()
