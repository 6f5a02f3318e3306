"""What the user answers of the framework is how a run without marks is read."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from advisor.diagnosis.tree import AnswerError
from advisor.knowledge import load_knowledge
from advisor.session import SessionRequest, State, answer, open_session
from tests.loops import each

LINE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.10 GiB. GPU 2 has a total capacity of 79.11 GiB "
    "of which 1.20 GiB is free. Process 9 has 77.90 GiB memory in use. Of the allocated memory 71.00 GiB is "
    "allocated by PyTorch, and 1.10 GiB is reserved by PyTorch but unallocated.\n"
)
FRAMEWORKS = [each.framework for each in load_knowledge().frameworks]


def opened(folder: Path, script: str = "", log: str = LINE, **answers: str) -> State:
    (folder / "train.log").write_text(log)
    given: dict[str, Path] = {}
    if script:
        (folder / "run.sh").write_text(script)
        given = {"script": folder / "run.sh"}
    asked = SessionRequest(**given, logs=(folder / "train.log",), gpus="8xA100-80GB", model="Qwen3-8B", answers=answers)
    return open_session(asked)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_log_without_marks_is_read_in_the_dialect_that_the_user_names(tmp_path: Path, framework: str) -> None:
    state = opened(tmp_path, framework=framework, phase="actor_update")
    assert (state.run.framework, state.run.recognised_from) == (framework, "user")
    assert [change.key for step in state.plan.steps for change in step.changes if step.kind == "setting"]


def test_the_answer_given_later_does_the_same_and_can_be_taken_back(tmp_path: Path) -> None:
    state = opened(tmp_path)
    assert state.run.framework == "unknown"
    told = answer(state, "framework", "verl")
    assert told.run.framework == "verl"
    assert "version" in told.diagnosis.open_questions
    assert answer(told, "framework", None).run.framework == "unknown"


def test_another_framework_takes_the_version_of_the_first_with_it(tmp_path: Path) -> None:
    told = answer(answer(opened(tmp_path), "framework", "easyr1"), "version", "v0.3.2")
    other = answer(told, "framework", "verl")
    assert (other.run.framework, other.answers) == ("verl", {"framework": "verl"})
    assert "version" in other.diagnosis.open_questions
    assert answer(told, "framework", "easyr1").answers == told.answers
    assert "version" not in answer(told, "framework", None).answers


def test_the_answer_on_the_way_of_host_memory_counts_too(tmp_path: Path) -> None:
    killed = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
    state = opened(tmp_path, log=killed, framework_host="openrlhf", memory="host")
    assert state.run.framework == "openrlhf"


def test_a_version_that_the_user_names_counts_in_that_dialect(tmp_path: Path) -> None:
    assert opened(tmp_path, framework="verl", version="v0.5").run.era == "v0.5"


def test_an_answer_beats_lines_of_a_log_that_a_fork_prints_too(tmp_path: Path) -> None:
    log = 'File "/opt/verl/single_controller/ray/base.py", line 10, in func\n' + LINE
    assert opened(tmp_path, log=log, framework="easyr1").run.framework == "easyr1"


def test_the_marks_of_a_launch_are_proof_and_the_report_shows_both(tmp_path: Path) -> None:
    script = "python3 -m verl.trainer.main_ppo data.train_batch_size=64 trainer.n_gpus_per_node=8\n"
    state = opened(tmp_path, script, framework="openrlhf")
    assert state.run.framework == "verl"
    step = next(step for step in state.diagnosis.path if step.question == "framework")
    assert (step.answer, step.suggested) == ("openrlhf", "verl")


def test_what_the_log_proves_stands_beside_an_answer_that_says_otherwise(tmp_path: Path) -> None:
    state = opened(tmp_path, memory="host")
    step = state.diagnosis.path[0]
    assert (step.question, step.answer, step.suggested) == ("memory", "host", "gpu")


def test_without_a_launch_the_ledger_counts_the_engine_that_a_step_starts_from(tmp_path: Path) -> None:
    state = opened(tmp_path, log="ValueError: No available memory for the cache blocks.\n", framework="verl")
    size = state.run.knobs["rollout.tensor_parallel"]
    assert (size.value, size.source, state.run.topology.tensor_parallel) == (2, "assumed", 2)


WRAPPER = "ray.exceptions.RayTaskError(OutOfMemoryError): ray::TaskRunner.run() (pid=12)\n"


def test_a_shortage_of_which_the_log_does_not_say_the_memory_is_told_as_such_and_ticks_nothing(tmp_path: Path) -> None:
    state = opened(tmp_path, log=WRAPPER)
    assert (state.crash.verdict, state.diagnosis.memory) == ("oom", "unknown")
    assert state.diagnosis.path[0].answer == "unknown"
    assert not state.plan.selected()


@pytest.mark.parametrize("memory", ["gpu", "host"])
def test_the_users_word_on_the_memory_decides_which_it_was(tmp_path: Path, memory: str) -> None:
    assert opened(tmp_path, log=WRAPPER, memory=memory).diagnosis.memory == memory


@pytest.mark.parametrize(
    ("libraries", "framework"),
    [
        (("llamafactory=0.8.3", "trl=0.9.6", "transformers=4.42.0"), "llamafactory"),
        (("verl=0.4.1", "vllm=0.8.4"), "verl"),
        (("trl=0.9.6", "transformers=4.42.0"), "unknown"),
        (("verl=0.4.1", "openrlhf=0.8.0"), "unknown"),
    ],
)
def test_the_version_told_of_a_framework_s_own_package_names_it(
    tmp_path: Path, libraries: tuple[str, ...], framework: str
) -> None:
    (tmp_path / "train.log").write_text(LINE)
    asked = SessionRequest(logs=(tmp_path / "train.log",), libraries=libraries)
    assert open_session(asked).run.framework == framework
    beside_an_answer = open_session(SessionRequest(logs=asked.logs, libraries=libraries, answers={"framework": "roll"}))
    assert beside_an_answer.run.framework == "roll"


def test_a_pasted_file_without_imports_is_of_the_framework_whose_version_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("GRPOTrainer(model=model, args=GRPOConfig(num_generations=8))\n")
    asked = SessionRequest(script=tmp_path / "train.py", answers={"memory": "gpu"}, libraries=("trl=0.22.2",))
    assert open_session(asked).run.framework == "trl"
    beside = SessionRequest(script=asked.script, answers=asked.answers, libraries=("trl=0.22.2", "unsloth=2025.11.2"))
    assert open_session(beside).run.framework == "unsloth"


@each(
    ("said", "read"),
    [("verl", "easyr1"), ("easyr1", "easyr1"), ("openrlhf", "openrlhf")],
)
def test_a_forks_own_lines_stay_where_the_user_names_the_package_they_share(said: str, read: str) -> None:
    frames = (
        'Traceback (most recent call last):\n  File "/w/verl/trainer/main.py", line 104, in run\n    trainer.fit()\n'
    )
    with TemporaryDirectory() as folder:
        assert opened(Path(folder), log=frames + LINE, framework=said).run.framework == read


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("llama-factory", "llamafactory"),
        ("LLaMA Factory", "llamafactory"),
        ("NeMo_RL", "nemo-rl"),
        ("megatron", "other"),
    ],
)
def test_a_framework_may_be_spelled_as_people_do(tmp_path: Path, given: str, answer: str) -> None:
    assert opened(tmp_path, framework=given).answers["framework"] == answer


def test_a_slip_of_the_pen_is_asked_again(tmp_path: Path) -> None:
    with pytest.raises(AnswerError, match="llamafactory"):
        opened(tmp_path, framework="lamafactory")
