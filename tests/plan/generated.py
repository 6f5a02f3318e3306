"""Runs made up at random that died of memory: a launch script of some framework and the end of its log."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

CARDS = {"A100-40GB": "39.39", "A100-80GB": "79.15", "L40S": "44.40", "H100-80GB": "79.11"}
MODELS = ("Qwen/Qwen2.5-1.5B-Instruct", "Qwen/Qwen2.5-7B-Instruct", "meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-14B")
FRAMES = {
    "verl": {
        "actor_update": "verl/workers/actor/dp_actor.py:update_policy",
        "log_prob": "verl/workers/actor/dp_actor.py:compute_log_prob",
        "weight_sync": "verl/workers/sharding_manager/fsdp_vllm.py:__enter__",
        "rollout_generate": "verl/workers/rollout/vllm_rollout/vllm_rollout_spmd.py:generate_sequences",
    },
    "openrlhf": {"actor_update": "openrlhf/trainer/ray/ppo_actor.py:training_step"},
    "swift": {"actor_update": "swift/trainers/rlhf_trainer/grpo_trainer.py:compute_loss"},
}


@dataclass(frozen=True)
class MadeUp:
    """A run: its script, its log, and the machine in command-line words."""

    script: str
    log: str
    gpus: str
    host_ram: str


def made_up(seed: int) -> MadeUp:
    """The run of a seed, always the same one."""
    random = Random(seed)
    framework = random.choice(("verl", "verl", "openrlhf", "swift"))
    cards, card = random.choice((1, 2, 4, 8)), random.choice(sorted(CARDS))
    script = {"verl": _verl, "openrlhf": _openrlhf, "swift": _swift}[framework](random, cards)
    place, _, function = random.choice(sorted(FRAMES[framework].values())).partition(":")
    return MadeUp(
        script, _log(random, place, function, CARDS[card]), f"{cards}x{card}", f"{random.choice((128, 512, 2048))}GB"
    )


def _log(random: Random, file: str, function: str, total: str) -> str:
    free = round(random.uniform(0.2, 2.0), 2)
    held = round(float(total) - free - random.uniform(0.5, float(total) * 0.4), 2)
    asked = round(free + random.uniform(0.3, 12.0), 2)
    return (
        "Traceback (most recent call last):\n"
        f'  File "/x/{file}", line 237, in {function}\n'
        "    output = self.model(**inputs)\n"
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} GiB. GPU 0 has a total capacity "
        f"of {total} GiB of which {free} GiB is free. Process 7 has {round(float(total) - free, 2)} GiB memory in use. "
        f"Of the allocated memory {held} GiB is allocated by PyTorch, and 0.20 GiB is reserved by PyTorch but "
        "unallocated.\n"
    )


def _switch(random: Random) -> str:
    return random.choice(("True", "False"))


def _verl(random: Random, cards: int) -> str:
    micro, actor = random.choice((1, 2, 4, 8, 16)), "actor_rollout_ref.actor"
    settings = {
        "algorithm.adv_estimator": random.choice(("grpo", "gae")),
        "data.train_batch_size": random.choice((64, 256, 1024)),
        "data.max_prompt_length": random.choice((512, 1024, 4096)),
        "data.max_response_length": random.choice((1024, 4096, 16384)),
        "actor_rollout_ref.model.path": random.choice(MODELS),
        "actor_rollout_ref.model.use_remove_padding": _switch(random),
        "actor_rollout_ref.model.enable_gradient_checkpointing": _switch(random),
        f"{actor}.ppo_mini_batch_size": 64,
        f"{actor}.ppo_micro_batch_size_per_gpu": micro,
        f"{actor}.fsdp_config.param_offload": _switch(random),
        f"{actor}.fsdp_config.optimizer_offload": _switch(random),
        "actor_rollout_ref.rollout.name": "vllm",
        "actor_rollout_ref.rollout.n": random.choice((4, 8, 16)),
        "actor_rollout_ref.rollout.tensor_model_parallel_size": random.choice([n for n in (1, 2, 4) if n <= cards]),
        "actor_rollout_ref.rollout.gpu_memory_utilization": random.choice((0.4, 0.6, 0.8)),
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": micro * 2,
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": micro * 2,
        "trainer.n_gpus_per_node": cards,
        "trainer.nnodes": 1,
    }
    return "python3 -m verl.trainer.main_ppo " + " ".join(f"{k}={v}" for k, v in settings.items()) + "\n"


def _openrlhf(random: Random, cards: int) -> str:
    settings = {
        "pretrain": random.choice(MODELS),
        "actor_num_nodes": 1,
        "actor_num_gpus_per_node": cards,
        "ref_num_nodes": 1,
        "ref_num_gpus_per_node": cards,
        "vllm_num_engines": cards,
        "vllm_tensor_parallel_size": 1,
        "vllm_gpu_memory_utilization": random.choice((0.4, 0.6)),
        "micro_train_batch_size": random.choice((1, 4, 8)),
        "micro_rollout_batch_size": random.choice((4, 16)),
        "train_batch_size": 128,
        "rollout_batch_size": 128,
        "n_samples_per_prompt": random.choice((1, 8)),
        "prompt_max_len": 1024,
        "generate_max_len": random.choice((1024, 8192)),
        "zero_stage": random.choice((2, 3)),
    }
    flags = [
        flag
        for flag in ("--gradient_checkpointing", "--bf16", "--adam_offload", "--packing_samples")
        if random.random() < 0.5
    ]
    words = [f"--{key} {value}" for key, value in settings.items()] + flags
    return f"python3 -m openrlhf.cli.train_ppo_ray --colocate_all_models {' '.join(words)}\n"


def _swift(random: Random, cards: int) -> str:
    settings = {
        "model": random.choice(MODELS),
        "train_type": random.choice(("full", "lora")),
        "torch_dtype": "bfloat16",
        "use_vllm": "true",
        "vllm_device": "auto",
        "vllm_gpu_memory_utilization": random.choice((0.4, 0.6, 0.8)),
        "max_length": random.choice((2048, 8192)),
        "max_completion_length": random.choice((1024, 4096)),
        "per_device_train_batch_size": random.choice((1, 2, 8)),
        "gradient_accumulation_steps": random.choice((1, 8)),
        "num_generations": 8,
        "deepspeed": random.choice(("zero2", "zero3")),
    }
    devices = ",".join(map(str, range(cards)))
    words = " ".join(f"--{key} {value}" for key, value in settings.items())
    return f"CUDA_VISIBLE_DEVICES={devices} NPROC_PER_NODE={cards} swift rlhf --rlhf_type grpo {words}\n"
