"""The size of a request is that of the logits only where no other tensor that may have been made has it, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.diagnosis.ledger_facts import ledger_facts
from advisor.memory.cells import Match
from advisor.session import SessionRequest, open_session
from advisor.words import Phase

LOGITS = Match("logits", 1 << 30, "bf16", "", "actor_update", True, of_logits=True)
WEIGHT = Match("embedding weight", 1 << 30, "fp16", "", "model_load", True)


@pytest.mark.parametrize(
    ("matches", "phase", "said"),
    [
        ((LOGITS,), "unknown", "logits"),
        ((LOGITS, WEIGHT), "unknown", "tensor"),
        ((LOGITS, WEIGHT), "actor_update", "logits"),
        ((LOGITS, WEIGHT), "model_load", "tensor"),
        ((WEIGHT,), "actor_update", "tensor"),
    ],
)
def test_what_has_the_size_stays_a_candidate(
    tmp_path: Path, matches: tuple[Match, ...], phase: Phase, said: str
) -> None:
    log = tmp_path / "run.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.\n")
    state = open_session(SessionRequest(None, logs=(log,)))
    facts = ledger_facts(state.ledger, state.run, replace(state.crash, phase=phase), matches)
    assert facts["attribution"].value == said


@pytest.mark.parametrize(("allocated", "phase"), [("26.33", "model_load"), ("20.00", "unknown")])
def test_a_sum_that_is_the_whole_model_is_its_loading(tmp_path: Path, allocated: str, phase: Phase) -> None:
    """Qwen2.5-7B has 28.37 GiB in fp32, its embedding 2.03 GiB."""
    log = tmp_path / "run.log"
    log.write_text(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.03 GiB (GPU 0; 31.74 GiB total capacity; "
        f"{allocated} GiB already allocated; 1.20 GiB free; {allocated} GiB reserved in total by PyTorch)\n"
    )
    state = open_session(SessionRequest(None, logs=(log,), model="Qwen/Qwen2.5-7B-Instruct"))
    assert state.diagnosis.phase == phase
    assert (state.plan.steps[0].id in ("load-16-bits", "load-in-fp16")) is (phase == "model_load")
