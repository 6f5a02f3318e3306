"""Launches that once were taken for a neighbour's, or for another method: shortened examples of the projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.run import Run
from advisor.session import SessionRequest, open_session


def _run(folder: Path, name: str, text: str) -> Run:
    script = folder / name
    script.write_text(text)
    return open_session(SessionRequest(script, gpus="8xH100-80GB", planned=False)).run


# hiyouga/LLaMA-Factory@ff6d4d12 examples/megatron/qwen3_moe_full.yaml
MEGATRON_OF_LLAMAFACTORY = """\
model_name_or_path: Qwen/Qwen3-30B-A3B-Instruct-2507
stage: sft
finetuning_type: full
cutoff_len: 4096
output_dir: saves/mca/qwen3_moe_full
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
tensor_model_parallel_size: 1
pipeline_model_parallel_size: 4
expert_model_parallel_size: 2
bias_activation_fusion: true
apply_rope_fusion: true
use_distributed_optimizer: true
overlap_param_gather: true
overlap_grad_reduce: true
moe_grouped_gemm: true
moe_token_dispatcher_type: alltoall
recompute_granularity: full
"""


def test_megatrons_words_do_not_make_a_file_of_llamafactory_one_of_swift(tmp_path: Path) -> None:
    run = _run(tmp_path, "qwen3_moe_full.yaml", MEGATRON_OF_LLAMAFACTORY)
    assert (run.framework, run.algorithm) == ("llamafactory", "sft")
    assert run.knobs["actor.pipeline_parallel"].value == 4
    assert run.knobs["actor.expert_parallel"].value == 2


AXOLOTL = "base_model: Qwen/Qwen2.5-3B\nsequence_len: 2048\nmicro_batch_size: 8\nlearning_rate: 0.0002\n"


@pytest.mark.parametrize(
    ("lines", "method"),
    [
        ("process_reward_model: true\nmodel_type: AutoModelForTokenClassification\n", "prm"),
        ("pretraining_dataset:\n  - path: allenai/c4\n    type: pretrain\n", "pt"),
        ("pretraining_dataset: allenai/c4\n", "pt"),
        ("datasets:\n  - path: tatsu-lab/alpaca\n    type: alpaca\n", "sft"),
    ],
)
def test_the_method_of_axolotl_is_told_by_more_than_rl(tmp_path: Path, lines: str, method: str) -> None:
    assert _run(tmp_path, "run.yaml", AXOLOTL + lines).algorithm == method


def test_the_asynchronous_recipe_of_torchtune_is_grpo_and_not_counted(tmp_path: Path) -> None:
    # pytorch/torchtune@bd2a0fc7c recipes/configs/dev/qwen3B_async_grpo.yaml
    text = """\
model:
  _component_: torchtune.models.qwen2_5.qwen2_5_3b
tokenizer:
  _component_: torchtune.models.qwen2_5.qwen2_5_tokenizer
orchestration:
  num_inference_workers: 4
  num_training_workers: 2
inference:
  group_size: 16
training:
  batch_size: 16
"""
    run = _run(tmp_path, "run.yaml", text)
    assert (run.framework, run.algorithm) == ("torchtune", "grpo")


def test_trlx_is_not_trl(tmp_path: Path) -> None:
    # CarperAI/trlx@3340c2f examples/ppo_sentiments_t5.py
    text = """\
import trlx
from trlx.data.configs import ModelConfig, TRLConfig
from trlx.models.modeling_ppo import PPOConfig

