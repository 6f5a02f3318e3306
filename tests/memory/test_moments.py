"""Moments are there from an optimizer's first step on, those of DeepSpeed from the start; Megatron's masters, too."""

from __future__ import annotations

import pytest

from tests.memory.launches import estimate

DPO = """\
accelerate launch --num_processes {gpus} trl/scripts/dpo.py --model_name_or_path Qwen/Qwen2.5-7B-Instruct \\
  --dataset_name x/y --per_device_train_batch_size 1 --max_length 2048 --bf16 True --output_dir out {more}
"""
MEGATRON = """\
NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-7B --tensor_model_parallel_size 2 --micro_batch_size 1 \\
  --tuner_type full --max_length 2048 --packing true
"""
P = 7.6156e9 / 2**30


def test_loading_a_model_makes_no_moments_of_torchs_adam() -> None:
    run = estimate(DPO.format(gpus=1, more=""), "1xH200-141GB")
    assert run.of("optimizer", "model_load") == 0
    assert run.of("optimizer", "optimizer_step") == pytest.approx(8 * P, rel=0.01)


def test_deepspeeds_are_made_with_its_engine() -> None:
    run = estimate(DPO.format(gpus=4, more="--deepspeed zero2"), "4xH200-141GB")
    assert run.of("optimizer", "model_load") == pytest.approx(run.of("optimizer", "optimizer_step"), rel=0.01)


def test_megatrons_masters_stand_before_its_moments() -> None:
    run = estimate(MEGATRON, "8xH100-80GB")
    assert run.of("optimizer", "model_load") == pytest.approx(run.of("optimizer", "optimizer_step") / 3, rel=0.01)
