"""What few words are enough for: the driver's short message, a phase that was told, a `--gpus` that names no card."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session

CUT = 'Traceback (most recent call last):\n  File "/srv/mine/train.py", line 4, in <module>\n    main()\n'
NOTEBOOK = """File ~/lib/site-packages/mine/off.py:9, in Off.forward(ctx, x)
----> 9     y = x.to("cpu", non_blocking=True)
     10     return y

RuntimeError: CUDA error: out of memory
"""


def seen(folder: Path, log: str, gpus: str | None = None, **answers: str) -> State:
    (folder / "log").write_text(log)
    return open_session(SessionRequest(logs=(folder / "log",), gpus=gpus, answers=answers))


def test_the_drivers_short_message_is_a_cause_of_its_own(tmp_path: Path) -> None:
    state = seen(tmp_path, "step 3\ncudaErrorMemoryAllocation: out of memory\n")
    assert state.diagnosis.cause == "driver-refused"
    assert {"look-at-card", "unpinned-loaders"} <= {step.id for step in state.plan.steps[:3]}
    assert "The card ran full" not in short_report(state)
    tuned = seen(tmp_path, "RuntimeError: CUDA error: out of memory\n", "4xL40S-48GB", framework="llamafactory")
    assert "higher-zero-stage" not in {step.id for step in tuned.plan.steps[:4]}
    with_sizes = "CUDA error: out of memory\nCUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert seen(tmp_path, with_sizes).diagnosis.cause != "driver-refused"
    assert seen(tmp_path, NOTEBOOK).diagnosis.cause == "pinned-memory"


def test_a_cut_traceback_with_a_told_phase_has_steps_on_a_condition(tmp_path: Path) -> None:
    told = {phase: seen(tmp_path, CUT, framework="trl", phase=phase) for phase in ("actor_update", "checkpoint")}
    assert {phase: bool(state.plan.steps) for phase, state in told.items()} == dict.fromkeys(told, True)
    assert all(step.only_if for state in told.values() for step in state.plan.steps[1:])
    every = (*told.values(), seen(tmp_path, CUT, framework="trl"))
    assert {state.plan.steps[0].id for state in every} == {"ask-the-last-line"}


def test_words_that_name_no_card_are_told_in_a_note_and_refused_where_the_card_is_needed(tmp_path: Path) -> None:
    assert "names no card" in short_report(seen(tmp_path, "CUDA out of memory\n", gpus="some cloud"))
    with pytest.raises(ValueError, match="some cloud"):
        open_session(SessionRequest(logs=(tmp_path / "log",), gpus="some cloud", cards_named=True))


def test_no_space_while_a_checkpoint_is_written_is_a_disk(tmp_path: Path) -> None:
    state = seen(tmp_path, "OSError: [Errno 28] No space left on device\n", phase="checkpoint")
    assert state.diagnosis.cause == "disk-full"
