"""How far a run goes: every answer is put to the test by sizing the run with that value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor import run_file
from advisor.exits import Exit
from advisor.plan.sizes import _farthest
from tests.loops import each
from tests.stories.told import tell

VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 "
    "data.max_prompt_length=512 data.max_response_length=2048 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct "
    "actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 "
    "actor_rollout_ref.model.enable_gradient_checkpointing=True actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.4 actor_rollout_ref.rollout.n=8 "
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4 trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
)
BEYOND = ("over", "near")
"""Why the expected bytes leave less than the margin: surely, or perhaps."""
Sized = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def sized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Sized:
    """(script, gpus) → exit code and JSON of `estimate`; after the first answer it looks for no further sizes."""
    monkeypatch.chdir(tmp_path)

    def run(script: str, gpus: str) -> tuple[int, dict[str, Any]]:
        (tmp_path / "run.sh").write_text(script)
        words = ["estimate", "run.sh", "--gpus", gpus, "--host-ram", "1000GB", "--format", "json"]
        code, out, err = tell(words, capsys)
        assert code in (Exit.DONE, Exit.DOES_NOT_FIT), err
        monkeypatch.setattr(run_file, "sizes_of", lambda *_: None)
        return code, json.loads(out)

    return run


def with_value(key: str, value: int) -> str:
    return re.sub(rf"({re.escape(key)})=\d+", rf"\g<1>={value}", VERL)


@pytest.mark.parametrize("gpus", ["8xA100-40GB", "8xH100-80GB"])
def test_the_largest_value_fits_and_the_next_does_not(sized: Sized, gpus: str) -> None:
    _, answer = sized(VERL, gpus)
    reaches = {reach["knob"]: reach for reach in answer["sizes"]["largest"]}
    assert {"data.response_tokens", "actor.micro_batch", "rollout.samples_per_prompt"} <= set(reaches)
    for knob, factor, step in (("data.response_tokens", 1, 256), ("actor.micro_batch", 2, 0)):
        reach = reaches[knob]
        _, largest = sized(with_value(reach["key"], reach["most"]), gpus)
        _, beyond = sized(with_value(reach["key"], reach["most"] * factor + step), gpus)
        assert largest["fit"]["reason"] not in BEYOND
        assert beyond["fit"]["reason"] in BEYOND
        sums = beyond["memory"]["gpu"]["phases"]
        assert reach["stopped_by"] == {
            "memory": "gpu",
            "phase": max(sums, key=lambda phase: phase["expected_bytes"])["phase"],
        }


def test_the_smallest_card_holds_the_run_and_a_smaller_one_does_not(sized: Sized) -> None:
    _, answer = sized(VERL, "8xH100-80GB")
    assert sized(VERL, f"8x{answer['sizes']['smallest_card']['name']}")[0] == Exit.DONE
    assert sized(VERL, "8xA10-24GB")[0] == Exit.DOES_NOT_FIT


def test_a_run_no_single_setting_can_save_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "run.sh"
    script.write_text(VERL.replace("Qwen2.5-7B-Instruct", "Qwen2.5-72B-Instruct"))
    code, out, _ = tell(["estimate", str(script), "--gpus", "8xA100-40GB"], capsys)
    assert code == Exit.DOES_NOT_FIT
    assert "No single one of data.max_response_length" in out


def test_without_cards_there_is_no_answer_to_give(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "run.sh"
    script.write_text("python train.py --lr 1e-6\n")
    _, out, _ = tell(["estimate", str(script), "--format", "json"], capsys)
    assert json.loads(out)["sizes"] is None


@each("step", [1, 3, 7, 50])
def test_the_farthest_is_that_of_all_allowed_values_whatever_is_refused_between_them(step: int) -> None:
    values = range(1, 41)
    allowed = [value for value in values if value % step == 0]
    for most in range(42):
        holding = [value for value in allowed if value <= most]
        beyond = [value for value in allowed if value > most]
        found = _farthest(lambda value, most=most: value <= most, lambda value: value % step == 0, values)
        assert found == ((holding or [None])[-1], (beyond or [None])[0])
