"""A run that died late, or trains on given answers: what is known decides, and nobody is asked what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.crash.read import read_text
from advisor.diagnosis.deciding import telling_questions
from advisor.diagnosis.open_questions import tree_answers
from advisor.knowledge import load_knowledge
from advisor.session import SessionRequest, State, open_session
from tests.loops import each

KNOWLEDGE = load_knowledge()
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of 79.11 "
    "GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the "
    "allocated memory {held} GiB is allocated by PyTorch, and {idle} GiB is reserved by PyTorch but unallocated.\n"
)
FULL = OOM.format(tried="3.10", held="76.00", idle="0.30")
IN_PIECES = OOM.format(tried="3.90", held="62.30", idle="12.80")
DPO = "trl dpo --model_name_or_path Qwen/Qwen2.5-7B-Instruct\n"
SFT = "trl sft --model_name_or_path Qwen/Qwen2.5-7B-Instruct\n"
GRPO = "accelerate launch --num_processes 8 -m trl.scripts.grpo --model_name_or_path Qwen/Qwen2.5-7B-Instruct\n"
ROLLOUT = {"rollout_init", "rollout_generate", "weight_sync"}


def opened(folder: Path, log: str = "", script: str = "", **answers: str) -> State:
    given: dict[str, Path] = {}
    if script:
        given = {"script": folder / "run.sh"}
        given["script"].write_text(script)
    logs = (folder / "train.log",) if log else ()
    for one in logs:
        one.write_text(log)
    return open_session(SessionRequest(**given, logs=logs, gpus="8xH100-80GB", answers=answers))


def offered(state: State, question: str) -> set[str]:
    return {choice.id for step in state.diagnosis.path if step.question == question for choice in step.choices}


def test_a_death_after_steps_that_fitted_is_one_long_batch(tmp_path: Path) -> None:
    state = opened(tmp_path, FULL, first_step="no", phase="actor_update")
    assert state.diagnosis.cause == "long-sequence"
    assert opened(tmp_path, FULL, first_step="yes", phase="actor_update").diagnosis.cause != "long-sequence"


def test_a_launch_that_did_steps_is_not_asked_whether_it_ever_ran(tmp_path: Path) -> None:
    steps = "(TaskRunner pid=8) step:10 - timing_s/gen:6.1\n(TaskRunner pid=8) step:11 - timing_s/gen:6.1\n"
    state = opened(tmp_path, steps + FULL, phase="rollout_generate", framework="verl")
    (step,) = [one for one in state.diagnosis.path if one.question == "ever_ran"]
    assert (step.answer, step.source, state.diagnosis.cause) == ("steps", "log", "engine-beside-trainer")


def test_memory_that_rose_is_growth_and_no_long_batch(tmp_path: Path) -> None:
    assert opened(tmp_path, FULL, first_step="no", phase="actor_update", course="grows").diagnosis.cause == "gpu-growth"


def test_memory_in_pieces_stops_an_optimizer_step_that_had_run_before(tmp_path: Path) -> None:
    assert opened(tmp_path, IN_PIECES, phase="optimizer_step").diagnosis.cause == "fragmentation"
    first = opened(tmp_path, IN_PIECES, phase="optimizer_step", first_step="yes")
    assert first.diagnosis.cause == "lazy-optimizer"


@pytest.mark.parametrize(
    ("script", "left"), [(DPO, {"log_prob"}), (SFT, set()), (GRPO, {"rollout_generate", "log_prob"})]
)
def test_only_phases_of_the_recipe_are_offered(tmp_path: Path, script: str, left: set[str]) -> None:
    choices = offered(opened(tmp_path, FULL, script), "phase")
    assert choices & {*ROLLOUT, "log_prob", "critic_update"} == left
    assert "actor_update" in choices


def test_an_evaluation_of_given_answers_is_no_matter_of_an_engine(tmp_path: Path) -> None:
    state = opened(tmp_path, FULL, SFT, phase="validation")
    assert not state.diagnosis.cause.startswith("engine")


@pytest.mark.parametrize("ram", ["40GB", None])
def test_which_memory_it_was_is_asked_before_all_else(tmp_path: Path, ram: str | None) -> None:
    (tmp_path / "run.sh").write_text(GRPO)
    small = SessionRequest(script=tmp_path / "run.sh", gpus="8xH100-80GB", host_ram=ram, nodes=1)
    state = open_session(small)
    assert state.situation is not None
    answers = tree_answers(state.answers)
    asked = next(iter(telling_questions(state.diagnosis.path, KNOWLEDGE.tree, state.situation.facts, answers)), None)
    memory = state.diagnosis.path[0]
    assert (memory.question, memory.answer == "unknown") == (
        "memory",
        bool(ram),
    )  # both are short where the RAM is small
    assert (asked is not None and asked.step.question == "memory") == bool(ram)


@each(
    ("log", "phase"),
    [
        ("▶ Taking a training step...\n(DTensorPolicyWorker pid=9) ", "actor_update"),
        ("▶ Starting validation at step 10...\n(DTensorPolicyWorker pid=9) ", "validation"),
        ("(ActorModelRayActor pid=7) Train epoch [3/3]: 100%|####| 8/8 [00:40<00:00]\n", "weight_sync"),
        ("(ActorModelRayActor pid=7) Train epoch [2/3]: 100%|####| 8/8 [00:40<00:00]\n", "unknown"),
        ("(ActorModelRayActor pid=7) Train epoch [3/3]:  50%|##  | 4/8 [00:40<00:00]\n", "actor_update"),
    ],
)
def test_the_last_mark_of_progress_tells_the_phase(log: str, phase: str) -> None:
    rules = [rule for framework in KNOWLEDGE.frameworks for rule in framework.progress]
    assert read_text(log + FULL, "train.log", KNOWLEDGE.signatures, progress=rules).phase == phase


def test_what_the_report_calls_tried_in_vain_is_no_step_and_growth_in_words_is_growth(tmp_path: Path) -> None:
    words = "GPU memory keeps increasing with each step until OOM, a smaller batch size only delays it.\n"
    state = opened(tmp_path, words, SFT.rstrip() + " --use_peft\n", memory="gpu")
    told = opened(tmp_path, words.partition(",")[0], SFT.rstrip() + " --use_peft\n", memory="gpu")
    assert (state.diagnosis.cause, told.diagnosis.cause) == ("gpu-growth", "gpu-growth")
    assert ["lower-actor-micro-batch" in {step.id for step in one.plan.steps} for one in (state, told)] == [False, True]


def test_no_long_row_is_blamed_where_the_script_lets_none_be_long(tmp_path: Path) -> None:
    state = opened(tmp_path, FULL, SFT.rstrip() + " --max_length 256\n", first_step="no", phase="actor_update")
    assert state.diagnosis.cause != "long-sequence"
