"""Where the failing frame belongs to several phases, the likeliest is a guess; the user may know better."""

from __future__ import annotations

import pytest

from advisor import session
from advisor.diagnosis.deciding import by_likelihood
from advisor.diagnosis.diagnosis import UNKNOWN, QuestionStep
from advisor.memory.amount import in_bytes
from advisor.memory.cells import Cell, Ledger, PhaseSum
from advisor.report.json_report import diagnose_json
from advisor.report.text_report import text_report
from advisor.session import SessionRequest, State
from advisor.tui.proof import headline
from advisor.units import GIB
from advisor.words import Phase
from tests.loops import each

SCRIPT = (
    "accelerate launch --num_processes 2 grpo.py --model_name_or_path Qwen/Qwen3-4B --per_device_train_batch_size 16 "
    "--num_generations 16 --max_completion_length 6144 --use_vllm true --vllm_mode colocate\n"
)
LOG = (
    "Traceback (most recent call last):\n"
    '  File "/x/trl/trainer/grpo_trainer.py", line 1090, in _get_per_token_logps_and_entropies\n'
    "    logits = model(**model_inputs).logits\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 55.64 GiB. GPU 1 has a total capacity of 79.11 GiB "
    "of which 20.03 GiB is free. Including non-PyTorch memory, this process has 59.06 GiB memory in use. Of the "
    "allocated memory 56.20 GiB is allocated by PyTorch, and 1.40 GiB is reserved by PyTorch but unallocated.\n"
)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> State:
    folder = tmp_path_factory.mktemp("run")
    (folder / "run.sh").write_text(SCRIPT)
    (folder / "train.log").write_text(LOG)
    return session.open_session(
        SessionRequest(script=folder / "run.sh", logs=(folder / "train.log",), gpus="2xH100-80GB")
    )


def phase_step(state: State) -> QuestionStep:
    return next(step for step in state.diagnosis.path if step.question == "phase")


def test_the_likeliest_phase_is_a_guess_with_its_reason_and_the_other_beside_it(state: State) -> None:
    step = phase_step(state)
    assert (step.answer, step.guess) == ("actor_update", True)
    assert [choice.id for choice in step.choices] == ["actor_update", "log_prob"]
    assert "its caller is not shown" in step.because
    assert "Most likely the actor update" in step.because
    assert "The cause is the same either way" in step.because
    assert state.diagnosis.basis == "estimated"


def test_nothing_claims_the_guess(state: State) -> None:
    told = diagnose_json(state)
    assert told["crash"]["phase"] == told["diagnosis"]["phase"] == UNKNOWN
    assert told["crash"]["phase_among"] == ["actor_update", "log_prob"]
    assert state.situation is not None
    assert state.situation.phase == "unknown"
    either = "during the actor update or while computing log-probabilities"
    assert either in headline(state.crash)
    assert either in " ".join(text_report(state).split())
    assert "a guess: Frame grpo_trainer.py" in " ".join(text_report(state).split())


def test_what_neither_phase_leads_to_is_less_likely_for_the_frame(state: State) -> None:
    ruled = next(one for one in state.diagnosis.less_likely if one.cause == "checkpoint-gather")
    assert "or while computing log-probabilities" in ruled.because


def test_the_users_answer_is_the_phase(state: State) -> None:
    told = session.answer(state, "phase", "log_prob")
    step = phase_step(told)
    assert (step.answer, step.source, step.guess) == ("log_prob", "user", False)
    assert [choice.id for choice in step.choices] == ["actor_update", "log_prob"]
    assert told.diagnosis.phase == "log_prob"
    assert phase_step(session.answer(told, "phase", None)).guess


def test_i_do_not_know_leaves_it_open(state: State) -> None:
    told = session.answer(state, "phase", UNKNOWN)
    assert (phase_step(told).answer, phase_step(told).guess) == (UNKNOWN, False)
    assert "phase" in told.diagnosis.open_questions


def counted(phase: Phase, size: int) -> PhaseSum:
    return PhaseSum(phase, "gpu", (Cell("logits", in_bytes("", size * GIB)),))


def ledger(log_prob: int, update: int) -> Ledger:
    return Ledger(80 * GIB, None, (counted("log_prob", log_prob), counted("actor_update", update)), ())


@each(
    ("log_prob", "update", "likeliest"),
    [(120, 60, "log_prob"), (60, 120, "actor_update"), (120, 130, "actor_update"), (40, 50, "actor_update")],
)
def test_the_phase_that_alone_does_not_fit_is_the_likeliest(log_prob: int, update: int, likeliest: str) -> None:
    order, reason = by_likelihood(("actor_update", "log_prob"), ledger(log_prob, update))
    assert order[0] == likeliest
    assert set(order) == {"actor_update", "log_prob"}
    assert ("it alone is above" in reason) == ((log_prob > 80) != (update > 80))
