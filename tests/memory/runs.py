"""Runs and machines built by hand: the documented cases and measured rows as the ledger sees them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec

from advisor.crash.evidence import Crash, Evidence
from advisor.knowledge.schema import Mechanics, ModelFact
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.memory.cells import Ledger, PhaseSum
from advisor.run.run import Knob, KnobValue, ModelShape, Run, Topology
from advisor.run.shape import find_shape
from advisor.units import GIB
from advisor.words import Memory, Phase
from tests.made_mechanics import made_mechanics
from tests.plain_yaml import plain_yaml
from tests.replacing import replace

FSDP = made_mechanics(trainer="fsdp", reference_on="host", sleep_level=1, logits_update_bytes=8, logits_forward_bytes=2)
"""verl-like: fp32 shards, offload between phases."""
DEEPSPEED = made_mechanics(
    trainer="deepspeed",
    weight_bytes=2,
    gradient_bytes=2,
    master_bytes=4,
    moment_bytes=8,
    logits_update_bytes=12,
    offload_lowers_update=True,
)
"""DeepSpeed-like: bf16 shards, fp32 masters, CPU Adam where the optimizer is offloaded."""


@lru_cache(maxsize=1)
def models() -> list[ModelFact]:
    """knowledge/models.yaml, typed."""
    file = Path(__file__).resolve().parents[2] / "knowledge" / "models.yaml"
    return msgspec.convert(plain_yaml(file), list[ModelFact])


def shape(name: str) -> ModelShape:
    """The model's shape, from models.yaml only."""
    found = find_shape(name, models(), lambda _: None)
    assert found is not None, name
    return found


def make_run(
    model: str | None,
    mechanics: Mechanics,
    topology: Topology,
    knobs: dict[str, KnobValue | None],
    algorithm: str = "grpo",
    libraries: dict[str, str] | None = None,
) -> Run:
    """A run with these knobs, all from the script."""
    return Run(
        framework="test",
        title="test",
        era="",
        algorithm=algorithm,
        model=None if model is None else shape(model),
        model_name=model or "",
        topology=topology,
        knobs={name: Knob(name, value, "script") for name, value in knobs.items()},
        mechanics=mechanics,
        libraries=libraries or {},
    )


def box(gpus: int, gib: float, ram_gib: float | None = None, nodes: int = 1) -> Machine:
    """`gpus` cards of `gib` GiB a node."""
    cards = tuple(Gpu(i, "card", round(gib * GIB)) for i in range(gpus))
    return Machine(nodes, cards, Host(total_bytes=None if ram_gib is None else round(ram_gib * GIB)))


def crash(tried: int, phase: Phase = "unknown", memory: Memory = "gpu") -> Crash:
    """A crash whose first cause asked for `tried` bytes."""
    cause = Evidence("torch-oom", "cause", "log", 1, "", memory, phase, {"tried_bytes": tried})
    return Crash("oom", memory, phase, "torch-oom", (cause,))


def easyr1(weights: bool = True, optimizer: bool = True, share: float = 0.6) -> Run:
    """EasyR1 on 8 cards: Qwen2.5-VL-7B, TP 2, the reference streamed from the host."""
    knobs: dict[str, KnobValue | None] = {
        "actor.param_offload": weights,
        "actor.optimizer_offload": optimizer,
        "actor.gradient_checkpointing": True,
        "actor.remove_padding": True,
        "actor.micro_batch": 4,
        "actor.mini_batch": 128,
        "logprob.micro_batch": 16,
        "data.prompt_tokens": 2048,
        "data.response_tokens": 2048,
        "data.train_batch": 512,
        "rollout.samples_per_prompt": 5,
        "rollout.memory_share": share,
        "rollout.sleeps": True,
        "reference.present": True,
        "reference.offload": True,
    }
    mechanics = replace(FSDP, step_extra_bytes=0)
    return make_run("Qwen/Qwen2.5-VL-7B-Instruct", mechanics, Topology(1, 8, 8, 8, 2), knobs)


