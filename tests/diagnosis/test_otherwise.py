"""A run that fits by count and died all the same: the ways in which it would not fit are told with their sums."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session

SFT = """deepspeed --num_gpus=8 src/train.py --stage sft --do_train --finetuning_type full --bf16 \\
  --model_name_or_path Qwen/Qwen2.5-7B --cutoff_len 1024 --per_device_train_batch_size 1 {more}
"""
ZERO3 = "--deepspeed ds_z3_offload_config.json"


def died(folder: Path, more: str, **answers: str) -> State:
    script = folder / "run.sh"
    script.write_text(SFT.format(more=more))
    asked = SessionRequest(script=script, gpus="8xA100-80GB", answers={"memory": "gpu", **answers})
    return open_session(asked)


def ways(state: State) -> str:
    return " ".join(remark for remark in state.diagnosis.remarks if "What would fill" in remark)


def test_a_sharding_that_may_not_be_in_force_is_told_with_its_sum(tmp_path: Path) -> None:
    told = ways(died(tmp_path, ZERO3))
    size = float(told.split("not in force: ")[1].split(" GiB")[0])
    assert 7.6 * 16 / 1.0737 < size < 7.6 * 16 / 1.0737 * 1.15, told  # 16 bytes a parameter on each card, and a pass


def test_what_ran_for_steps_had_its_settings_in_force(tmp_path: Path) -> None:
    assert "not in force" not in ways(died(tmp_path, ZERO3, first_step="no"))


def test_rows_are_counted_at_their_cap_where_they_are_too_large_with_it(tmp_path: Path) -> None:
    state = died(tmp_path, f"{ZERO3} --enable_liger_kernel true --cutoff_len 180000", first_step="no")
    assert not ways(state)  # nothing else is needed
    assert "rows as long as their cap" in " ".join(state.ledger.assumed)


def test_what_does_not_fit_by_count_has_no_other_ways(tmp_path: Path) -> None:
    assert not ways(died(tmp_path, ""))


@pytest.mark.parametrize(("phase", "shown"), [({}, True), ({"phase": "actor_update"}, False)])
def test_the_phases_are_held_side_by_side_where_none_is_known(
    tmp_path: Path, phase: dict[str, str], shown: bool
) -> None:
    report = short_report(died(tmp_path, "--deepspeed ds_z3_config.json", **phase))
    assert ("Memory by phase" in report) is shown
