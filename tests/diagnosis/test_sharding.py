"""A config file that is missing is said, and where it would decide the sharding, that is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor import session
from advisor.diagnosis.diagnosis import UNKNOWN, QuestionStep
from advisor.diagnosis.tree import AnswerError
from advisor.report.text_report import estimate_report, text_report
from advisor.run_file import sizing_of
from advisor.session import SessionRequest, State

TRL = (
    "accelerate launch --num_processes 8 {launcher} grpo.py --model_name_or_path Qwen/Qwen2.5-7B {more} "
    "--per_device_train_batch_size 4 --num_generations 8 --max_completion_length 1024 --gradient_checkpointing true\n"
)
SWIFT = (
    "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct --train_type full {more} "
    "--per_device_train_batch_size 2 --num_generations 8 --max_completion_length 1024\n"
)
CASTS = (
    "Traceback (most recent call last):\n"
    '  File "/x/trl/trainer/grpo_trainer.py", line 900, in _compute_loss\n'
    '  File "/x/accelerate/utils/operations.py", line 789, in convert_to_fp32\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n"
)
Open = Callable[..., State]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def read(script: str, log: str = "", **files: str) -> State:
        (tmp_path / "run.sh").write_text(script)
        (tmp_path / "train.log").write_text(log)
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        logs = (tmp_path / "train.log",) if log else ()
        asked = SessionRequest(script=tmp_path / "run.sh", logs=logs, gpus="8xA100-80GB", host_ram="1000GB")
        return session.open_session(asked)

    return read


def accelerate(file: str, more: str = "") -> str:
    return TRL.format(launcher=f"--config_file {file}", more=more)


def asked(state: State) -> QuestionStep | None:
    return next((step for step in state.diagnosis.path if step.question == "sharding"), None)


def update(state: State) -> int:
    found = state.ledger.phase("gpu", "actor_update")
    assert found is not None
    return found.expected


@pytest.mark.parametrize(
    ("script", "answer", "stage"),
    [
        (accelerate("zero2.yaml"), "zero2", 2),
        (accelerate("configs/deepspeed_zero3.yaml"), "zero3", 3),
        (accelerate("fsdp2_qwen3.yaml"), "fsdp", 3),
        (accelerate("ddp.yaml"), "none", None),
        (TRL.format(launcher="", more="--deepspeed ds_z3_config.json"), "zero3", 3),
        (SWIFT.format(more="--deepspeed conf/zero-stage-1.json"), "zero1", 1),
    ],
)
def test_a_missing_files_name_is_a_guess_that_memory_is_counted_by(opened: Open, script, answer, stage) -> None:
    state = opened(script)
    step = asked(state)
    assert step is not None
    assert (step.answer, step.guess, step.source) == (answer, True, "script")
    assert "its name says so" in step.because
    assert state.run.value("actor.zero_stage") == stage
    assert state.ledger.basis == "estimated"


def test_offload_in_the_name_is_guessed_too(opened: Open) -> None:
    run = opened(SWIFT.format(more="--deepspeed ds_z3_offload_config.json")).run
    assert (run.value("actor.zero_stage"), run.value("actor.optimizer_offload")) == (3, True)
    plain = opened(SWIFT.format(more="--deepspeed ds_z3_config.json")).run
    assert plain.value("actor.optimizer_offload") is False


def test_a_name_that_says_nothing_leaves_it_open(opened: Open) -> None:
    state = opened(accelerate("config/my_accelerate.yaml"))
    step = asked(state)
    assert step is not None
    assert (step.answer, step.guess) == (UNKNOWN, False)
    assert "sharding" in state.diagnosis.open_questions
    assert "how the states are sharded is not known" in state.diagnosis.remarks[0]


def test_the_answer_flows_into_ledger_and_plan(opened: Open) -> None:
    state = opened(accelerate("my.yaml"))
    sharded, whole = session.answer(state, "sharding", "zero3"), session.answer(state, "sharding", "none")
    assert update(sharded) < update(whole)
    assert {step.id for step in sharded.plan.steps} != {step.id for step in whole.plan.steps}
    assert "as you said" in sharded.diagnosis.remarks[0]
    assert asked(session.answer(sharded, "sharding", None)) == asked(state)


def test_an_answer_that_it_does_not_have_is_refused(opened: Open) -> None:
    with pytest.raises(AnswerError, match="sharding takes zero3_offload"):
        session.answer(opened(accelerate("my.yaml")), "sharding", "yes")


def test_it_is_said_in_report_and_estimate(opened: Open) -> None:
    state = opened(accelerate("zero2.yaml"))
    for report in (text_report(state), estimate_report(sizing_of(state))):
        assert "by its name, memory is counted for DeepSpeed ZeRO stage 2, a guess" in " ".join(report.split())
    assert "--answer sharding=" in " ".join(text_report(state).split())


@pytest.mark.parametrize(
    "script",
    [
        TRL.format(launcher="", more=""),
        SWIFT.format(more="--deepspeed zero3"),
        accelerate("zero2.yaml", more="--deepspeed ds.json")
        .replace("zero2.yaml", "there.yaml")
        .replace("ds.json", "x"),
        TRL.format(launcher="", more="--fsdp full_shard --fsdp_config fsdp.json"),
        "python3 -m verl.trainer.main_ppo --config-name=zero2 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B\n",
    ],
)
def test_nobody_is_asked_where_no_such_file_is_missing_or_nothing_is_open(opened: Open, script: str) -> None:
    there = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n"
    assert asked(opened(script, there=there)) is None


def test_an_fsdp_config_can_only_mean_fsdp(opened: Open) -> None:
    state = opened(TRL.format(launcher="", more="--fsdp full_shard --fsdp_config my.json"))
    assert state.run.value("actor.zero_stage") == 3
    assert "counted for FSDP" in state.diagnosis.remarks[0]


def test_a_stage_that_the_command_sets_is_not_overruled_by_a_name(opened: Open) -> None:
    state = opened(SWIFT.format(more="--deepspeed zero3").replace("swift rlhf", "accelerate launch --config_file zero1.yaml swift/cli/rlhf.py"))  # fmt: skip  # noqa: E501
    assert state.run.value("actor.zero_stage") in (3, None)
    assert asked(state) is None or state.run.framework == "unknown"


def test_a_frame_that_speaks_against_the_name_is_said(opened: Open) -> None:
    state = opened(accelerate("zero2.yaml"), CASTS)
    step = asked(state)
    assert step is not None
    assert "operations.py convert_to_fp32" in step.because
    assert "the log speaks against it" in state.diagnosis.remarks[0]
    assert "speaks against" not in opened(accelerate("fsdp.yaml"), CASTS).diagnosis.remarks[0]


def test_a_file_of_the_runs_own_settings_is_said_where_nothing_can_be_counted(opened: Open) -> None:
    state = opened("trl grpo --config recipes/demo.yaml\n")
    assert state.diagnosis.remarks[0].startswith("The file recipes/demo.yaml was not found")
    assert state.ledger.missing


def test_the_plan_may_still_shard_more(opened: Open) -> None:
    state = opened(SWIFT.format(more="--deepspeed conf/zero2.json"))
    assert state.situation is not None
    then = state.situation.predictor.predict({"deepspeed": "zero3"})
    assert then.built.run.value("actor.zero_stage") == 3
    assert then.built.run.unread is None
