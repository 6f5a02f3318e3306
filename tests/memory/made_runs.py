"""Runs made up at random: frameworks' mechanics, topologies and knobs that no one would put together."""

from __future__ import annotations

from random import Random
from typing import Any, get_args, get_type_hints

from advisor.knowledge.schema import Mechanics
from advisor.machine.inventory import Machine
from advisor.run.run import KnobValue, Run, Topology
from tests.made_mechanics import made_mechanics

from .runs import box, make_run

MODELS = (
    "Qwen/Qwen2.5-0.5B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen2.5-VL-7B-Instruct",
    "allenai/OLMoE-1B-7B-0924-Instruct",
    "Gemma-4-E2B",
    "llama3_70b",
)
NUMBERS: dict[str, tuple[Any, ...]] = {
    "weight_bytes": (2, 4),
    "gradient_bytes": (2, 4),
    "master_bytes": (0, 4),
    "moment_bytes": (4, 8),
    "step_extra_bytes": (0, 4),
    "logits_update_bytes": (8, 12, 16),
    "logits_forward_row_bytes": (0, 8),
    "gathered_units": (2, 3),
    "logits_factor_without_deepspeed": (1, 2),
    "sleep_level": (0, 1, 2),
    "wakes_beside": ((), ("weights",), ("weights", "gradients", "master", "moments")),
    "context_bytes": (0, 600_000_000),
    "processes_per_gpu": (1, 4),
    "fixed_buffer_bytes": (0, 10**9),
    "adapter_copies": (1, 2),
    "logits_tile_bytes": (0, 256 * 2**20),
    "engine_outside_bytes": (0, 608_174_080),
    "engine_asleep_bytes": (534_773_760,),
    "zero2_bucket_bytes": (0, 10**9),
    "engine_tokens_a_sequence": (0, 256),
}
KNOBS: dict[str, tuple[KnobValue, ...]] = {
    "data.train_batch": (8, 256, 1024),
    "data.prompt_tokens": (256, 1024, 4096),
    "data.response_tokens": (256, 1024, 8192),
    "data.pack_tokens": (4096, 8192),
    "data.val_batch": (64, 500),
    "data.max_pixels": (200_000, 4_194_304),
    "rollout.samples_per_prompt": (1, 4, 16),
    "rollout.memory_share": (0.1, 0.3, 0.5, 0.9),
    "rollout.engine": ("vllm", "sglang", "hf"),
    "rollout.eager": (True, False),
    "rollout.max_sequences": (16, 512),
    "rollout.expert_parallel": (4,),
    "actor.mini_batch": (8, 64, 256),
    "actor.micro_batch": (1, 2, 8, 512),
    "actor.gradient_checkpointing": (True, False),
    "actor.param_offload": (True, False),
    "actor.optimizer_offload": (True, False),
    "actor.activation_offload": (True,),
    "actor.full_cpu_offload": (True,),
    "actor.lora_rank": (8, 64),
    "actor.full_finetuning": (True, False),
    "actor.zero_stage": (1, 2, 3),
    "actor.shard_size": (2, 4),
    "actor.second_shard": (2, 8),
    "actor.tensor_parallel": (1, 2, 4),
    "actor.expert_parallel": (2, 4),
    "actor.context_parallel": (2,),
    "actor.optimizer_cpu_part": (0.5, 1.0),
    "actor.quantized_bits": (4, 8),
    "actor.optimizer": ("adamw_bf16", "paged_adamw_8bit", "sgd", "lomo", "lion"),
    "actor.load_precision": ("bfloat16", "float32"),
    "actor.remove_padding": (True, False),
    "actor.dynamic_batch": (True, False),
    "actor.tokens_per_gpu": (2048, 16384),
    "actor.entropy": (True,),
    "actor.fused_loss": (True,),
    "actor.freeze_vision": (True,),
    "actor.sequence_parallel": (2, 3),
    "actor.recompute_granularity": ("selective", "full"),
    "actor.state_sleep": (True,),
    "logprob.entropy_in_chunks": (True,),
    "critic.present": (True,),
    "critic.optimizer_offload": (True,),
    "reference.offload": (True,),
    "host.swap_space": (0, 8),
    "host.agent_workers": (8,),
    "sync.batches": (4, 7),
    "eval.micro_batch": (4,),
    "eval.on": ("steps",),
    "leak.gathered_weights": (True,),
}


def mechanics(random: Random) -> Mechanics:
    """Every switch and choice by chance, numbers from a short list."""
    fields: dict[str, Any] = {}
    for name, kind in get_type_hints(Mechanics).items():
        options = NUMBERS.get(name) or ((True, False) if kind is bool else get_args(kind))
        if options and all(not isinstance(each, type) for each in options) and random.random() < 0.4:
            fields[name] = random.choice(options)
    return made_mechanics(**fields)


def made_run(seed: int) -> tuple[Run, Machine]:
    """The run of this number, and a machine for it."""
    random = Random(seed)
    gpus, together = random.choice((1, 4, 8, 16)), random.random() < 0.7
    nodes = 2 if gpus == 16 else 1
    parallel = random.choice((1, 2, 4)) if gpus > 1 else 1
    apart = together or random.random() < 0.5
    topology = Topology(
        nodes,
        gpus // nodes,
        gpus,
        gpus,
        parallel,
        colocated=together,
        roles_share_cards=apart,
        known=random.random() < 0.9,
    )
    knobs: dict[str, KnobValue | None] = {
        name: random.choice(values) for name, values in KNOBS.items() if random.random() < 0.3
    }
    algorithm = random.choice(("grpo", "ppo", "sft", "dpo"))
    libraries = {"torch": "2.5.1", "vllm": random.choice(("0.6.3", "0.12.0"))} if random.random() < 0.5 else {}
    run = make_run(random.choice(MODELS), mechanics(random), topology, knobs, algorithm, libraries)
    return run, box(0 if random.random() < 0.1 else gpus // nodes, random.choice((24, 40, 80)), 500, nodes)
