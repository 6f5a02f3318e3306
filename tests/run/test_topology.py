"""Which GPUs do what, as the launch says it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.run.build import BuiltRun
from advisor.run.run import Topology
from advisor.script.reader import read_script
from tests.loops import each

from .test_binding import built, gpus, launch

GROUPS = {
    "--actor_num_nodes": "1",
    "--actor_num_gpus_per_node": "8",
    "--vllm_num_engines": "4",
    "--vllm_tensor_parallel_size": "2",
}
SWIFT = {"--rlhf_type": "grpo", "--use_vllm": "true", "--deepspeed": "zero2", "--num_generations": "8"}


def openrlhf(flags: tuple[str, ...] = (), version: str = "0.5.8", **settings: str) -> BuiltRun:
    given = {**GROUPS, **{f"--{key}": value for key, value in settings.items()}, **{f"--{flag}": () for flag in flags}}
    return built(launch("openrlhf.cli.train_ppo_ray", **given), gpus(8), libraries={"openrlhf": version})


def swift(version: str, cards: int, environment: dict[str, str], **settings: str) -> Topology:
    made = launch("swift rlhf", environment, **SWIFT, **{f"--{key}": value for key, value in settings.items()})
    return built(made, gpus(cards), libraries={"ms-swift": version}).run.topology


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


@each(
    ("version", "cards", "environment", "engines", "trained", "generating", "colocated"),
    [
        ("3.1.1", 2, {"CUDA_VISIBLE_DEVICES": "0,1"}, {}, 1, 1, False),  # one process, and the next card
        ("3.1.1", 8, {"NPROC_PER_NODE": "4"}, {}, 4, 1, False),  # one for the engine, however many are left
        ("3.2.2", 8, {"NPROC_PER_NODE": "6"}, {"num_infer_workers": "2"}, 6, 2, False),
        ("3.2.2", 4, {"NPROC_PER_NODE": "4"}, {"num_infer_workers": "4"}, 4, 4, True),  # as many as there are
    ],
)
def test_ms_swift_gives_the_engine_cards_of_its_own_unless_all_are_taken(
    version: str, cards: int, environment: dict[str, str], engines: dict[str, str], trained: int, generating: int,
    colocated: bool,
) -> None:  # fmt: skip
    found = swift(version, cards, environment, **engines)
    assert (found.actor_gpus, found.rollout_gpus, found.colocated) == (trained, generating, colocated)


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
    (made,) = read_script(script).launches
    run = built(made, replace(gpus(8), nodes=2)).run
    assert (run.topology.nodes, run.topology.gpus_per_node, run.topology.actor_gpus) == (2, 8, 16)
    assert run.topology.asked is None
    assert any("taken as" in note or "all 16 of the machine are counted" in note for note in run.notes)


def test_counts_that_are_written_out_stay_what_they_are(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("torchrun --nproc_per_node=4 --nnodes=$N swift/cli/rlhf.py --rlhf_type grpo\n")
    (made,) = read_script(script).launches
    run = built(made, replace(gpus(8), nodes=None)).run
    assert run.topology.actor_gpus == 4
    assert any("--nnodes could not be resolved: one node is assumed" in note for note in run.notes)
