# ruff: noqa: E501  (log lines as they are printed)
"""Who is on the card or node is told by the message, the launch and the answers before anything is inferred."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.phrases import verdict
from advisor.session import SessionRequest, State, open_session

PPO = "python examples/scripts/ppo/ppo.py --dataset_name d --output_dir m --model_name_or_path Qwen/Qwen2.5-7B-Instruct --sft_model_path Qwen/Qwen2.5-7B-Instruct --reward_model_path Qwen/Qwen2.5-7B-Instruct\n"
LOADING = '  File "/root/t/worker.py", line 88, in init_model\n    model = AutoModelForCausalLM.from_pretrained(path)\n'
UPDATE = (
    'Traceback (most recent call last):\n  File "/root/t/train.py", line 88, in update_policy\n    loss.backward()\n'
)


def message(*others: float, mine: float, total: float = 79.15) -> str:
    listed = "".join(f"Process {4242 + n} has {size:.2f} GiB memory in use. " for n, size in enumerate(others))
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 298.00 MiB. GPU 0 has a total capacity of {total} GiB of which "
        f"120.12 MiB is free. {listed}Including non-PyTorch memory, this process has {mine} GiB memory in use. Of the allocated "
        f"memory {mine - 1:.2f} GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.\n"
    )


def opened(folder: Path, log: str = "", launch: str = "", **answers: str) -> State:
    (folder / "train.log").write_text(log)
    (folder / "run.sh").write_text(launch)
    return open_session(
        SessionRequest(
            script=folder / "run.sh" if launch else None,
            logs=(folder / "train.log",) if log else (),
            gpus="1xA100-80GB",
            answers=answers,
        )
    )


@pytest.mark.parametrize(
    ("trace", "others", "mine"),
    [(LOADING, (70.0,), 9.0), (UPDATE, (27.9, 27.9, 14.0), 9.2), (LOADING, (26.0, 26.0, 26.0), 1.0)],
)
def test_what_others_hold_most_of_is_theirs_in_every_phase(
    tmp_path: Path, trace: str, others: tuple[float, ...], mine: float
) -> None:
    state = opened(tmp_path, trace + message(*others, mine=mine))
    assert state.diagnosis.cause == "card-shared"
    assert "(pid 4242)" in str(state.crash.evidence[0].fields["other_processes"])


def test_a_card_that_this_process_filled_while_loading_has_no_second_rank(tmp_path: Path) -> None:
    state = opened(tmp_path, LOADING + message(mine=79.0))
    (step,) = [one for one in state.diagnosis.path if one.question == "ranks"]
    assert (step.answer, step.source) == ("no", "log")


def test_one_process_has_no_other_ranks_and_its_models_are_counted(tmp_path: Path) -> None:
    log = "Loading checkpoint shards: 100%|##| 4/4\nLoading checkpoint shards:  50%|#| 2/4\nKilled\n"
    state = opened(tmp_path, log, PPO, seen="killed")
    assert state.diagnosis.cause == "models-in-one-process"
    assert any(remark.startswith("4 models stand in this process") for remark in state.diagnosis.remarks)
    assert verdict(state) == (
        "The process was killed while loading the model. That host RAM was short is likely; nothing here proves it."
    )


@pytest.mark.parametrize("question", ["seen", "ended"])
def test_an_answer_about_the_end_answers_which_memory(tmp_path: Path, question: str) -> None:
    state = opened(tmp_path, launch=PPO, **{question: "killed"})
    assert state.diagnosis.memory == "host"
    assert "memory" not in state.diagnosis.open_questions


def test_attention_that_failed_is_no_logits(tmp_path: Path) -> None:
    trace = (
        'Traceback (most recent call last):\n  File "/opt/torch/autograd/__init__.py", line 200, in backward\n    x()\n'
        '  File "/opt/flash_attn/flash_attn_interface.py", line 150, in _flash_attn_varlen_backward\n    dq = y(\n'
    )
    state = opened(tmp_path, trace + message(mine=79.0).replace("298.00 MiB", "8.81 GiB"))
    (step,) = [one for one in state.diagnosis.path if one.question == "holder"]
    assert step.answer == "batch"
    assert "logits" not in {choice.id for choice in step.choices}
    assert not any("logits" in remark for remark in state.diagnosis.remarks)


def test_a_trainer_s_train_shows_no_phase_and_what_nobody_knows_is_no_reason(tmp_path: Path) -> None:
    trace = 'Traceback (most recent call last):\n  File "/home/u/grpo.py", line 300, in main\n    trainer.train()\n'
    state = opened(tmp_path, trace + message(mine=79.0), first_step="no")
    assert state.diagnosis.phase == "unknown"
    assert not any("is not known" in step.because for step in state.diagnosis.path)
