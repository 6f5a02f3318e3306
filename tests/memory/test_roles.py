"""Reference, reward and critic: on whose cards and on whose node they are counted."""

from __future__ import annotations

import pytest

from advisor.memory.cells import Ledger
from advisor.memory.ledger import build_ledger
from advisor.run.run import KnobValue, RewardPlace, Topology
from advisor.units import GIB
from advisor.words import Phase
from tests.loops import each
from tests.replacing import replace

from .runs import DEEPSPEED, box, make_run, shape

APART = Topology(1, 8, 8, 8, 2, colocated=False, roles_share_cards=False)
PPO: dict[str, KnobValue | None] = {
    "actor.zero_stage": 3,
    "actor.gradient_checkpointing": True,
    "actor.micro_batch": 2,
    "data.prompt_tokens": 1024,
    "data.response_tokens": 1024,
    "reward.path": "Llama-3-8b-rm",
}
LLAMA_8B = shape("Llama-3.1-8B").parameters
"""The reward model is known by its name."""
BF16_SHARD = 2 * shape("Llama-3.1-8B").parameters / 8


def ledger(topology: Topology, **knobs: KnobValue) -> Ledger:
    given = {**PPO, **{name.replace("__", "."): value for name, value in knobs.items()}}
    return build_ledger(make_run("Llama-3.1-8B", DEEPSPEED, topology, given, "ppo"), box(8, 79.15, 2000))


def held(found: Ledger, phase: Phase, place: str = "gpu") -> int:
    one = found.phase("gpu" if place == "gpu" else "host", phase)
    assert one is not None
    return sum(cell.expected for cell in one.cells if cell.owner == "reference")


@each("phase", ["log_prob", "actor_update", "optimizer_step", "model_load"])
def test_a_reference_beside_the_actor_is_in_every_phase_of_the_actor(phase: Phase) -> None:
    beside = replace(APART, reference_beside_actor=True)
    assert held(ledger(APART), phase) == 0
    assert held(ledger(beside), phase) == pytest.approx(BF16_SHARD, rel=1e-6)
    assert held(ledger(beside), "critic_update") == 0
    assert held(ledger(beside, reference__offload=True), phase) == 0


@each(("place", "critic"), [("none", 0), ("own", 0), ("critic", 2), ("host", 0)])
def test_a_reward_model_apart_from_the_actor_is_counted_only_beside_the_critic(
    place: RewardPlace, critic: float
) -> None:
    found = ledger(replace(APART, reward_on=place))
    assert held(found, "actor_update") == 0
    assert held(found, "critic_update") == pytest.approx(critic * LLAMA_8B / 8)


def test_a_reward_model_on_shared_cards_comes_on_top_of_the_reference() -> None:
    shared = Topology(1, 8, 8, 8, 2)
    with_reward = replace(shared, reward_on="actor")
    assert held(ledger(with_reward), "actor_update") - held(ledger(shared), "actor_update") == pytest.approx(
        2 * LLAMA_8B / 8
    )
    on_host = ledger(replace(shared, reward_on="host"))
    assert held(on_host, "actor_update", "host") == pytest.approx(2 * LLAMA_8B)


def test_cpu_optimizers_of_roles_with_nodes_of_their_own_are_not_added_up() -> None:
    offloaded: dict[str, KnobValue] = {"actor__optimizer_offload": True, "critic__optimizer_offload": True}

    def optimizers(topology: Topology) -> float:
        found = ledger(topology, **offloaded).phase("host", "actor_update")
        assert found is not None
        return sum(cell.expected for cell in found.cells if cell.owner == "offloaded_optimizer") / GIB

    one = optimizers(APART)
    assert optimizers(Topology(1, 8, 8, 8, 2)) == pytest.approx(2 * one)
    assert optimizers(replace(APART, actor_gpus=4)) == pytest.approx(2 * one), "two groups on one node"
