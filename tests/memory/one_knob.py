"""One knob at a time, up and down, on an FSDP, a ZeRO-3, a LoRA and a Megatron run: what each owner gains, beside the
same computed by hand. `python -m tests.memory.one_knob` prints it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from advisor.memory.cells import Owner, PhaseSum
from advisor.memory.ledger import build_ledger
from advisor.run.run import KnobValue, Run, Topology
from advisor.units import GIB
from tests.made_mechanics import made_mechanics

from .runs import DEEPSPEED, FSDP, box, make_run
from .test_megatron import MEGATRON

Knobs = dict[str, KnobValue | None]
P, H, LAYERS, V, Q, KV, MLP = 7_615_616_512, 3584, 28, 152_064, 3584, 512, 18_944
"""Qwen2.5-7B: parameters, hidden, layers, vocabulary, width of queries, of keys, of the MLP."""
TABLE = V * H
LAYER = (P - 2 * TABLE) // LAYERS
ROW, ROWS, GPUS = 4096, 4, 8
ADAPTER = 20_185_088 // 8
"""Parameters of an adapter on all linear layers per rank."""
COMMON: Knobs = {
    "actor.gradient_checkpointing": True,
    "actor.micro_batch": ROWS,
    "data.total_tokens": ROW,
    "data.longest_row": "cap",
    "actor.accumulation": 4,
    "allocator.settings": "expandable_segments:True",
}
LORA = made_mechanics(
    trainer="deepspeed", weight_bytes=2, gradient_bytes=2, master_bytes=4, moment_bytes=8, adapter_casts=True,
    logits_update_bytes=12, logits_forward_bytes=8,
)  # fmt: skip


def _run(name: str) -> tuple[Run, Knobs]:
    alone = Topology(1, 1, 1, 0)
    megatron: Knobs = {"actor.tensor_parallel": 4, "actor.recompute_granularity": "full"}
    made = {
        "FSDP": (FSDP, Topology(1, GPUS, GPUS, 0), {}),
        "ZeRO-3": (DEEPSPEED, Topology(1, GPUS, GPUS, 0), {"actor.zero_stage": 3}),
        "LoRA": (LORA, alone, {"actor.lora_rank": 8, "actor.full_finetuning": False, "actor.load_precision": "bf16"}),
        "Megatron": (MEGATRON, Topology(1, GPUS, GPUS, 0), megatron),
    }  # fmt: skip
    mechanics, topology, own = made[name]
    knobs: Knobs = {**COMMON, **own}
    return make_run("Qwen2.5-7B", mechanics, topology, knobs, "sft"), knobs


class Move(NamedTuple):
    """One knob of a run set to another value, and the bytes that an owner should gain in its update, by hand."""

    run: str
    knob: str
    value: KnobValue
    owner: Owner
    by_hand: float


def update_of(run: str, more: Knobs) -> PhaseSum:
    """The update of one of the runs with some knobs more."""
    made, knobs = _run(run)
    again = make_run("Qwen2.5-7B", made.mechanics, made.topology, {**knobs, **more}, "sft")
    found = build_ledger(again, box(made.topology.gpus_per_node, 80, 1000)).phase("gpu", "actor_update")
    assert found is not None
    return found


KEPT = 16 * H + 4 * Q + 4 * KV + 8 * MLP + 4 * 28
"""Bytes of a token that an eager layer keeps: norms, q and the attention's output, k and v, the MLP, log-sums."""
TOKENS = ROWS * ROW


