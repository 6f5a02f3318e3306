"""Settings of the launch decide by their own names: what recomputes in part goes to all, what is off comes first."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session
from tests.plan.planned import Planned, changes

BARE = "torch.OutOfMemoryError: CUDA out of memory.\n"
PACKED = (
    "base_model: Qwen/Qwen2.5-1.5B\nsequence_len: 20480\nsample_packing: true\npad_to_sequence_len: true\n"
    "micro_batch_size: 1\noptimizer: adamw_torch\nbf16: true\ngradient_checkpointing: false\n"
    "datasets:\n  - {path: x, type: alpaca}\n"
)
SECOND = "It dies with CUDA out of memory in the backward pass of the second step.\n"


def test_recomputing_in_part_is_taken_to_all_of_it_by_its_own_name(planned: Planned) -> None:
    for text, key in (("--mode selective", "mode"), ("--activation_checkpoint selective", "activation_checkpoint")):
        steps = planned(f"python train.py --model_name x {text}\n", BARE)
        assert changes(steps["gradient-checkpointing"]) == {key: ("selective", "full")}
        assert next(iter(steps)) == "gradient-checkpointing"


def test_a_length_is_known_by_its_own_name(planned: Planned) -> None:
    steps = planned("python train.py --model_name x --source_max_len 2048\n", BARE)
    assert changes(steps["shorten-sequences"]) == {"source_max_len": ("2048", "1024")}


def test_the_second_step_has_the_optimizers_state_and_is_no_leak(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(PACKED)
    (tmp_path / "run.log").write_text(SECOND)
    answers = {"memory": "gpu", "framework": "axolotl"}
    asked = SessionRequest(tmp_path / "run.yaml", logs=(tmp_path / "run.log",), gpus="1xA100-80GB", answers=answers)
    state = open_session(asked)
    assert state.diagnosis.cause in ("batch-too-big", "logits-too-big")
    assert "gradient-checkpointing" in [step.id for step in state.plan.steps[:2]]


def test_what_an_evaluation_collects_fills_the_host(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("python finetune.py --eval_accumulation_steps 4 --model_name x\n")
    answers = {"memory": "host", "phase": "validation", "host_growth": "yes"}
    state = open_session(SessionRequest(tmp_path / "run.sh", answers=answers))
    assert state.diagnosis.cause == "validation-batch"
    assert [step.id for step in state.plan.steps[:1]] == ["keep-no-logits-host"]
