"""slime, NeMo-RL, AReaL, ROLL and DeepSpeed-Chat: told by their launches and logs, placed on their cards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

Opened = Callable[..., State]
SLIME = """ARGS=(
   --hf-checkpoint /root/Qwen3-4B
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-max-response-len 8192
   --global-batch-size 256
   --use-dynamic-batch-size
   --max-tokens-per-gpu 9216
   --rollout-num-gpus-per-engine 2
   --sglang-mem-fraction-static 0.7
)
ray job submit --address=http://127.0.0.1:8265 -- python3 train.py \\
   --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate ${ARGS[@]}
"""
NEMO = (
    "uv run examples/run_grpo_math.py policy.model_name=Qwen/Qwen2.5-7B policy.train_micro_batch_size=4 "
    "policy.generation.colocated.enabled=false grpo.num_prompts_per_step=32 cluster.gpus_per_node=8\n"
)
AREAL = """allocation_mode: sglang:d4+fsdp:d4
cluster: {n_nodes: 1, n_gpus_per_node: 8}
gconfig: {n_samples: 8, max_new_tokens: 4096}
actor:
  path: Qwen/Qwen2.5-7B
  mb_spec: {max_tokens_per_mb: 16384}
"""
ROLL = """pretrain: Qwen/Qwen2.5-VL-7B-Instruct
num_gpus_per_node: 8
rollout_batch_size: 64
num_return_sequences_in_group: 8
prompt_length: 1024
response_length: 2048
actor_train:
  training_args: {per_device_train_batch_size: 2, gradient_accumulation_steps: 32}
  strategy_args: {strategy_name: megatron_train}
  device_mapping: list(range(0,8))
actor_infer:
  strategy_args:
    strategy_name: vllm
    strategy_config: {gpu_memory_utilization: 0.8}
  device_mapping: list(range(8,16))
"""
CHAT = (
    "deepspeed --num_gpus 8 main.py --actor_model_name_or_path facebook/opt-1.3b --actor_zero_stage 2 "
    "--per_device_train_batch_size 16 --per_device_mini_train_batch_size 16\n"
)


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    def read(name: str, script: str | None, log: str = "", *libraries: str) -> State:
        files = {name: script, "train.log": log}
        given = {file: tmp_path / file for file, text in files.items() if text}
        for file, path in given.items():
            path.write_text(files[file] or "")
        logs = (given["train.log"],) if log else ()
        return open_session(
            SessionRequest(given.get(name), logs, "8xA100-80GB", host_ram="1000GB", libraries=libraries, planned=False)
        )

    return read


@pytest.mark.parametrize(
    ("name", "text", "framework", "era", "actor", "rollout", "colocated"),
    [
        ("run.sh", SLIME, "slime", "v0.3", 8, 8, True),
        ("run.sh", NEMO, "nemo-rl", "v0.5", 8, 8, False),
        ("run.yaml", AREAL, "areal", "v0.4", 4, 4, False),
        ("run.yaml", ROLL, "roll", "v0.3", 8, 8, False),
        ("run.sh", CHAT, "deepspeed-chat", "2023-04", 8, 8, True),
    ],
)
def test_a_launch_is_told_and_placed(
    opened: Opened, name: str, text: str, framework: str, era: str, actor: int, rollout: int, colocated: bool
) -> None:
    run = opened(name, text).run
    assert (run.framework, run.era) == (framework, era)
    placed = run.topology
    assert (placed.actor_gpus, placed.rollout_gpus, placed.colocated) == (actor, rollout, colocated)


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB. GPU 0 has a total capacity of 79.15 GiB of which 2.31 GiB is free.\n"  # noqa: E501


@pytest.mark.parametrize(
    ("frame", "framework", "phase"),
    [
        (
            '"/x/nemo_rl/models/policy/workers/dtensor_policy_worker_v2.py", line 947, in get_logprobs',
            "nemo-rl",
            "log_prob",
        ),
        ('"/x/slime/backends/megatron_utils/actor.py", line 418, in train_actor', "slime", "actor_update"),
        ('"/x/slime/backends/megatron_utils/actor.py", line 571, in update_weights', "slime", "weight_sync"),
        ('"/x/areal/engine/fsdp_engine.py", line 759, in train_batch', "areal", "actor_update"),
        ('"/x/roll/distributed/strategy/megatron_strategy.py", line 1079, in train_step', "roll", "actor_update"),
        ('"/x/DeepSpeed-Chat/dschat/rlhf/ppo_trainer.py", line 196, in train_rlhf', "deepspeed-chat", "actor_update"),
    ],
)
def test_a_log_tells_framework_and_phase(opened: Opened, frame: str, framework: str, phase: str) -> None:
    state = opened("run.sh", None, f"Traceback (most recent call last):\n  File {frame}\n{OOM}")
    assert (state.run.framework, state.crash.phase) == (framework, phase)


def test_the_worker_that_died_is_named_by_roll(opened: Opened) -> None:
    log = "ray.exceptions.ActorDiedError: The actor died.\n\tname: actor_infer-12\n\tnamespace: roll\n"
    assert opened("run.sh", None, log).run.framework == "roll"


def test_old_options_of_deepspeed_chat_are_told_by_their_new_names(opened: Opened) -> None:
    notes = opened("run.sh", CHAT, "", "dschat=0.1.0").run.notes
    assert any("there it is called per_device_training_batch_size" in note for note in notes)


@pytest.mark.parametrize(
    ("trainer", "megatron"),
    [
        ("d4", False),
        ("d2p2", True),
        ("d4e2", True),
        ("fsdp:d4", False),
        ("megatron:d2p2", True),
        ("megatron[actor]:d2p2", True),
        ("archon:d2p2", False),
    ],
)
def test_areal_trains_on_megatron_where_an_allocation_without_backend_needs_it(
    opened: Opened, trainer: str, megatron: bool
) -> None:
    run = opened("run.yaml", AREAL.replace("fsdp:d4", trainer)).run
    assert run.topology.actor_gpus == 4
    assert (run.mechanics.trainer == "megatron", run.value("actor.pipeline_parallel") is not None) == (
        megatron,
        megatron,
    )
