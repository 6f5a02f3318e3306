"""A trainer that generates without an engine under ZeRO-3: every card gathers the whole model."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

TRL = """\
accelerate launch --config_file deepspeed_zero3.yaml --num_processes 8 grpo.py --model_name_or_path {model} \\
  --use_peft --num_generations 8 --max_completion_length 512 --per_device_train_batch_size 1 --bf16 {more}
"""


@pytest.mark.parametrize(
    ("model", "more", "cause"),
    [
        ("Qwen/Qwen2.5-72B-Instruct", "", "gather-for-generation"),
        ("Qwen/Qwen2.5-72B-Instruct", "--ds3_gather_for_generation False --use_vllm", "engine-beside-trainer"),
    ],
)
def test_the_gather_is_told_where_it_is_what_does_not_fit(tmp_path: Path, model: str, more: str, cause: str) -> None:
    script = tmp_path / "run.sh"
    script.write_text(TRL.format(model=model, more=more))
    answers = {"memory": "gpu", "phase": "rollout_generate"}
    state = open_session(SessionRequest(script, gpus="8xA100-80GB", answers=answers))
    assert state.diagnosis.cause == cause
