"""What a launch leaves to the outside stays unknown: it is neither guessed nor taken for a default."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.machine.inventory import Gpu, Machine
from advisor.memory.inputs import missing_inputs
from advisor.run.build import RunInputs, build_run
from advisor.run.dialect import Recognised, recognise
from advisor.run.run import Run
from advisor.run.seen_launch import no_place
from advisor.script.launch import Launch
from advisor.script.reader import read_script
from advisor.units import GIB

K = load_knowledge()
VERL = "python3 -m verl.trainer.main_ppo data.train_batch_size=256 actor_rollout_ref.rollout.n=8"
EASYR1 = "python3 -m verl.trainer.main config=examples/config.yaml"
TRL = "accelerate launch train_grpo.py --model_name_or_path Qwen/Qwen2.5-7B --num_generations 8"
UPSTREAM_CONFIG = "worker:\n  actor:\n    offload:\n      offload_optimizer: true\n"


def gpus(count: int, nodes: int | None = None) -> Machine:
    sources = {"gpus": "described"} | ({} if nodes is None else {"nodes": "described"})
    cards = tuple(Gpu(i, "A100", 80 * GIB) for i in range(count))
    return Machine(nodes=nodes, gpus=cards, sources=sources)  # type: ignore[arg-type]


def launched(folder: Path, text: str, name: str = "run.sh") -> tuple[Launch, str]:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/bash\n{text}\n")
    return read_script(file).launches[0], text


def recognised(folder: Path, text: str, marks: tuple[str, ...] = ()) -> Recognised:
    launch, text = launched(folder, text)
    return recognise(launch, text, marks, {}, {}, K.frameworks)


def run_of(folder: Path, text: str, machine: Machine, name: str = "run.sh") -> Run:
    launch, text = launched(folder, text, name)
    return build_run(RunInputs(recognise(launch, text, (), {}, {}, K.frameworks), launch, machine, K.models)).run


# --- how many GPUs ---------------------------------------------------------------------------------------------------


def test_a_gpu_count_that_nobody_can_read_is_taken_from_the_machine_and_said_to_be(tmp_path):
    run = run_of(tmp_path, f"{VERL} trainer.n_gpus_per_node=$N_GPUS", gpus(4))
    assert run.topology.actor_gpus == 4
    assert not run.topology.known
    assert any("trainer.n_gpus_per_node could not be resolved" in note for note in run.notes)
    assert not any("GPUs" in what for what in missing_inputs(run, gpus(4), None))


def test_without_a_machine_such_a_count_is_missing(tmp_path):
    run = run_of(tmp_path, f"{VERL} trainer.n_gpus_per_node=$N_GPUS", Machine())
    assert not run.topology.known
    assert any("number of GPUs" in what for what in missing_inputs(run, Machine(), None))


def test_a_count_that_stands_in_the_script_is_known(tmp_path):
    run = run_of(tmp_path, f"N_GPUS=2\n{VERL} trainer.n_gpus_per_node=$N_GPUS", gpus(4))
    assert (run.topology.actor_gpus, run.topology.known) == (2, True)


@pytest.mark.parametrize(
    ("asked", "machine", "told"),
    [
        ("trainer.n_gpus_per_node=8", gpus(4), "asks for 8 GPUs on each node, the machine has 4"),
        ("trainer.n_gpus_per_node=8 trainer.nnodes=9", gpus(8, 2), "asks for 72 GPUs, the machine has 16"),
        ("trainer.n_gpus_per_node=8 trainer.nnodes=4", gpus(8), ""),
        ("trainer.n_gpus_per_node=4", gpus(8), ""),
    ],
)
def test_a_launch_that_asks_for_more_gpus_than_there_are_is_told_so(tmp_path, asked, machine, told):
    notes = [note for note in run_of(tmp_path, f"{VERL} {asked}", machine).notes if "asks for" in note]
    assert [told in note for note in notes] == ([True] if told else [])


# --- which model -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["$HOME/models/Qwen2.5-7B-Instruct", "${MODEL_ROOT}/Qwen2.5-7B-Instruct/"])
def test_a_model_path_of_which_only_the_beginning_is_unknown_names_the_model(tmp_path, path):
    run = run_of(tmp_path, f"{VERL} actor_rollout_ref.model.path={path}", gpus(8))
    assert run.model_name == "Qwen2.5-7B-Instruct"
    assert run.model is not None


@pytest.mark.parametrize("path", ["$BASE_MODEL", "Qwen/$SIZE", "/models/$NAME"])
def test_a_path_that_ends_in_the_unknown_names_none(tmp_path, path):
    assert run_of(tmp_path, f"{VERL} actor_rollout_ref.model.path={path}", gpus(8)).model_name == ""


# --- which config file -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "go",
    [
        'cd "$(dirname "$0")/../EasyR1"',
        'cd "$(dirname "${BASH_SOURCE[0]}")/../EasyR1"',
        'HERE="$(cd "$(dirname "$0")" && pwd)"\ncd "$HERE/../EasyR1"',
        "cd ../EasyR1",
    ],
)
def test_a_config_file_is_found_where_the_script_went(tmp_path, go):
    config = tmp_path / "EasyR1" / "examples" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(UPSTREAM_CONFIG)
    run = run_of(tmp_path, f"{go}\n{EASYR1}", gpus(8), "jobs/run.sh")
    assert run.missing_files == ()
    assert run.is_on("actor.optimizer_offload")


def test_what_a_config_file_that_was_not_found_decides_is_not_at_its_default(tmp_path):
    run = run_of(tmp_path, EASYR1.replace("examples", "mine"), gpus(8))
    assert run.missing_files == ("mine/config.yaml",)
    assert run.value("actor.optimizer_offload") is None
    assert any("mine/config.yaml" in what for what in missing_inputs(run, gpus(8), None))


def test_a_file_of_the_frameworks_own_counts_where_it_was_not_found(tmp_path):
    run = run_of(tmp_path, EASYR1, gpus(8))
    assert run.missing_files == ()
    assert run.is_on("actor.optimizer_offload")  # the dataclass says false, upstream's file true
    assert run.is_on("actor.gradient_checkpointing")  # and what the file leaves out is the framework's default
    assert any("EasyR1's own file of that name" in doubt for doubt in run.doubts)


def test_the_command_line_wins_over_a_file_of_the_frameworks_own(tmp_path):
    run = run_of(tmp_path, f"{EASYR1} worker.actor.offload.offload_optimizer=false", gpus(8))
    assert not run.is_on("actor.optimizer_offload")


@pytest.mark.parametrize(("keys", "passes"), [("worker.actor.ulysses_sequence_parallel_size=1", 4), ("", 1)])
def test_a_file_of_the_frameworks_own_is_the_one_of_the_version(tmp_path, keys, passes):
    run = run_of(tmp_path, f"{EASYR1} {keys}", gpus(8))
    assert run.number("actor.micro_batch") == passes


def test_an_absolute_config_file_that_is_missing_is_named(tmp_path):
    run = run_of(tmp_path, "python3 -m verl.trainer.main config=/nowhere/config.yaml worker.rollout.n=4", gpus(8))
    assert run.missing_files == ("/nowhere/config.yaml",)
    assert run.number("rollout.samples_per_prompt") == 4


# --- which framework -------------------------------------------------------------------------------------------------


def test_a_file_name_alone_is_no_framework(tmp_path):
    found = recognised(tmp_path, "torchrun --nproc_per_node 4 my_grpo.py --model Qwen/Qwen2.5-7B --bs 8 --num-gen 16")
    assert found.framework is None


def test_options_of_trl_itself_are(tmp_path):
    found = recognised(tmp_path, f"{TRL} --per_device_train_batch_size 4")
    assert found.framework.framework == "trl"
    assert no_place(found, launched(tmp_path, f"{TRL} --per_device_train_batch_size 4")[0]) == ""


def test_a_framework_that_only_the_log_tells_gives_no_place_for_its_settings(tmp_path):
    text = "torchrun my_grpo.py --bs 8"
    found = recognised(tmp_path, text, ("trl",))
    assert found.told_by == "log"
    assert "only the log speaks of TRL" in no_place(found, launched(tmp_path, text)[0])


def test_a_command_of_another_grammar_gives_no_place(tmp_path):
    text = "python -m verl.trainer.main_ppo --batch 8"
    assert "takes --options" in no_place(recognised(tmp_path, text), launched(tmp_path, text)[0])


def test_a_count_of_the_launcher_is_no_argument_of_the_program(tmp_path):
    (tmp_path / "zero3.yaml").write_text("distributed_type: DEEPSPEED\nnum_processes: 8\n")
    text = "accelerate launch --config_file zero3.yaml --num_processes 7 src/open_r1/grpo.py --config recipe.yaml\n"
    assert no_place(recognised(tmp_path, text), launched(tmp_path, text)[0]) == ""


def test_what_the_framework_refuses_to_start_without_was_left_out_by_who_quoted_it(tmp_path):
    whole = run_of(tmp_path, f"{VERL} actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4", gpus(8))
    part = run_of(tmp_path, VERL, gpus(8))
    assert (whole.quoted, part.quoted) == (False, True)
    assert any("does not start without" in note for note in part.notes)


def test_a_config_file_that_was_not_found_may_state_it(tmp_path):
    run = run_of(tmp_path, f"{VERL} --config-path=/elsewhere --config-name=mine", gpus(8))
    assert not any("does not start without" in note for note in run.notes)
