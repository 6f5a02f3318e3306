"""verl's SFT trainers: told from its RL, with the keys that each of them reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.json_report import run_json
from advisor.session import SessionRequest, State, open_session

TORCHRUN = "torchrun --standalone --nnodes=1 --nproc_per_node=4 -m"
NEW = f"{TORCHRUN} verl.trainer.sft_trainer model.path=Qwen/Qwen2.5-7B-Instruct data.max_length=4096"
OLD = f"{TORCHRUN} verl.trainer.fsdp_sft_trainer model.partial_pretrain=Qwen/Qwen2.5-7B-Instruct data.max_length=4096"
RAY = (
    "python3 -m verl.trainer.sft_trainer_ray model.path=Qwen/Qwen2.5-7B-Instruct data.max_length=4096 "
    "trainer.n_gpus_per_node=4"
)


def read(command: str, version: str, folder: Path) -> State:
    script = folder / "sft.sh"
    script.write_text(command + "\n")
    asked = SessionRequest(script=script, gpus="8xA100-80GB", host_ram="500GB", libraries=(f"verl={version}",))
    return open_session(asked)


@pytest.mark.parametrize(("command", "version"), [(NEW, "0.9.0"), (NEW, "0.7.1"), (OLD, "0.5.0"), (RAY, "0.8.0")])
def test_an_sft_run_generates_nothing_and_trains_on_the_cards_it_counts(
    command: str, version: str, tmp_path: Path
) -> None:
    state = read(command, version, tmp_path)
    assert (state.run.framework, state.run.algorithm, state.run.topology.actor_gpus) == ("verl-sft", "sft", 4)
    assert state.run.model_name == "Qwen/Qwen2.5-7B-Instruct"
    assert state.run.value("data.total_tokens") == 4096
    assert "rollout_generate" not in {each.phase for each in state.ledger.gpu}
    assert not state.ledger.missing


def test_each_trainer_reads_its_own_keys(tmp_path: Path) -> None:
    new = read(f"{NEW} engine.ulysses_sequence_parallel_size=2 ulysses_sequence_parallel_size=4", "0.9.0", tmp_path)
    old = read(f"{OLD} ulysses_sequence_parallel_size=4 use_remove_padding=True", "0.5.0", tmp_path)
    assert (new.run.value("actor.sequence_parallel"), old.run.value("actor.sequence_parallel")) == (2, 4)
    assert new.run.value("actor.tokens_per_gpu") == 8192
    assert old.run.value("actor.tokens_per_gpu") is None


def test_an_engine_that_nobody_has_read_is_not_predicted(tmp_path: Path) -> None:
    assert any("not known here" in one for one in read(f"{NEW} engine=veomni", "0.9.0", tmp_path).ledger.missing)
    assert not read(f"{NEW} engine=fsdp", "0.9.0", tmp_path).ledger.missing


def test_it_is_a_program_of_verl_to_whoever_asks(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text("torchrun --nproc_per_node 8 -m verl.trainer.sft_trainer model.path=Qwen/Qwen2.5-7B\n")
    state = open_session(SessionRequest(script, answers={"framework": "verl", "memory": "gpu"}))
    assert run_json(state.run)["framework"] == "verl"
    step = next(step for step in state.diagnosis.path if step.question == "framework")
    assert (step.answer, step.suggested) == ("verl", "")
