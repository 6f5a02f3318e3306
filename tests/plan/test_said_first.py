"""What an expert says first stands first: a digit too many, a launch that is fine, sleep before a share of the card."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.told import tell

VERL = """python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=128 \\
    data.max_prompt_length=2048 data.max_response_length=8192 actor_rollout_ref.model.path=Qwen/Qwen3-8B \\
    actor_rollout_ref.model.use_remove_padding=True actor_rollout_ref.actor.strategy=fsdp2 \\
    actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_mini_batch_size=32 \\
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=163840 actor_rollout_ref.rollout.n=16 \\
    actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu=163840 actor_rollout_ref.rollout.name=vllm \\
    trainer.n_gpus_per_node=8 trainer.nnodes=1
"""
OPENRLHF = """python3 -m openrlhf.cli.train_ppo_ray --ref_num_nodes 1 --ref_num_gpus_per_node 8 \\
   --critic_num_nodes 1 --critic_num_gpus_per_node 8 --actor_num_nodes 1 --actor_num_gpus_per_node 8 \\
   --vllm_num_engines 4 --vllm_tensor_parallel_size 2 --colocate_all_models --vllm_gpu_memory_utilization 0.6 \\
   --pretrain OpenRLHF/Llama-3-8b-sft-mixture --reward_pretrain OpenRLHF/Llama-3-8b-rm-700k \\
   --micro_train_batch_size 4 --train_batch_size 128 --micro_rollout_batch_size 8 --rollout_batch_size 1024 \\
   --prompt_max_len 1024 --generate_max_len 2048 --zero_stage 3 --bf16 --gradient_checkpointing --packing_samples
"""
UNSLOTH = """from unsloth import FastLanguageModel
from trl import SFTTrainer, SFTConfig
name = "unsloth/Qwen3-4B-Instruct-2507"
model, tokenizer = FastLanguageModel.from_pretrained(name, max_seq_length=2048, load_in_4bit=True)
model = FastLanguageModel.get_peft_model(model, r=32, use_gradient_checkpointing="unsloth")
SFTTrainer(model=model, train_dataset=data, args=SFTConfig(per_device_train_batch_size=2)).train()
"""
OTHERS = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 594.00 MiB. GPU 0 has a total capacity of 23.52 GiB "
    "of which 310.31 MiB is free. Process 20817 has 18.21 GiB memory in use. Including non-PyTorch memory, this "
    "process has 4.99 GiB memory in use. Of the allocated memory 4.31 GiB is allocated by PyTorch, and 201.30 MiB is "
    "reserved by PyTorch but unallocated.\n"
)
QLORA = """base_model: meta-llama/Llama-3.3-70B-Instruct
load_in_4bit: true
adapter: qlora
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
sequence_len: 2048
sample_packing: true
micro_batch_size: 1
learning_rate: 0.0002
bf16: true
gradient_checkpointing: true
fsdp: [full_shard, auto_wrap]
fsdp_config: {fsdp_offload_params: true}
output_dir: o
"""


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """(file, text, words, log) → what a command says, in one line."""

    def run(name: str, text: str, *words: str, log: str = "") -> str:
        (tmp_path / name).write_text(text)
        (tmp_path / "log").write_text(log)
        command, *more = words
        logs = ["--log", str(tmp_path / "log")] if log else []
        return " ".join(tell([command, str(tmp_path / name), *logs, *more], capsys)[1].split())

    return run


def test_a_budget_of_sixteen_rows_is_a_digit_too_many_and_mended_in_both_passes(told) -> None:  # type: ignore[no-untyped-def]
    machine = ("--gpus", "8xH100-80GB", "--host-ram", "1500GB")
    out = told("run.sh", VERL, "diagnose", *machine, "--answer", "memory=gpu", "--answer", "phase=log_prob")
    assert "1. Fewer tokens in one log-prob pass (−79.11 GiB gpu and more" in out
    assert "ppo_max_token_len_per_gpu 163840 → 20480" in out
    steps = "token-budget,logprob-token-budget"
    alone = told("run.sh", VERL, "fix", *machine, "--answer", "phase=log_prob", "--accept", steps, "--diff")
    assert "ppo_max_token_len_per_gpu=20480" in alone  # not the number that only fits beside a fused loss


def test_a_launch_that_fits_beside_nothing_else_is_fine_and_left_alone(told) -> None:  # type: ignore[no-untyped-def]
    out = told("train.py", UNSLOTH, "diagnose", "--gpus", "1xRTX4090-24GB", log=OTHERS)
    assert "Your launch is fine: it needs" in out.partition("Cause")[0].partition("Best guess")[0]
    assert "18.21 GiB (pid 20817)" in out
    assert "1. End processes of dead runs" in out
    assert "unexplained" not in out


def test_engine_and_states_sleep_before_a_share_with_which_it_only_may_fit(told) -> None:  # type: ignore[no-untyped-def]
    words = ("--gpus", "8xH100-80GB", "--host-ram", "2000GB", "--lib", "openrlhf=0.8.5", "--answer", "memory=gpu")
    out = told("run.sh", OPENRLHF, "diagnose", *words, "--answer", "phase=critic_update")
    assert "With these the run is expected to fit" in out
    assert "--vllm_enable_sleep" in out.partition("Or:")[0]
    assert "--deepspeed_enable_sleep" in out.partition("Or:")[0]


def test_a_packed_base_is_packed_in_host_ram_too_and_fsdp_gathers_layers(told) -> None:  # type: ignore[no-untyped-def]
    out = told("q.yaml", QLORA, "estimate", "--gpus", "2xRTX3090-24GB", "--host-ram", "128GB")
    assert "offloaded weights 38.98" in out
    assert "0.55 bytes × 2 layers" in out
    assert "prefetched" not in out
