# ruff: noqa: E501  (log lines as they are printed)
"""No part is spoken of that nothing shows the run to have, and words of a shortage alone have steps."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from advisor.diagnosis.sharing_facts import stage_in_words
from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session
from tests.loops import each

CARD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 39.39 GiB of which 500.00 MiB is free.\n"


def seen(log: str, script: str = "", name: str = "run.sh", **answers: str) -> State:
    with TemporaryDirectory() as folder:
        run, logs = Path(folder) / name, Path(folder) / "run.log"
        logs.write_text(log)
        run.write_text(script)
        return open_session(SessionRequest(run if script else None, logs=(logs,), gpus="2xA100-40GB", answers=answers))


@each(
    ("log", "framework", "offered"),
    [
        (CARD, "axolotl", False),
        (CARD, "llamafactory", False),
        (CARD, "trl", False),
        (CARD, "ms-swift", False),
        ("INFO starting vLLM engine\n" + CARD, "ms-swift", True),
        ("loading the GRPO recipe\n" + CARD, "trl", True),
        (CARD, "verl", True),
        (CARD, "openrlhf", True),
    ],
)
def test_phases_of_rollouts_need_a_sign_or_a_framework_made_for_them(log: str, framework: str, offered: bool) -> None:
    state = seen(log, framework=framework)
    phases = {choice.id for step in state.diagnosis.path for choice in step.choices if step.question == "phase"}
    assert ("weight_sync" in phases) is offered


def test_a_program_of_nobodys_framework_without_a_word_of_an_engine_has_none() -> None:
    script = "python train.py --actor-model facebook/opt-1.3b --reward-model facebook/opt-350m --num-gpus 1\n"
    state = seen(CARD, script)
    assert not {"lower-rollout-share", "engine-sleep"} & {step.id for step in state.plan.steps}


@each(
    ("log", "framework", "spoken"),
    [
        ("Aborted\n", "trl", False),
        ("Aborted\n", "verl", True),
        ("Aborted\n", "llamafactory", False),
        ("(WorkerDict pid=9) ray::WorkerDict\nAborted\n", "other", True),
    ],
)
def test_ray_is_named_where_there_is_a_sign_of_it(log: str, framework: str, spoken: bool) -> None:
    state = seen(log, framework=framework)
    assert ("Ray" in state.diagnosis.record_next_time) is spoken
    assert "ray stop" not in short_report(state)


@each(
    ("log", "guessed"),
    [
        ("I always run out of memory when I fine-tune the 3B model\n", True),
        ("Currently getting out of memory error for DPO\n", True),
        ("getting OOMs after 120 steps, any idea what might cause that?\n", True),
        ("to avoid out of memory, lower the batch\n", False),
        ("the process is OOM killed by the cluster after an hour\n", False),
        ("out of memory, the node has 64 GB RAM\n", False),
    ],
)
def test_words_of_a_shortage_without_a_kill_mean_the_card_as_a_guess(log: str, guessed: bool) -> None:
    state = seen(log, framework="trl")
    assert state.diagnosis.memory in (("gpu", "unknown") if guessed else ("host", "unknown", "none"))
    assert any(step.place == "gpu" for step in state.plan.steps) is guessed
    assert not state.plan.selected()
    asked = state.deciding()
    told_when = "steps" in log  # and with it the cause: nothing is left to ask
    assert not guessed or told_when or (asked is not None and asked.step.question in ("seen", "memory"))


@each(
    "line",
    [
        "RuntimeError: One of the subprocesses hasabruptly died during map operation.",
        "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.",
        "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by the executor was unexpectedly terminated. This could be caused by a segmentation fault while calling the function or by an excessive memory usage causing the Operating System to kill the worker.",
    ],
)
def test_a_dead_worker_of_the_preparation_has_steps_for_host_ram(line: str) -> None:
    look, *steps = seen(line + "\n").plan.steps
    assert look.id == "ask-how-it-ended"
    assert {"fewer-prepare-workers", "prepare-once"} <= {step.id for step in steps}
    assert all(step.only_if and not step.selected for step in steps)


@each(
    ("log", "first"),
    [
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n",
            "ask-card-or-stack",
        ),
        (f"The same config worked fine two days ago.\n{CARD}", "look-what-differs"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered\n", "blocking-launch"),
    ],
)
def test_what_is_at_hand_is_looked_at_first(log: str, first: str) -> None:
    steps = [step.id for step in seen(log).plan.steps]
    assert steps[0] == first
    assert {"ask-card-or-stack": "matching-builds", "blocking-launch": "find-the-trigger"}.get(first, first) in steps


@each("how", ["--config_file fsdp.yaml", "--use_fsdp"])
def test_where_fsdp_shards_no_step_is_deepspeeds(how: str) -> None:
    script = f"accelerate launch {how} sft.py --model_name_or_path Qwen/Qwen3-8B --packing true --output_dir o\n"
    steps = seen(CARD, script, framework="trl", phase="actor_update").plan.steps
    shown = " ".join(word for one in steps for word in (one.example, *(change.key for change in one.changes)))
    assert steps
    assert "deepspeed" not in shown


@each(
    ("line", "told"),
    [
        ("ZeRO stage: 2 (with CPU offload)", (2, True)),
        ("DeepSpeed: ZeRO-3", (3, False)),
        ("DeepSpeed: 0.15.4", ()),
        ("stage: 1.5", ()),
    ],
)
def test_the_stage_that_a_person_lists_is_known(line: str, told: tuple[int, bool] | tuple[()]) -> None:
    run = seen(CARD, f"Model: Qwen3-8B\nGPUs: 2x A100\n{line}\nMicro batch size: 2\n", name="run.yaml").run
    assert (stage_in_words(run) or ())[:2] == told