def moves() -> Iterator[Move]:
    """Every move of the table."""
    for rows in (2, 8):
        more = (rows - ROWS) * ROW
        yield Move("FSDP", "actor.micro_batch", rows, "logits", 8 * V * more)
        yield Move("ZeRO-3", "actor.micro_batch", rows, "logits", 12 * V * more)
        yield Move("Megatron", "actor.micro_batch", rows, "logits", 6 * V / 4 * more)
    for length in (2048, 8192):
        yield Move("FSDP", "data.total_tokens", length, "logits", 8 * V * ROWS * (length - ROW))
        yield Move("LoRA", "data.total_tokens", length, "logits", 12 * V * ROWS * (length - ROW))
    for shards in (2, 4):
        for owner, size in (("weights", 4), ("gradients", 4), ("optimizer", 8)):
            yield Move("FSDP", "actor.shard_size", shards, owner, size * P * (1 / shards - 1 / GPUS))  # type: ignore[arg-type]
    yield Move("FSDP", "actor.load_precision", "bf16", "weights", -2 * P / GPUS)
    yield Move("FSDP", "actor.load_precision", "bf16", "optimizer", -4 * P / GPUS)
    yield Move("FSDP", "actor.optimizer", "adamw_8bit", "optimizer", -6 * P / GPUS)
    yield Move("FSDP", "actor.optimizer", "sgd", "optimizer", -8 * P / GPUS)
    yield Move("FSDP", "actor.keeps_gathered", True, "gathered", 2 * P - 2 * 2 * TABLE)
    yield Move("FSDP", "actor.gradient_checkpointing", False, "activations", LAYERS * (KEPT - 2 * H) * TOKENS)
    yield Move("ZeRO-3", "actor.zero_stage", 2, "weights", 2 * P * (1 - 1 / GPUS))
    yield Move("ZeRO-3", "actor.zero_stage", 1, "gradients", 2 * P * (1 - 1 / GPUS))
    yield Move("ZeRO-3", "actor.optimizer_offload", True, "optimizer", -12 * P / GPUS)
    yield Move("ZeRO-3", "actor.gradient_precision", "fp32", "gradients", 2 * P / GPUS)
    yield Move("ZeRO-3", "actor.optimizer", "adamw_8bit", "optimizer", -6 * P / GPUS)
    yield Move("ZeRO-3", "actor.trained_layers", 2, "optimizer", -12 * (P - 2 * TABLE - 2 * LAYER) / GPUS)
    for rank in (4, 64):
        yield Move("LoRA", "actor.lora_rank", rank, "weights", 4 * ADAPTER * (rank - 8))
        yield Move("LoRA", "actor.lora_rank", rank, "optimizer", 8 * ADAPTER * (rank - 8))
    yield Move("LoRA", "actor.lora_targets", "q_proj,v_proj", "optimizer", 8 * 8 * (LAYERS * (3 * H + KV) - ADAPTER))
    yield Move("LoRA", "actor.saved_modules", "lm_head", "optimizer", 4 * TABLE)
    yield Move("LoRA", "actor.saved_modules", "embed_tokens lm_head", "gradients", 2 * 2 * TABLE)
    yield Move("Megatron", "actor.tensor_parallel", 8, "weights", 2 * P * (1 / 8 - 1 / 4))
    yield Move("Megatron", "actor.tensor_parallel", 2, "gradients", 4 * P * (1 / 2 - 1 / 4))
    yield Move("Megatron", "actor.optimizer_cpu_part", 0.5, "optimizer", -0.5 * 12 * P / GPUS)
    yield Move("Megatron", "actor.moment_precision", "bf16", "optimizer", -4 * P / GPUS)
    yield Move("Megatron", "actor.gradient_precision", "bf16", "gradients", -2 * P / 4)
    yield Move("Megatron", "actor.tensor_splits_stream", False, "activations", 2 * H * LAYERS * (1 - 1 / 4) * TOKENS)
    yield Move("Megatron", "actor.context_parallel", 2, "logits", -6 * V / 4 * TOKENS / 2)


def gained(move: Move) -> int:
    """Expected bytes that the owner gains."""
    before, after = (update_of(move.run, more).of(move.owner) for more in ({}, {move.knob: move.value}))
    return after - before


def main() -> None:
    """Print the table."""
    print(f"{'run':9} {'knob':28} {'to':22} {'owner':12} {'GiB':>8} {'by hand':>8}")
    for move in moves():
        sizes = f"{gained(move) / GIB:8.2f} {move.by_hand / GIB:8.2f}"
        print(f"{move.run:9} {move.knob:28} {move.value!s:22} {move.owner:12} {sizes}")


if __name__ == "__main__":
    main()
