"""What a GPU holds where roles lie over several nodes, and over how many of them one copy is spread."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.machine.inventory import Machine
from advisor.memory.ledger import RoleGroup, build_ledger, groups_of
from advisor.run.run import KnobValue, Run, Topology
from advisor.session import SessionRequest, open_session
from tests.memory.runs import DEEPSPEED, FSDP, box, make_run, shape

TWO = Topology(2, 8, 16, 16, tensor_parallel=4)
BATCH: dict[str, KnobValue | None] = {"actor.micro_batch": 1, "data.max_prompt": 1024, "data.max_response": 1024}
MODEL = "Qwen2.5-7B-Instruct"
PARAMETERS = shape(MODEL).parameters


def verl(topology: Topology = TWO, **knobs: KnobValue) -> Run:
    return make_run(MODEL, FSDP, topology, {**BATCH, **{name.replace("__", "."): v for name, v in knobs.items()}})


def group(run: Run, role: str, machine: Machine | None = None) -> RoleGroup:
    return next(one for one in groups_of(run, machine or box(8, 80, 1000, nodes=2)) if one.role == role)


def formula(run: Run, owner: str = "weights") -> str:
    found = build_ledger(run, box(8, 80, 1000, nodes=2)).phase("gpu", "actor_update")
    assert found is not None
    return next(cell.formula for cell in found.cells if cell.owner == owner)


def test_fsdp_spreads_one_copy_over_all_nodes() -> None:
    actor = group(verl(), "actor")
    assert (actor.gpus, actor.nodes, actor.over, actor.spans, actor.copies) == (16, 2, 16, 2, 1)
    assert actor.weights == pytest.approx(4 * PARAMETERS / 16, abs=1)
    assert actor.optimizer == pytest.approx(8 * PARAMETERS / 16, abs=1)
    assert formula(verl()) == "one copy on 2 nodes: 4 bytes × 7.6156e9 parameters ÷ 16 GPUs"


def test_a_shard_size_of_one_node_keeps_a_copy_on_each() -> None:
    run = verl(actor__shard_size=8)
    actor = group(run, "actor")
    assert (actor.over, actor.spans, actor.copies) == (8, 1, 2)
    assert actor.weights == pytest.approx(4 * PARAMETERS / 8, abs=1)
    assert formula(run) == "one node, 2 copies in all: 4 bytes × 7.6156e9 parameters ÷ 8 GPUs"


def test_on_one_node_nothing_is_said_of_nodes() -> None:
    run = verl(Topology(1, 8, 8, 8, tensor_parallel=4))
    assert groups_of(run, box(8, 80, 1000)) == ()
    assert "node" not in formula(run)


def test_engines_hold_a_copy_each_also_where_one_spans_nodes() -> None:
    rollout = group(verl(), "rollout")
    assert (rollout.over, rollout.spans, rollout.copies, rollout.beside) == (4, 1, 4, "actor")
    assert rollout.weights == 2 * PARAMETERS // 4
    assert group(verl(Topology(2, 8, 16, 16, tensor_parallel=16)), "rollout").spans == 2


def test_a_critic_with_fewer_cards_of_its_own_holds_larger_shards_on_card_and_host() -> None:
    apart = Topology(3, 8, 16, 8, colocated=False, roles_share_cards=False, critic_gpus=8, reference_gpus=16)
    knobs: dict[str, KnobValue | None] = {**BATCH, "actor.zero_stage": 3, "critic.optimizer_offload": True}
    run = make_run(MODEL, DEEPSPEED, apart, knobs, algorithm="ppo")
    machine = box(8, 80, 1000, nodes=3)
    actor, critic = group(run, "actor", machine), group(run, "critic", machine)
    assert (actor.spans, critic.spans, critic.beside) == (2, 1, "")
    assert actor.weights is not None
    assert critic.weights == pytest.approx(2 * actor.weights, abs=2)
    assert critic.steps_on_host
    assert critic.on_node > 12 * PARAMETERS
    update = build_ledger(run, machine).phase("gpu", "critic_update")
    assert update is not None
    assert next(cell for cell in update.cells if cell.owner == "critic").expected == critic.weights


def test_zero_below_stage_3_has_whole_weights_on_every_gpu() -> None:
    run = make_run(MODEL, DEEPSPEED, TWO, {**BATCH, "actor.zero_stage": 1})
    actor = group(run, "actor")
    assert (actor.weights, actor.optimizer) == (2 * PARAMETERS, round(12 * PARAMETERS / 16))


@pytest.mark.parametrize("stage", [2, 3])
def test_zero_moves_to_the_host_only_weights_that_it_shards(stage: int) -> None:
    knobs: dict[str, KnobValue | None] = {"actor.param_offload": True, "actor.optimizer_offload": True}
    run = make_run(MODEL, DEEPSPEED, Topology(1, 8, 8, 0), {**BATCH, **knobs, "actor.zero_stage": stage})
    found = build_ledger(run, box(8, 80, 1000)).phase("gpu", "actor_update")
    assert found is not None
    assert (found.of("weights") == 2 * PARAMETERS) is (stage == 2)


def test_a_second_shard_within_the_node_is_held_beside_the_one_over_all_nodes() -> None:
    knobs: dict[str, KnobValue | None] = {**BATCH, "actor.zero_stage": 3}
    plain = make_run(MODEL, DEEPSPEED, TWO, knobs)
    twice = make_run(MODEL, DEEPSPEED, TWO, {**knobs, "actor.second_shard": 8})
    machine = box(8, 80, 1000, nodes=2)
    one, two = (build_ledger(run, machine).phase("gpu", "actor_update") for run in (plain, twice))
    assert one is not None
    assert two is not None
    assert two.expected - one.expected == pytest.approx(2 * PARAMETERS / 8, rel=0.05)  # and its torn memory
    assert any("÷ 8 GPUs" in cell.formula for cell in two.cells if cell.owner == "gathered")


VERL = """python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
  data.train_batch_size=64 data.max_prompt_length=1024 data.max_response_length=2048 \\
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct actor_rollout_ref.rollout.name=vllm \\
  actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \\
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4 \\
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.rollout.gpu_memory_utilization=0.5 \\
  actor_rollout_ref.actor.fsdp_config.fsdp_size={size} \\
  trainer.nnodes=2 trainer.n_gpus_per_node=8
"""
RAY = (
    "ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.actor_rollout_update_actor() "
    "(pid=812, ip={ip}, actor_id=f1b4f4cb4c18ac1bff3a55c402000000, repr=<x>)\n"
)
TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.10 GiB is free. Including non-PyTorch memory, this process has 78.05 GiB memory in use.\n"
)


@pytest.mark.parametrize(("size", "over", "spans"), [(-1, 16, 2), (8, 8, 1)])
def test_a_verl_script_over_two_nodes_is_read_placed_and_told(tmp_path: Path, size: int, over: int, spans: int) -> None:
    script, log = tmp_path / "run.sh", tmp_path / "train.log"
    script.write_text(VERL.format(size=size))
    log.write_text(RAY.format(ip="10.0.0.12") + TORCH + RAY.format(ip="10.0.0.11") + TORCH)
    state = open_session(SessionRequest(script=script, logs=(log,), gpus="8xA100-80G", host_ram="1000G"))
    actor = next(one for one in groups_of(state.run, state.machine, state.crash) if one.role == "actor")
    assert (actor.gpus, actor.nodes, actor.over, actor.spans) == (16, 2, over, spans)
    assert "Of the 2 nodes, 10.0.0.12 died first." in state.diagnosis.remarks
