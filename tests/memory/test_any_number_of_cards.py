"""Where nothing shards, every card holds a whole copy, so the number of cards need not be known."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.machine.inventory import Machine
from advisor.session import SessionRequest, State, open_session

SFT = """\
model_name_or_path: meta-llama/Llama-3.1-70B
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
dataset: alpaca_en_demo
template: llama3
cutoff_len: 2048
output_dir: saves/lora
per_device_train_batch_size: 1
gradient_checkpointing: true
bf16: true
"""


@pytest.fixture(autouse=True)
def no_card_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine of the tests has."""
    monkeypatch.setattr("advisor.request.measure", lambda *_, **__: Machine())


def opened(folder: Path, more: str = "") -> State:
    script = folder / "run.yaml"
    script.write_text(SFT + more)
    return open_session(SessionRequest(script, answers={"memory": "gpu"}))


def test_a_copy_on_each_is_counted_for_one_card_and_not_for_a_node(tmp_path: Path) -> None:
    state = opened(tmp_path)
    peak = state.ledger.peak("gpu")
    assert peak is not None
    assert peak.expected > 130 * 2**30
    assert state.ledger.host == ()
    assert state.diagnosis.cause == "states-too-big"
    assert any("however many there are" in one for one in state.ledger.assumed)


def test_shares_of_an_unknown_number_are_not_counted(tmp_path: Path) -> None:
    state = opened(tmp_path, "deepspeed: examples/deepspeed/ds_z3_config.json\n")
    assert not state.ledger.gpu