config = TRLConfig(model=ModelConfig(model_path="lvwerra/t5-imdb"), method=PPOConfig(ppo_epochs=4, num_rollouts=128))
trlx.train(config=config)
"""
    assert _run(tmp_path, "ppo_sentiments_t5.py", text).framework == "unknown"


def test_skyrls_trainer_on_given_answers_is_not_trl(tmp_path: Path) -> None:
    # NovaSky-AI/SkyRL@a956457 examples/train/sft/run_sft_megatron_tulu3_50k_packed.sh
    text = (
        "uv run --isolated --extra megatron python -m skyrl.train.main_sft strategy=megatron"
        " model.path=Qwen/Qwen2.5-0.5B-Instruct max_length=4096 batch_size=24 micro_train_batch_size_per_gpu=6"
        " use_sequence_packing=true max_tokens_per_microbatch=8192 placement.num_gpus_per_node=4"
        " megatron_config.tensor_model_parallel_size=1 megatron_config.pipeline_model_parallel_size=1\n"
    )
    run = _run(tmp_path, "run.sh", text)
    assert (run.framework, run.algorithm, run.topology.actor_gpus) == ("skyrl-sft", "sft", 4)
    assert run.knobs["actor.micro_batch"].value == 1  # a packed row is a pass
    assert run.knobs["data.pack_tokens"].value == 8192
    assert run.knobs["actor.recompute_granularity"].value == "full"  # its default


def test_the_reinforcement_learner_of_skyrl_recomputes_on_megatron_too(tmp_path: Path) -> None:
    text = (
        "python3 -m skyrl.train.entrypoints.main_base trainer.strategy=megatron"
        " trainer.policy.model.path=Qwen/Qwen3-0.6B trainer.placement.policy_num_gpus_per_node=8\n"
    )
    assert _run(tmp_path, "run.sh", text).knobs["actor.recompute_granularity"].value == "full"


def test_prime_rls_file_of_given_answers_is_told(tmp_path: Path) -> None:
    # PrimeIntellect-ai/prime-rl@559b447 examples/basic/wordle/sft.toml
    text = """\
max_steps = 20

[ckpt]

[model]
name = "PrimeIntellect/Qwen3-1.7B"

[data]
name = "willcb/V3-wordle"
seq_len = 1024
batch_size = 64
micro_batch_size = 2
"""
    run = _run(tmp_path, "sft.toml", text)
    assert (run.framework, run.algorithm) == ("prime-rl-sft", "sft")
    assert (run.knobs["actor.micro_batch"].value, run.knobs["data.pack_tokens"].value) == (2, 1024)
    assert (tmp_path / "run.sh").write_text("uv run sft @ sft.toml --deployment.num-train-gpus 4\n")
    beside = open_session(SessionRequest(tmp_path / "run.sh", gpus="8xH100-80GB", planned=False)).run
    assert beside.framework == "prime-rl-sft"


VISION = (
    "torchrun --nproc_per_node=8 {program} --model_name_or_path {model} --output_dir out --bf16 True"
    " --num_train_epochs 1 --per_device_train_batch_size 4 --gradient_accumulation_steps 1 --deepspeed zero1.json"
    " {more}\n"
)


def test_a_frozen_language_model_is_not_counted_as_trained(tmp_path: Path) -> None:
    # haotian-liu/LLaVA@c121f04 scripts/v1_5/pretrain.sh: only the projector has gradients
    llava = {"program": "llava/train/train_mem.py", "model": "lmsys/vicuna-13b-v1.5"}
    script = tmp_path / "pretrain.sh"
    (tmp_path / "zero1.json").write_text('{"zero_optimization": {"stage": 1}}')
    script.write_text(VISION.format(**llava, more="--model_max_length 2048 --tune_mm_mlp_adapter True"))
    request = SessionRequest(script, gpus="8xH100-80GB", planned=False)
    assert any("frozen language model" in missing for missing in open_session(request).ledger.missing)
    script.write_text(VISION.format(**llava, more="--model_max_length 2048"))
    assert not open_session(request).ledger.missing


def test_adapters_of_internvl_are_adapters(tmp_path: Path) -> None:
    # OpenGVLab/InternVL@2410d1d internvl_chat/shell/internvl2.0/2nd_finetune/…_finetune_lora.sh
    (tmp_path / "zero1.json").write_text('{"zero_optimization": {"stage": 1}}')
    internvl = {"program": "internvl/train/internvl_chat_finetune.py", "model": "./pretrained/InternVL2-8B"}
    more = "--freeze_llm True --freeze_backbone True --use_llm_lora 16 --max_seq_length 4096 --grad_checkpoint True"
    run = _run(tmp_path, "run.sh", VISION.format(**internvl, more=more))
    assert (run.framework, run.algorithm) == ("transformers", "sft")
    assert (run.knobs["actor.lora_rank"].value, run.knobs["actor.full_finetuning"].value) == (16, False)
    assert run.knobs["data.total_tokens"].value == 4096
    assert run.knobs["actor.gradient_checkpointing"].value is True
    preference = {**internvl, "program": "internvl/train/internvl_chat_mpo.py"}
    assert _run(tmp_path, "run.sh", VISION.format(**preference, more="--max_seq_length 4096")).algorithm == "dpo"