def logic_rl(train_batch: int = 8, **extra: KnobValue) -> Run:
    """Logic-RL on 4 cards: micro-batches far above what a card holds, an engine that takes half of what is free."""
    knobs: dict[str, KnobValue | None] = {
        "actor.micro_batch": 512,
        "actor.mini_batch": 256,
        "actor.gradient_checkpointing": True,
        "actor.remove_padding": True,
        "logprob.micro_batch": 1280,
        "data.prompt_tokens": 400,
        "data.response_tokens": 2048,
        "data.train_batch": train_batch,
        "rollout.samples_per_prompt": 32,
        "rollout.memory_share": 0.5,
        "reference.offload": True,
        **{name.replace("__", "."): value for name, value in extra.items()},
    }
    mechanics = replace(
        FSDP, reference_on="gpu", engine_share_of="free", logits_forward_bytes=6, sleep_residue_bytes=1_000_000_000
    )
    return make_run("Qwen2.5-7B-Instruct-1M", mechanics, Topology(1, 4, 4, 4), knobs)


def open_reasoner_zero(share: float = 0.7) -> Run:
    """Open-Reasoner-Zero on 4 cards: 1.5B PPO, everything colocated, states that sleep between updates."""
    knobs: dict[str, KnobValue | None] = {
        "actor.zero_stage": 3,
        "actor.gradient_checkpointing": True,
        "critic.present": True,
        "data.pack_tokens": 10048,
        "data.prompt_tokens": 2048,
        "data.response_tokens": 8000,
        "rollout.memory_share": share,
        "rollout.eager": True,
    }
    mechanics = replace(
        DEEPSPEED,
        states_sleep=True,
        wakes_beside=("weights", "gradients", "master", "moments"),
        processes_per_gpu=4,
        fixed_buffer_bytes=1_000_000_000,
        reference_on="host",
        sleep_level=2,
    )
    return make_run("Qwen2.5-1.5B", mechanics, Topology(1, 4, 4, 4), knobs, "ppo")


def openrlhf(leak: bool | None = None, gpus: int = 32, libraries: dict[str, str] | None = None) -> Run:
    """OpenRLHF: Llama-3 70B, ZeRO-3 over `gpus`, CPU Adam, engines and reference on cards of their own."""
    knobs: dict[str, KnobValue | None] = {
        "actor.zero_stage": 3,
        "actor.optimizer_offload": True,
        "actor.gradient_checkpointing": True,
        "actor.micro_batch": 1,
        "actor.remove_padding": True,
        "rollout.forward_micro_batch": 2,
        "data.prompt_tokens": 1024,
        "data.response_tokens": 1024,
        "data.train_batch": 256,
        "rollout.samples_per_prompt": 4,
        "rollout.memory_share": 0.9,
    }
    if leak is not None:
        knobs["leak.gathered_weights"] = leak
    topology = Topology(gpus // 8, 8, gpus, 8, 8, colocated=False, roles_share_cards=False)
    mechanics = replace(DEEPSPEED, logits_update_bytes=8, fixed_buffer_bytes=1_000_000_000)
    return make_run("llama3_70b", mechanics, topology, knobs, libraries=libraries)


def ms_swift(samples_in_pass: int = 4, share: float = 0.5) -> Run:
    """ms-swift on 4 cards: 7B LoRA under ZeRO-3, logits of the response only."""
    knobs: dict[str, KnobValue | None] = {
        "actor.zero_stage": 3,
        "actor.lora_rank": 8,
        "actor.full_finetuning": False,
        "actor.gradient_checkpointing": True,
        "actor.micro_batch": samples_in_pass,
        "data.prompt_tokens": 1024,
        "data.response_tokens": 2048,
        "rollout.memory_share": share,
        "rollout.sleeps": True,
    }
    mechanics = replace(DEEPSPEED, logits_scope="response", logits_update_bytes=16)
    return make_run("Qwen2.5-7B-Instruct", mechanics, Topology(1, 4, 4, 4), knobs)


def explained_host(ledger: Ledger, phase: Phase = "unknown") -> tuple[int, int, int]:
    """Low, expected and high bytes of one node that the settings explain in `phase`.

    Where the phase is unknown: in the fullest phase of a step (loading and checkpoints are rare, and would show).
    """
    usual = [s for s in ledger.host if s.phase not in ("model_load", "checkpoint")]
    fullest = max(usual, key=lambda s: s.expected, default=None)
    found: PhaseSum | None = ledger.phase("host", phase) or fullest
    if found is None:
        return 0, 0, 0
    known = [cell for cell in found.cells if cell.owner != "unexplained"]
    return sum(c.low for c in known), sum(c.expected for c in known), sum(c.high for c in known)


def engine_cannot_start(ledger: Ledger) -> bool:
    """Whether the rollout engine's share leaves no room for a KV cache: it fails at start, however full the card is."""
    return any(cell.kind == "cannot_start" for s in ledger.gpu for cell in s.cells)
