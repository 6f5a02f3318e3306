"""The short report prints the plan in its own order, and says nothing that its next line takes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.plan.plan import PlanStep
from advisor.report.short_report import short_report
from advisor.state import State
from tests.heavy import sampled
from tests.plan.test_short_plans import planned

BARE = "torch.OutOfMemoryError: CUDA out of memory. \n"
KILLED = "Killed\n"
FSDP2 = (
    "python3 -m verl.trainer.main_ppo data.train_batch_size=64 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B "
    "trainer.n_gpus_per_node=8 trainer.nnodes=1 actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.actor.strategy=fsdp2\n"
)


def change(state: State) -> str:
    """The section of changes on one line."""
    told = " ".join(short_report(state).split())
    return told.split(" Change ")[1].split(" It rests on ")[0].split(" If it fails again ")[0]


def printed(state: State) -> list[str]:
    """Ids of the steps in the order in which they are printed."""
    told = change(state)
    found = {step.id: told.find(f"{step.id})") for step in state.plan.steps}
    return sorted((name for name, at in found.items() if at >= 0), key=found.__getitem__)


@pytest.mark.parametrize(
    "answers", sampled([{}, {"phase": "weight_sync"}, {"phase": "actor_update"}, {"phase": "model_load"}], 2)
)
def test_the_order_on_paper_is_the_order_of_the_plan(tmp_path: Path, answers: dict[str, str]) -> None:
    state = planned(tmp_path, FSDP2, BARE, answers=answers)
    ranks = {step.id: step.rank for step in state.plan.steps}
    shown = [ranks[name] for name in printed(state)]
    assert shown
    assert shown == sorted(shown)


def test_what_stands_before_the_switched_on_steps_is_printed_before_them(tmp_path: Path) -> None:
    state = planned(tmp_path, FSDP2, BARE, answers={"phase": "weight_sync"})
    first, second, *rest = state.plan.steps
    steps = (first, replace(second, selected=True), *(replace(step, selected=False) for step in rest))
    steps = (replace(steps[0], selected=False), *steps[1:])
    told = change(state.with_plan(replace(state.plan, steps=steps)))
    assert told.index("First:") < told.index(f"{first.id})") < told.index(f"{second.id})")


def test_no_step_is_taken_back_by_the_sentence_above_it(tmp_path: Path) -> None:
    for number, gpus in enumerate(("8xA100-80GB", None)):
        folder = tmp_path / str(number)
        folder.mkdir()
        told = change(planned(folder, FSDP2, BARE, gpus=gpus))
        assert "Nothing is switched on" not in told
        assert "In this order" in told or "1. " in told


def test_a_step_that_overfills_the_other_place_is_not_offered_beside_one_that_does_not(tmp_path: Path) -> None:
    state = planned(tmp_path, FSDP2, BARE, answers={"phase": "weight_sync"})
    first, *rest = (replace(step, selected=False) for step in state.plan.steps)
    steps: tuple[PlanStep, ...] = (replace(first, spills=1 << 30), *rest)
    assert first.id not in printed(state.with_plan(replace(state.plan, steps=steps)))


def test_a_bare_kill_is_first_asked_who_killed(tmp_path: Path) -> None:
    state = planned(tmp_path, "", KILLED, gpus=None, answers={"ended": "killed"})
    assert printed(state)[0] == "ask-who-killed"
    assert "To settle it" not in short_report(state)  # it is said once
    assert all("Where the launch" not in step.title for step in state.plan.steps[:2])


def test_a_kill_that_the_log_proves_asks_for_no_witness(tmp_path: Path) -> None:
    log = (
        "(raylet) node_manager.cc:3100: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers "
        "crashed due to other reasons at node (ID: ab, IP: 10.0.0.1) over the last time period.\n"
    )
    assert all(step.id != "ask-who-killed" for step in planned(tmp_path, "", log, gpus=None).plan.steps)


def test_large_models_on_the_host_begin_with_their_whole_copies(tmp_path: Path) -> None:
    large = planned(tmp_path, "", "", gpus=None, model="70B", answers={"memory": "host"})
    whole = {"load-once", "load-once-switch", "shard-to-save", "checkpoint-in-parts", "no-optimizer-in-checkpoint"}
    assert {step.id for step in large.plan.steps[:2]} <= whole
