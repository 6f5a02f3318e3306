"""Which GPUs do what, as the launch says it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.run.build import BuiltRun
from advisor.run.run import Topology
from advisor.script.document import Setting
from advisor.script.launch import Launch
from advisor.script.reader import read_script
from tests.loops import each

from .test_binding import built, gpus

GROUPS = {
    "--actor_num_nodes": "1",
    "--actor_num_gpus_per_node": "8",
    "--vllm_num_engines": "4",
    "--vllm_tensor_parallel_size": "2",
}
SWIFT = {"--rlhf_type": "grpo", "--use_vllm": "true", "--deepspeed": "zero2", "--num_generations": "8"}


def openrlhf(flags: tuple[str, ...] = (), version: str = "0.5.8", **settings: str) -> BuiltRun:
    given = {**GROUPS, **{f"--{key}": value for key, value in settings.items()}}
    made = [Setting(key, value, "command") for key, value in given.items()]
    made += [Setting(f"--{flag}", (), "command") for flag in flags]
    launch = Launch(0, "openrlhf.cli.train_ppo_ray", (), {}, tuple(made))
    return built(launch, gpus(8), libraries={"openrlhf": version})


def swift(version: str, cards: int, environment: dict[str, str], **settings: str) -> Topology:
    given = {**SWIFT, **{f"--{key}": value for key, value in settings.items()}}
    made = tuple(Setting(key, value, "command") for key, value in given.items())
    return built(
        Launch(0, "swift rlhf", (), environment, made), gpus(cards), libraries={"ms-swift": version}
    ).run.topology


def test_openrlhf_puts_the_reference_beside_the_actor_only_where_it_is_told_to() -> None:
    assert not openrlhf().run.topology.reference_beside_actor
    beside = openrlhf(("colocate_actor_ref",)).run.topology
    assert beside.reference_beside_actor
    assert not beside.roles_share_cards


@each(
    ("flags", "more", "place"),
    [
        ((), {}, "own"),
        (("colocate_critic_reward",), {}, "critic"),
        (("colocate_all_models",), {}, "actor"),
        (("colocate_all_models", "ref_reward_offload"), {"zero_stage": "3"}, "host"),
        (("colocate_all_models", "ref_reward_offload"), {}, "actor"),
        (("colocate_all_models",), {"remote_rm_url": "http://localhost:5000"}, "none"),
    ],
)
def test_openrlhf_says_whose_cards_the_reward_model_shares(
    flags: tuple[str, ...], more: dict[str, str], place: str
) -> None:
    assert openrlhf(flags, reward_pretrain="Llama-3-8b-rm", **more).run.topology.reward_on == place


def test_no_reward_model_is_counted_where_none_is_named() -> None:
    assert openrlhf(("colocate_all_models",)).run.topology.reward_on == "none"


@each(
    ("flags", "version", "given", "share"),
    [
        (("colocate_all_models",), "0.5.8", "0.95", 0.4),
        (("colocate_all_models",), "0.5.8", "0.85", 0.85),
        ((), "0.5.8", "0.95", 0.95),
        (("colocate_all_models",), "0.8.5", "0.95", 0.95),
    ],
)
def test_openrlhf_0_5_8_resets_a_high_engine_share_where_all_models_share_cards(
    flags: tuple[str, ...], version: str, given: str, share: float
) -> None:
    run = openrlhf(flags, version, vllm_gpu_memory_utilization=given).run
    assert run.number("rollout.memory_share") == share


def test_ms_swift_3_1_without_a_count_of_processes_trains_on_one_card_and_generates_on_the_next() -> None:
    topology = swift("3.1.1", 2, {"CUDA_VISIBLE_DEVICES": "0,1"})
    assert (topology.actor_gpus, topology.rollout_gpus, topology.colocated) == (1, 1, False)


def test_ms_swift_3_1_takes_one_card_for_the_engine_however_many_are_left() -> None:
    topology = swift("3.1.1", 8, {"NPROC_PER_NODE": "4"})
    assert (topology.actor_gpus, topology.rollout_gpus, topology.colocated) == (4, 1, False)


def test_ms_swift_3_2_takes_as_many_cards_as_engines_were_asked_for() -> None:
    topology = swift("3.2.2", 8, {"NPROC_PER_NODE": "6"}, num_infer_workers="2")
    assert (topology.actor_gpus, topology.rollout_gpus, topology.colocated) == (6, 2, False)


def test_ms_swift_3_2_shares_the_cards_where_engines_processes_and_cards_are_as_many() -> None:
    topology = swift("3.2.2", 4, {"NPROC_PER_NODE": "4"}, num_infer_workers="4")
    assert (topology.actor_gpus, topology.colocated) == (4, True)


@pytest.mark.parametrize(
    "text",
    [
        "torchrun --nproc_per_node=$ANY_GPU --nnodes=$ANY_NUM swift/cli/rlhf.py --rlhf_type grpo\n",
        "torchrun $ANY_OPTIONS swift/cli/rlhf.py --rlhf_type grpo\n",
        "export NPROC_PER_NODE=$ANY_GPU\nNNODES=$ANY_NUM swift rlhf --rlhf_type grpo\n",
        "accelerate launch --num_processes $((ANY_NUM*8)) --num_machines $ANY_NUM -m trl.scripts.grpo --beta 0\n",
        "python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes $ANY_NUM --actor_num_gpus_per_node $ANY_GPU\n",
        "python3 -m verl.trainer.main_ppo trainer.nnodes=$ANY_NUM trainer.n_gpus_per_node=$ANY_GPU\n",
    ],
)
def test_counts_of_the_cluster_that_cannot_be_read_are_those_of_the_machine(tmp_path: Path, text: str) -> None:
    script = tmp_path / "run.sh"
    script.write_text(text)
    (launch,) = read_script(script).launches
    run = built(launch, replace(gpus(8), nodes=2)).run
    assert (run.topology.nodes, run.topology.gpus_per_node, run.topology.actor_gpus) == (2, 8, 16)
    assert run.topology.asked is None
    assert any("taken as" in note or "all 16 of the machine are counted" in note for note in run.notes)


def test_counts_that_are_written_out_stay_what_they_are(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("torchrun --nproc_per_node=4 --nnodes=$N swift/cli/rlhf.py --rlhf_type grpo\n")
    (launch,) = read_script(script).launches
    run = built(launch, replace(gpus(8), nodes=None)).run
    assert run.topology.actor_gpus == 4
    assert any("--nnodes could not be resolved: one node is assumed" in note for note in run.notes)
