"""Where the dialect has a key for what relieves, the step names it, with what must go along."""

from __future__ import annotations

import re

from advisor.diagnosis.fact import Fact, all_hold
from advisor.knowledge.load import load_knowledge
from tests.plan.planned import Planned, changes

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.45 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.02 GiB is free. Process 7 has 78.10 GiB memory in use. Of the allocated memory 76.20 GiB is allocated "
    "by PyTorch, and 0.30 GiB is reserved by PyTorch but unallocated.\n"
)
VERL = (
    "python3 -m verl.trainer.main_ppo data.train_batch_size=64 actor_rollout_ref.model.path=Qwen/Qwen2.5-72B "
    "trainer.n_gpus_per_node=8 trainer.nnodes=1 actor_rollout_ref.rollout.name=vllm"
)
EASYR1 = "python3 -m verl.trainer.main config=examples/config.yaml worker.actor.model.model_path=Qwen/Qwen2.5-32B"
SYNC = ("--answer", "phase=weight_sync", "--answer", "sync=gather", "--lib", "verl=0.6.1")


def test_adapters_go_layer_by_layer_with_the_format_that_needs(planned: Planned) -> None:
    step = planned(f"{VERL} actor_rollout_ref.model.lora_rank=32\n", OOM, *SYNC)["layered-sync"]
    new = {key.rsplit(".", 1)[1]: value for key, (_, value) in changes(step).items()}
    assert new == {"layered_summon": "True", "load_format": "safetensors"}


def test_full_training_sends_nothing_layer_by_layer(planned: Planned) -> None:
    assert "layered-sync" not in planned(f"{VERL}\n", OOM, *SYNC)


def test_no_step_is_told_in_the_code_of_a_trainer_that_does_not_run() -> None:
    facts = {"framework": Fact("verl", "script", ""), "era": Fact("v0.4", "script", "")}
    told = [one for each in load_knowledge().remedies for one in each.examples if all_hold(one.when, facts) is not None]
    assert told
    assert not [one for one in told if re.search("TrainingArguments|peft|SFTConfig|torch_dtype", one.code + one.place)]


def test_states_in_bf16_are_two_settings_of_easyr1(planned: Planned) -> None:
    steps = planned(f"{EASYR1}\n", OOM, "--answer", "phase=optimizer_step")
    new = {key.rsplit(".", 1)[1]: value for key, (_, value) in changes(steps["bf16-states"]).items()}
    assert new == {"strategy": "adamw_bf16", "torch_dtype": "bf16"}
    assert steps["bf16-states"]["results"] == "changed"
