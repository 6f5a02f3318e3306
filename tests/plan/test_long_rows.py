"""Rows too long for a card are split over more of them, under whatever name the trainer has for it."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned, changes

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.55 GiB. GPU 0 has a total capacity of 79.14 GiB\n"
)
ON = ("--gpus", "8xH100-80GB", "--answer", "phase=actor_update")
MEGATRON = "--tensor_model_parallel_size 2 --micro_batch_size 1 --global_batch_size 16 --recompute_granularity full"
SWIFT = f"NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-7B {MEGATRON} --max_length 131072\n"
VERL = """python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer.yaml algorithm.adv_estimator=grpo \\
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B data.train_batch_size=128 data.max_prompt_length=2048 \\
  data.max_response_length=65536 actor_rollout_ref.actor.strategy=megatron trainer.n_gpus_per_node=8 \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.n=8 \\
  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2
"""
TORCHTUNE = """tune run --nproc_per_node 8 full_finetune_distributed --config llama3_1/8B_full batch_size=1 \\
  tokenizer.max_seq_len=131072 context_parallel_dim=1 model._component_=torchtune.models.llama3_1.llama3_1_8b \\
  tokenizer._component_=torchtune.models.llama3.llama3_tokenizer
"""


@pytest.mark.parametrize(
    ("launch", "step", "key"),
    [
        (SWIFT, "context-parallel", "context_parallel_size"),
        (VERL, "context-parallel", "actor_rollout_ref.actor.megatron.context_parallel_size"),
        (TORCHTUNE, "sequence-parallel", "context_parallel_dim"),
    ],
)
def test_long_rows_are_split_by_the_key_of_the_trainer(planned: Planned, launch: str, step: str, key: str) -> None:
    steps = planned(launch, OOM, *ON)
    assert key in {name.lstrip("-") for name in changes(steps[step])}


def test_the_parts_and_the_other_splits_come_to_the_gpus_that_there_are(planned: Planned) -> None:
    whole = SWIFT.replace("--tensor_model_parallel_size 2", "--tensor_model_parallel_size 8")
    moved = changes(planned(whole, OOM, *ON)["context-parallel"])
    assert {key.lstrip("-"): new for key, (_, new) in moved.items()} == {
        "context_parallel_size": "2",
        "tensor_model_parallel_size": "4",
    }


def test_what_fsdp_trains_is_not_offered_megatrons_way(planned: Planned) -> None:
    fsdp = VERL.replace("strategy=megatron", "strategy=fsdp").replace("--config-name=ppo_megatron_trainer.yaml ", "")
    assert "context-parallel" not in planned(fsdp.replace("megatron.tensor_model_parallel_size", "grad_clip"), OOM, *ON)
