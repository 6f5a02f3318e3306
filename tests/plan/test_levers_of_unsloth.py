"""What is proposed to a run of unsloth and of axolotl's reward model: their own keys, and none without effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session
from advisor.state import State

SCRIPT = """\
from unsloth import FastLanguageModel
from trl import {method}Trainer, {method}Config
model, tok = FastLanguageModel.from_pretrained("Qwen/Qwen2.5-7B-Instruct", max_seq_length=8192, load_in_4bit={four})
model = FastLanguageModel.get_peft_model(model, r=16, target_modules=["q_proj", "v_proj"])
trainer = {method}Trainer(model=model, args={method}Config(per_device_train_batch_size=16, {lengths}))
trainer.train()
"""


def _opened(folder: Path, method: str, four: bool = False) -> State:
    lengths = "num_generations=8, max_completion_length=4096" if method == "GRPO" else "max_length=8192"
    script = folder / "train.py"
    script.write_text(SCRIPT.format(method=method, four=four, lengths=lengths))
    return open_session(SessionRequest(script, gpus="1xA100-40GB", host_ram="200GB"))


@pytest.mark.parametrize("method", ["SFT", "DPO", "KTO", "Reward", "GRPO"])
def test_shorter_rows_and_four_bits_are_proposed_by_unsloths_own_keys(tmp_path: Path, method: str) -> None:
    session = _opened(tmp_path, method)
    assert session.plan is not None
    keys = {change.key for step in session.plan.steps for change in step.changes}
    assert {"per_device_train_batch_size", "from_pretrained.load_in_4bit"} <= keys
    assert ("max_completion_length" if method == "GRPO" else "max_length") in keys


def test_the_length_of_the_trainer_counts_where_the_model_was_loaded_for_one_too(tmp_path: Path) -> None:
    assert _opened(tmp_path, "SFT").run.knobs["data.total_tokens"].value == 8192


def test_a_base_in_four_bits_takes_less_than_one_in_sixteen(tmp_path: Path) -> None:
    # unsloth_zoo 2026.10.9 training_utils.py:404-450: norms and tables stay as loaded, only adapters are cast to fp32
    peaks = [_opened(tmp_path, "SFT", four).ledger.crowded("gpu") for four in (False, True)]
    whole, packed = (cell.expected for cell in peaks if cell is not None)
    assert packed < whole


def test_a_loss_of_tokens_is_no_lever_of_a_reward_model(tmp_path: Path) -> None:
    script = tmp_path / "rm.yaml"
    script.write_text(
        "base_model: Qwen/Qwen2.5-7B-Instruct\nsequence_len: 8192\nmicro_batch_size: 8\nlearning_rate: 0.0002\n"
        "reward_model: true\nbf16: true\n"
    )
    session = open_session(SessionRequest(script, gpus="8xH100-80GB", host_ram="1500GB"))
    assert session.plan is not None
    keys = {change.key for step in session.plan.steps for change in step.changes}
    assert keys
    assert not keys & {"plugins", "cut_cross_entropy", "liger_fused_linear_cross_entropy"}
