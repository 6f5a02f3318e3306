"""Where nothing tells the framework's version it is asked, and what the user says is what the plan is made for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor import session
from advisor.diagnosis.diagnosis import UNKNOWN
from advisor.diagnosis.tree import AnswerError
from advisor.session import SessionRequest, State

VERL = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=8 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4\n"
)
OLD = VERL.strip() + " actor_rollout_ref.actor.fsdp_config.grad_offload=True"
Open = Callable[..., State]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def read(script: str, *libraries: str, log: str = "") -> State:
        (tmp_path / "run.sh").write_text(script)
        (tmp_path / "train.log").write_text(log)
        logs = (tmp_path / "train.log",) if log else ()
        asked = SessionRequest(
            script=tmp_path / "run.sh", logs=logs, gpus="8xA100-80GB", libraries=libraries, planned=False
        )
        return session.open_session(asked)

    return read


def asked_of(state: State) -> list[str]:
    return [step.question for step in state.diagnosis.path]


def test_the_version_is_asked_where_nothing_tells_it(opened: Open) -> None:
    state = opened(VERL)
    step = next(step for step in state.diagnosis.path if step.question == "version")
    assert (step.answer, step.source) == (UNKNOWN, "unknown")
    assert [choice.id for choice in step.choices][:2] == ["v0.9.1", "v0.9"]
    assert "pip show verl" in step.if_unknown
    assert "version" in state.diagnosis.open_questions


@pytest.mark.parametrize(
    ("script", "libraries"),
    [(VERL, ("verl=0.5.0",)), (OLD, ()), (VERL, ("vllm=0.12.0",))],
    ids=["given", "keys", "vllm"],
)
def test_it_is_not_asked_where_something_tells_it(opened: Open, script: str, libraries: tuple[str, ...]) -> None:
    assert "version" not in asked_of(opened(script, *libraries))


def test_nobody_is_asked_where_nothing_is_short_of_memory(opened: Open) -> None:
    log = "Traceback (most recent call last):\nRuntimeError: CUDA error: an illegal memory access was encountered\n"
    assert "version" not in asked_of(opened(VERL, log=log))


def test_the_answer_is_the_era_and_can_be_taken_back(opened: Open) -> None:
    state = session.answer(opened(VERL), "version", "v0.7")
    assert state.run.era == "v0.7"
    assert not [note for note in state.run.notes if "is assumed" in note]
    step = next(step for step in state.diagnosis.path if step.question == "version")
    assert (step.answer, step.source) == ("v0.7", "user")
    assert session.answer(state, "version", None).run.era == "v0.4"


def test_a_version_that_the_dialect_does_not_have_is_refused(opened: Open) -> None:
    with pytest.raises(AnswerError, match=r"version takes v0\.9\.1, .* or unknown, not 'v9'"):
        session.answer(opened(VERL), "version", "v9")
