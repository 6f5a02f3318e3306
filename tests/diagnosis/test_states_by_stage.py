"""What full training holds for each parameter is counted by its sharding alone, also where no dialect is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

LAUNCH = "accelerate launch --config_file configs/{file} --num_processes 8 own/train.py --config recipes/{config}\n"


def read(folder: Path, script: str, name: str = "run.sh", **asked: object) -> State:
    file = folder / name
    file.write_text(script)
    given: dict[str, object] = {"gpus": "8xA100-80GB", "model": "25B", "answers": {"memory": "gpu"}, **asked}
    return open_session(SessionRequest(file, **given))  # type: ignore[arg-type]


def share(state: State) -> object:
    assert state.situation is not None
    fact = state.situation.facts.get("states.least_share")
    return None if fact is None else fact.value


@pytest.mark.parametrize(
    ("file", "per_parameter"),
    [("zero1.yaml", 2 + 2 + 12 / 8), ("zero2.yaml", 2 + 14 / 8), ("zero3.yaml", 16 / 8), ("zero3_offload.yaml", None)],
)
def test_the_stage_that_only_stands_in_a_files_name_counts(
    tmp_path: Path, file: str, per_parameter: float | None
) -> None:
    found = share(read(tmp_path, LAUNCH.format(file=file, config="run.yaml")))
    expected = None if per_parameter is None else 25e9 * per_parameter / (79.15 * 2**30)
    assert found == (None if expected is None else pytest.approx(expected, rel=0.01))


def test_states_that_a_higher_stage_would_share_are_the_cause(tmp_path: Path) -> None:
    state = read(tmp_path, LAUNCH.format(file="zero2.yaml", config="run.yaml"))
    assert state.diagnosis.cause == "states-too-big"
    assert "higher-zero-stage" in [step.id for step in state.plan.steps[:1]]


@pytest.mark.parametrize(
    ("more", "known"),
    [
        ("per_device_train_batch_size: 16\nbeta: 0.1\n", False),
        ("finetuning: full\nper_device_train_batch_size: 16\n", True),
        ("lora_rank: 16\nfinetuning: full\n", False),
    ],
)
def test_of_a_part_of_a_launch_something_has_to_say_that_it_is_full_training(
    tmp_path: Path, more: str, known: bool
) -> None:
    """Whatever the number of cards: adapters or a packed base may have been left out of what was quoted."""
    for gpus in ("1xA100-40GB", "2xA100-40GB"):
        state = read(tmp_path, more, "own.yaml", gpus=gpus, model="Llama-2-70B")
        assert (share(state) is not None) is known, gpus


def test_offload_that_only_a_files_name_tells_is_held_against_the_ram(tmp_path: Path) -> None:
    script = "deepspeed: examples/ds_z3_offload_config.json\nfinetuning: full\n"
    log = tmp_path / "crash.log"
    log.write_text("exits with return code = -9\n")
    asked = {"logs": (log,), "gpus": None, "model": "9B", "host_ram": "180GB"}
    state = read(tmp_path, script, "own.yaml", answers={"seen": "killed", "memory": "host"}, **asked)
    assert state.diagnosis.cause == "offload-fills-host"
    assert state.situation is not None
    assert state.situation.facts["host.offload_share"].value == pytest.approx(16 * 9e9 / (180 * 2**30), rel=0.01)


@pytest.mark.parametrize("ram", [None, "720GB"])
def test_whole_copies_are_told_where_nothing_says_what_lay_in_the_ram(tmp_path: Path, ram: str | None) -> None:
    state = read(tmp_path, "echo start\n", model="70B", host_ram=ram, answers={"memory": "host"})
    told = [one for one in state.diagnosis.remarks if one.startswith("A whole copy")]
    assert len(told) == 1
    assert "130.39 GiB" in told[0]
    assert "8 ranks" in told[0]
    assert ("720" in told[0]) is (ram is not None)
