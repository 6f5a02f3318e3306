"""The order of every plan: what is switched on first, a key once, one step of each kind, nothing given up early."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from advisor.plan import solve
from advisor.plan.order import LOOK, TRY, Behind, Grounds, clash
from advisor.plan.plan import PlanStep
from advisor.session import SessionRequest, open_session
from tests.plan.planned import opened

SHOWN = 4
Arranged = tuple[list[PlanStep], Grounds]
BARE = "torch.OutOfMemoryError: CUDA out of memory.\n"
LAUNCHES = {
    "no dialect": ("python train.py --model_name x\n", {}),
    "versions": ("python train.py\n", {"ever_ran": "versions", "framework": "transformers"}),
    "grows": ("python train.py\n", {"course": "grows", "first_step": "no"}),
    "log-probs": ("python3 -m verl.trainer.main_ppo data.train_batch_size=8\n", {"phase": "log_prob"}),
    "evaluation": ("python train.py\n", {"phase": "validation", "framework": "transformers"}),
    "waking": ("python3 -m verl.trainer.main_ppo data.train_batch_size=8\n", {"phase": "weight_sync"}),
    "host": ("python train.py\n", {"memory": "host"}),
}
"""Name → a launch, and what its user answers."""


@pytest.fixture(params=[*LAUNCHES, 0])
def arranged(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Arranged:
    """The steps of a plan in order, with what decided it."""
    made: list[Arranged] = []
    original = solve.arranged

    def listening(steps: Sequence[PlanStep], why: Grounds) -> list[PlanStep]:
        made.append((original(steps, why), why))
        return made[-1][0]

    monkeypatch.setattr(solve, "arranged", listening)
    if isinstance(request.param, int):
        state = opened(request.param, tmp_path)
    else:
        script, answers = LAUNCHES[request.param]
        (tmp_path / "run.sh").write_text(script)
        (tmp_path / "log").write_text("" if answers.get("memory") == "host" else BARE)
        given = SessionRequest(tmp_path / "run.sh", logs=(tmp_path / "log",), gpus="8xA100-80GB", answers=answers)
        state = open_session(given)
    assert state.plan.steps  # made when it is first read
    return made[-1]


def test_the_order_of_a_plan(arranged: Arranged) -> None:
    steps, why = arranged
    places = [why.place(step, 0) for step in steps]
    stages = [place.stage for place in places]
    assert stages == sorted(stages), "what is looked at, what is switched on, the rest"
    assert all(step.selected <= (place.stage < TRY) for step, place in zip(steps, places, strict=True))
    moved = [why.keys(step) for step in steps]
    assert not any(clash(keys, taken) for at, keys in enumerate(moved) for taken in moved[:at]), "a key is told once"
    tried = [(step, place) for step, place in zip(steps, places, strict=True) if place.stage == TRY]
    levers = [why.lever(step) for step, _ in tried]
    ordinary = [why.lever(step) for step, place in tried if place.behind == Behind.NOT]
    head = levers[:SHOWN]
    assert len(head) == len(set(head)) or set(ordinary) <= set(head), "one of each kind, where there are others"
    assert all(place.behind < Behind.ELSEWHERE for _, place in tried[: min(SHOWN, len(ordinary))]), (
        "no step of another phase"
    )
    for at, (step, place) in enumerate(tried):
        cheaper = [one for one, other in tried[at + 1 :] if why.lever(one) == why.lever(step) and other < place]
        assert not [one for one in cheaper if one.results == "unchanged" and step.results == "changed"], step.id

    assert len(steps) - stages.count(LOOK) > 1 or not why.cause.room_helps, "no answer of one step"
