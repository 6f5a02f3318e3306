"""Lengths of the data: what is expected of them, what they could be, and who says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.cli import main
from advisor.memory.cells import PhaseSum
from tests.measured.published import ledger_of

SFT = {
    "tuner_type": "full",
    "torch_dtype": "bfloat16",
    "per_device_train_batch_size": 4,
    "max_length": 8192,
    "deepspeed": "zero3",
    "use_liger_kernel": False,
}


def update(**knobs: object) -> PhaseSum:
    run = {"framework": "ms-swift", "program": "swift sft", "model": "Qwen/Qwen2.5-7B", "gpus": "8xA100-80GB"}
    found = ledger_of({**run, "settings": SFT, "knobs": knobs}).phase("gpu", "actor_update")
    assert found is not None
    return found


def tokens_of(phase: PhaseSum) -> tuple[int, int, int]:
    assert phase.rows is not None
    return phase.rows.low, phase.rows.expected, phase.rows.high


def test_rows_of_given_answers_are_expected_below_their_cap_and_may_reach_it() -> None:
    assert tokens_of(update()) == (819, 4506, 8192)


def test_the_interval_holds_what_the_data_may_be_in_full() -> None:
    found = update()
    assert found.low <= found.by_data[0] < 0.7 * found.expected
    assert found.high >= found.by_data[1] > 1.05 * found.expected


def test_the_formulas_own_error_is_bounded_apart_from_the_data() -> None:
    capped = update(**{"data.longest_row": "cap"})
    assert capped.rows is None
    assert 0.89 < capped.low / capped.expected < 0.93
    assert 1.14 < capped.high / capped.expected < 1.31


def test_what_moves_a_cell_most_is_named() -> None:
    found = update()
    widest = max(found.cells, key=lambda each: each.by_data[1] - each.by_data[0])
    assert widest.owner == "logits"
    assert "the lengths of the rows" in str(widest.amount.as_tree())


def test_a_longest_row_that_is_told_is_used_and_at_the_cap_every_row_is_as_long() -> None:
    told = tokens_of(update(**{"data.longest_row": 600}))
    assert told == (480, 600, 600)
    assert update(**{"data.longest_row": 600}).expected < update().expected
    assert update(**{"data.longest_row": "cap"}).of("logits") == update().by_data[1] - sum(
        each.by_data[1] for each in update().cells if each.owner != "logits"
    )


SCRIPT = """swift sft --model Qwen/Qwen2.5-7B --tuner_type full --torch_dtype bfloat16 \\
    --per_device_train_batch_size 8 --max_length 8192 --deepspeed zero3 --packing false
"""
BOX = ["--gpus", "8xA100-80GB", "--host-ram", "1000GB"]


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.sh"
    path.write_text("NPROC_PER_NODE=8 " + SCRIPT)
    return str(path)


def test_a_run_that_short_rows_let_fit_may_not_fit_and_says_up_to_where(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", script, *BOX]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "It may not fit: the training step fits while the rows of a pass average below" in said
    assert "at the cap it takes" in said
    assert main(["estimate", script, *BOX, "--strict"]) == 3


def test_a_run_whose_lower_end_does_not_fit_surely_does_not(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", script, *BOX, "--max-row", "cap"]) == 3
    assert main(["estimate", script, *BOX, "--max-row", "500"]) == 0
    assert main(["estimate", script, *BOX, "--max-row", "500", "--strict"]) == 0


def test_answers_of_a_policy_may_be_a_twentieth_of_a_cap_made_for_what_training_comes_to() -> None:
    """DAPO's answers begin near 1,000 tokens of a cap of 20,480: one row at the cap, the others far below it."""
    rollout = "actor_rollout_ref.rollout."
    settings = {
        "data.max_prompt_length": 1024,
        "data.max_response_length": 19456,
        "actor_rollout_ref.model.use_remove_padding": True,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 16,
        f"{rollout}name": "vllm",
        "trainer.n_gpus_per_node": 8,
    }
    run = {"framework": "verl", "model": "Qwen/Qwen2.5-7B", "gpus": "8xH100-80GB", "settings": settings}
    found = ledger_of(run).phase("gpu", "actor_update")
    assert found is not None
    assert found.rows is not None
    assert found.rows.low <= 1500 < found.rows.expected
    assert found.rows.high == 20480


def test_a_cap_that_makes_room_for_an_image_is_not_filled_with_text() -> None:
    """1,003,520 pixels are 1,280 tokens; beside them the longest row has what it has below the usual cap of 2,048."""
    run = {"framework": "ms-swift", "program": "swift sft", "gpus": "4xA100-80GB"}
    settings = {**SFT, "per_device_train_batch_size": 1}

    def longest(model: str, **knobs: object) -> int:
        found = ledger_of({**run, "model": model, "settings": settings, "knobs": knobs}).phase("gpu", "actor_update")
        assert found is not None
        return tokens_of(found)[1]

    bounded = {"data.max_pixels": 1_003_520}
    assert longest("Qwen/Qwen2.5-VL-7B-Instruct", **bounded) == round(1280 + 0.55 * 2048)
    assert longest("Qwen/Qwen2.5-VL-7B-Instruct") == longest("Qwen/Qwen2.5-7B-Instruct", **bounded) == 4506


def test_a_pass_of_a_budget_is_as_full_as_shorter_rows_make_it_where_one_row_may_exceed_it() -> None:
    run = {"framework": "openrlhf", "program": "openrlhf.cli.train_ppo_ray", "model": "Qwen/Qwen3-4B", "gpus": "8xH100"}
    knobs = {"actor.dynamic_batch": True, "actor.tokens_per_gpu": 16192, "data.total_tokens": 74240}
    knobs |= {"actor.remove_padding": True, "data.response_tokens": 64000}
    found = ledger_of({**run, "knobs": knobs}).phase("gpu", "actor_update")
    assert found is not None
    low, expected, _ = tokens_of(found)
    assert (expected, low < 16192) == (74240, True)
