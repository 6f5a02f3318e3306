# ruff: noqa: E501  (log lines as they are printed)
"""What ended right before the failure is evidence, and so are the steps that ran before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.memory_section import memory_section
from advisor.session import SessionRequest, State, open_session
from tests.loops import each

WAKE = (
    "(Engine pid=7) Traceback (most recent call last):\n"
    '(Engine pid=7)   File "/opt/vllm/device_allocator/cumem.py", line 224, in wake_up\n'
    "(Engine pid=7)     create_and_map(handle)\n"
    "(Engine pid=7) RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n"
)
SAVED = {
    "skyrl": "INFO | skyrl_train.trainer:train:310 - Finished: 'save_checkpoints', time cost: 12.00s\n",
    "verl": "(WorkerDict pid=5) Saved model to /data/run/global_step_4/actor/model_world_size_8_rank_0.pt\n",
}


def step(number: int) -> str:
    return f"step:{number} - actor/loss:0.1 - perf/max_memory_allocated_gb:41.6\n"


def opened(folder: Path, log: str, **answers: str) -> State:
    (folder / "train.log").write_text(log)
    return open_session(SessionRequest(logs=(folder / "train.log",), gpus="8xH100-80GB", answers=answers))


@pytest.mark.parametrize("framework", ["skyrl", "verl"])
def test_the_first_wake_up_after_a_save_is_told_as_what_the_save_left(tmp_path: Path, framework: str) -> None:
    state = opened(tmp_path, step(3) + SAVED[framework] + step(4) + WAKE, framework=framework)
    assert state.diagnosis.cause == "save-left-buffers"
    assert "empty-after-save" in [one.id for one in state.plan.steps[:2]]
    assert "save-rarely" in [one.id for one in state.plan.steps]


@pytest.mark.parametrize(
    "log",
    [
        step(3) + SAVED["verl"] + step(4) + step(5) + step(6) + WAKE,
        step(3) + SAVED["verl"] + step(4) + step(5) + step(6) + SAVED["verl"] + step(7) + WAKE,
        SAVED["verl"] + WAKE,
        step(3) + step(4) + WAKE,
    ],
    ids=["steps since", "an earlier save went well", "nothing ran before", "no save"],
)
def test_a_save_that_steps_outlived_is_no_cause(tmp_path: Path, log: str) -> None:
    assert opened(tmp_path, log, framework="verl").diagnosis.cause != "save-left-buffers"


def test_an_evaluation_before_the_first_step_that_fails_counts_where_nothing_is_rolled_out(tmp_path: Path) -> None:
    log = (
        "{'loss': 1.2, 'epoch': 0.1}\n 50%|#####     | 5/10 [00:10<00:10]\n{'eval_loss': 1.1, 'epoch': 0.5}\n"
        'Traceback (most recent call last):\n  File "/opt/llamafactory/train/sft/workflow.py", line 3, in run_sft\n    x()\n'
        '  File "/opt/transformers/trainer.py", line 30, in training_step\n    self.accelerator.backward(loss)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 79.15 GiB of which 0.90 GiB is free. "
        "Including non-PyTorch memory, this process has 78.2 GiB memory in use. Of the allocated memory 77.0 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n"
    )
    state = opened(tmp_path, log)
    assert state.crash.preceded is not None
    assert state.diagnosis.cause == "save-left-buffers"


RUN = (
    "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 data.max_prompt_length=1024 "
    "data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-32B-Instruct trainer.n_gpus_per_node=4 "
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.8 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 trainer.nnodes=1\n"
)


@pytest.mark.parametrize(("first", "shown"), [("yes", True), ("no", False)])
def test_sums_by_which_the_steps_before_could_not_have_run_are_not_shown(
    tmp_path: Path, first: str, shown: bool
) -> None:
    (tmp_path / "run.sh").write_text(RUN)
    answers = {"memory": "gpu", "phase": "actor_update", "first_step": first}
    state = open_session(SessionRequest(tmp_path / "run.sh", gpus="4xA100-80GB", answers=answers))
    assert state.ran is not shown
    assert bool(memory_section(state)) is shown
    assert ("ledger.largest" in state.situation.facts) is shown


WORDS = [
    ("It trains fine for epoch 0, then the model saves but epoch 1 fails due to OOM.", "checkpoint"),
    ("Training runs for 500 steps and CUDA runs out of memory right after an evaluation.", "validation"),
    ("By removing the checkpoint saving it works, else cuda OOM at step 40.", "checkpoint"),
    ("跑了 200 步，保存模型后显存 OOM。", "checkpoint"),
    ("CUDA out of memory at step 500.", None),
]


def test_words_say_what_was_over_right_before(tmp_path: Path) -> None:
    @each(("words", "phase"), WORDS)
    def checked(words: str, phase: str | None) -> None:
        (tmp_path / "run.log").write_text(f"{words}\n{ON_CARD}")
        state = open_session(SessionRequest(None, (tmp_path / "run.log",), gpus="8xA100-80GB"))
        assert state.situation is not None
        told = state.situation.facts.get("right_after")
        assert (told and told.value) == phase
        assert (state.diagnosis.cause == "save-left-buffers") is (phase is not None)

    checked()


ON_CARD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.10 GiB. GPU 3 has a total capacity of 79.15 GiB of which 0.50 GiB is free.\n"


def test_inside_a_training_loop_the_model_is_loaded(tmp_path: Path) -> None:
    bar = "Loading checkpoint shards: 100%|####| 4/4 [00:07<00:00]\n"
    loop = '  File "/x/transformers/trainer.py", line 2241, in _inner_training_loop\n    loss = self.one()\n'
    for frames, phase in ((loop, "unknown"), ("", "model_load")):
        (tmp_path / "run.log").write_text(f"{bar}Traceback (most recent call last):\n{frames}{ON_CARD}")
        assert open_session(SessionRequest(None, (tmp_path / "run.log",))).crash.phase == phase


def test_what_the_log_shows_goes_before_memory_that_only_the_user_names(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("OSError: libbitsandbytes_cpu.so: cannot open shared object file: No such file\n")
    asked = SessionRequest(None, (tmp_path / "run.log",), gpus="4xA100-80GB", answers={"memory": "gpu"})
    state = open_session(asked)
    assert state.crash.verdict == "not_oom"
    assert [step.id for step in state.plan.steps[:2]] == ["matching-builds", "lower-actor-micro-batch"]


def test_one_who_does_not_think_so_tells_no_shortage(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("I don't think this is due to OOM because it only took up 56G on the GPU.\n")
    assert open_session(SessionRequest(None, (tmp_path / "run.log",))).crash.verdict == "unclear"
