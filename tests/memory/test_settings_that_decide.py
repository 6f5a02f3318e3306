"""A setting that decides how much memory a run takes reaches the ledger in every program that has it."""

from __future__ import annotations

import pytest

from tests.memory.launches import estimate

OPENRLHF = """\
deepspeed --module openrlhf.cli.{program} --model.model_name_or_path meta-llama/Meta-Llama-3-8B \\
  --train.micro_batch_size 2 --data.max_len 4096 --ds.zero_stage 3 --ds.packing_samples {more}
"""
LLAMA_FACTORY = """\
stage: sft
do_train: true
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
finetuning_type: {method}
cutoff_len: 2048
per_device_train_batch_size: 1
bf16: true
"""
AXOLOTL = """\
base_model: Qwen/Qwen3-8B
dataset_prepared_path: prepared
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
sequence_len: 8192
sample_packing: true
micro_batch_size: 1
gradient_checkpointing: true
bf16: true
fsdp_version: 2
"""
CUT = "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n"
VERL = """\
python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct trainer.n_gpus_per_node=8 \\
  trainer.nnodes=1 model_engine=megatron actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 \\
  actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384 \\
  actor_rollout_ref.model.use_fused_kernels={fused}
"""


@pytest.mark.parametrize("program", ["train_sft", "train_rm", "train_dpo"])
def test_openrlhfs_programs_of_one_model_name_it_and_its_checkpointing(program: str) -> None:
    bare = estimate(OPENRLHF.format(program=program, more=""), "8xA100-80GB")
    saved = estimate(OPENRLHF.format(program=program, more="--model.gradient_checkpointing_enable"), "8xA100-80GB")
    assert bare.of("weights") == pytest.approx(2 * 8.03e9 / 8 / 2**30, rel=0.08)
    assert saved.of("activations") < 0.5 * bare.of("activations")


def test_orthogonal_adapters_leave_the_base_in_bf16() -> None:
    lora, oft = (estimate(LLAMA_FACTORY.format(method=each), name="sft.yaml") for each in ("lora", "oft"))
    assert oft.of("weights") == pytest.approx(lora.of("weights"), rel=0.02)


def test_a_plugin_that_brings_the_loss_leaves_no_whole_logits() -> None:
    whole, cut = (estimate(AXOLOTL + more, "8xH100-80GB", name="sft.yaml") for more in ("", CUT))
    assert whole.of("logits") > 12
    assert cut.of("logits") < 4
    off = estimate(AXOLOTL + CUT + "cut_cross_entropy: false\n", "8xH100-80GB", name="sft.yaml")
    assert off.of("logits") == pytest.approx(whole.of("logits"))


def test_states_are_shared_over_every_dimension_of_a_mesh_that_splits_the_model() -> None:
    mesh = "dp_shard_size: 2\ncontext_parallel_size: 2\ntensor_parallel_size: 2\n"
    split = estimate(AXOLOTL + CUT + mesh, "8xH100-80GB", name="sft.yaml")
    assert split.of("weights") == pytest.approx(2 * 8.19e9 / 8 / 2**30, rel=0.02)


def test_fused_kernels_serve_both_passes_of_a_megatron_trainer() -> None:
    whole, fused = (estimate(VERL.format(fused=each), "8xA100-80GB") for each in ("False", "True"))
    for phase in ("actor_update", "log_prob"):
        assert fused.of("logits", phase) < 0.1 * whole.of("logits", phase)
