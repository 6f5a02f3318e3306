"""A fault of a library that came after the framework's version is not looked for there."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

OPTIONS = (
    "--stage sft --do_train --finetuning_type full --bf16 --model_name_or_path Qwen/Qwen2.5-7B --deepspeed z3.json"
)


@pytest.mark.parametrize(("program", "looked"), [("src/train_bash.py", False), ("src/train.py", True)])
def test_a_launch_of_before_has_no_later_fault(tmp_path: Path, program: str, looked: bool) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"deepspeed --num_gpus=8 {program} {OPTIONS}\n")
    (tmp_path / "z3.json").write_text('{"zero_optimization": {"stage": 3}}')
    state = open_session(
        SessionRequest(script=script, gpus="8xA100-40GB", answers={"memory": "gpu", "phase": "actor_update"})
    )
    assert ("use-deepspeed-0.16.8" in [step.id for step in state.plan.steps]) is looked
