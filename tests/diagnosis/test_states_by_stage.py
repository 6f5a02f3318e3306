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


ONE_CARD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of \
79.14 GiB of which 1.00 GiB is free. Process 1 has 60.00 GiB memory in use.\n"


@pytest.mark.parametrize(
    ("gpus", "model", "first"),
    [
        ("1xH100-80GB", "Llama-3.1-8B", "cpu-optimizer"),  # 8.03e9 × 16 bytes = 119.7 GiB, 4 of them stay
        ("1xH100-80GB", "Qwen2.5-1.5B", ""),
        ("4xRTX-4090-24GB", "Qwen2.5-7B", "higher-zero-stage"),  # 28.4 GiB of 23.5, shared over all
        ("8xRTX-4090-24GB", "Qwen2.5-7B", "higher-zero-stage"),  # 14.2 shared, 113.5 in plain data parallelism
        ("2 nodes x 8 A100-80GB", "Llama-3.1-70B", ""),  # 65.7 GiB of 79.1; unshared not even the weights fit
        ("1xA100", "Qwen2.5-3B", ""),  # 46 GiB: there is an A100 that holds them
        ("1xRTX-4090-24GB", "Llama-3.1-8B-AWQ", ""),
    ],
)
def test_full_training_that_no_card_holds_leads_where_nothing_but_the_model_is_told(
    gpus: str, model: str, first: str
) -> None:
    state = open_session(SessionRequest(None, gpus=gpus, model=model, answers={"memory": "gpu"}))
    assert (state.diagnosis.cause == "states-too-big") is bool(first)
    steps = [step.id for step in state.plan.steps[:4]]
    assert not first or steps[0] == first
    assert first or "lower-actor-micro-batch" in steps


@pytest.mark.parametrize(("tried", "flat"), [("28.40", True), ("20.00", False)])
def test_a_request_as_large_as_all_parameters_is_no_pass(tmp_path: Path, tried: str, flat: bool) -> None:
    log = tmp_path / "crash.log"
    log.write_text(ONE_CARD.format(tried=tried))
    state = open_session(SessionRequest(None, logs=(log,), model="Qwen2.5-7B"))
    assert (state.diagnosis.cause == "states-too-big") is flat


def test_of_a_model_of_unknown_size_it_is_told_how_large_one_may_be() -> None:
    state = open_session(SessionRequest(None, gpus="1xH100-80GB", model="super-omni", answers={"memory": "gpu"}))
    assert any("5.31B" in one for one in state.diagnosis.remarks)  # 84.9e9 bytes ÷ 16


@pytest.mark.parametrize(
    ("ram", "model", "answers", "beyond"),
    [
        ("500GB", "Llama-3.1-70B", {}, True),  # 1051 GiB
        ("2TB", "Llama-3.1-70B", {}, False),
        ("64GB", "Llama-3.1-8B", {}, True),
        ("64GB", "Llama-3.1-8B", {"first_step": "no"}, False),  # it had room
    ],
)
def test_states_that_no_node_holds_lead_on_the_host_too(
    ram: str, model: str, answers: dict[str, str], beyond: bool
) -> None:
    asked = {"gpus": "8xRTX-4090-24GB", "host_ram": ram, "model": model, "answers": {"memory": "host", **answers}}
    state = open_session(SessionRequest(None, **asked))  # type: ignore[arg-type]
    assert ("more than the node's RAM" in state.diagnosis.title) is beyond
    assert (state.plan.steps[0].id == "lora-host") is beyond


def test_states_alone_above_the_card_come_before_a_larger_batch(tmp_path: Path) -> None:
    script = "torchrun --nproc_per_node=8 train.py --model_name_or_path qwen2.5-32-instruct --output_dir o "
    script += "--per_device_train_batch_size 4 --model_max_length 8192 --bf16 True --num_train_epochs 1\n"
    state = read(tmp_path, script, model="qwen2.5-32-instruct", gpus="8xH100-80GB")
    assert state.diagnosis.cause == "states-too-big"
    assert state.plan.steps[0].id == "higher-zero-stage"
