"""Says how the roles of a run lie over nodes, and what one GPU holds of each role's states."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.machine.inventory import Machine
from advisor.memory.batches import TrainedRole
from advisor.memory.cells import total
from advisor.memory.constants import BF16
from advisor.memory.host import states_on_node
from advisor.memory.inputs import Inputs, missing_inputs, read_inputs
from advisor.memory.states import gradients_cells, offload_of, optimizer_cells, sharded_cell, weights_cell
from advisor.run.run import Run

GroupRole = Literal["actor", "critic", "reference", "rollout"]


class RoleGroup(Struct, frozen=True):
    """One role's GPUs. Bytes are of one GPU; None: the role holds no such states."""

    role: GroupRole
    gpus: int
    nodes: int
    over: int
    """GPUs over which one copy is spread; 1: every GPU has its own."""
    spans: int
    """Nodes over which one copy is spread."""
    copies: int
    beside: str = ""
    """Role on whose cards it lives; "": on its own."""
    weights: int | None = None
    gradients: int | None = None
    optimizer: int | None = None
    on_node: int = 0
    """Bytes of the role's states in the host RAM of one of its nodes, between updates or always."""
    steps_on_host: bool = False
    """The optimizer lives there and never comes to the GPU."""


def groups_of(run: Run, machine: Machine, crash: Crash | None = None) -> tuple[RoleGroup, ...]:
    """The roles of a run on several nodes, the actor first; () on one node, or where the ledger lacks an input."""
    if run.topology.nodes < 2 or missing_inputs(run, machine, crash):
        return ()
    inputs = read_inputs(run, machine, crash)
    found = [_trained(inputs, "actor")]
    if run.has_critic:
        found.append(_trained(inputs.of("critic"), "critic"))
    if inputs.has_reference:
        found.append(_reference(inputs))
    if inputs.has_engine:
        found.append(_engines(inputs))
    return tuple(found)


def _trained(inputs: Inputs, role: GroupRole) -> RoleGroup:
    apart = role == "critic" and not inputs.run.topology.roles_share_cards
    held: TrainedRole = "critic" if role == "critic" else "actor"
    return replace(
        _spread(inputs, role, beside="" if role == "actor" or apart else "actor"),
        on_node=states_on_node(inputs, held),
        steps_on_host=offload_of(inputs, held).adam_on_host,
        weights=weights_cell(inputs).expected,
        gradients=total(gradients_cells(inputs)) or None,
        optimizer=total(optimizer_cells(inputs)) or None,
    )


def _spread(inputs: Inputs, role: GroupRole, beside: str) -> RoleGroup:
    gpus = inputs.run.topology.actor_gpus
    nodes = -(-gpus // inputs.node_gpus)
    if inputs.split is not None:
        model = inputs.split.tensor * inputs.split.pipeline
        return RoleGroup(role, gpus, nodes, model, -(-model // inputs.node_gpus), max(1, gpus // model), beside)
    if not inputs.stage:
        return RoleGroup(role, gpus, nodes, 1, 1, gpus, beside)
    return RoleGroup(role, gpus, nodes, inputs.shards, inputs.spans, inputs.copies, beside)


def _reference(inputs: Inputs) -> RoleGroup:
    topology = inputs.run.topology
    beside = "actor" if topology.roles_share_cards or topology.reference_beside_actor else ""
    own = inputs.of("reference")
    size = sharded_cell(own, "reference", own.state("reference"), from_stage=3).expected
    return replace(_spread(own, "reference", beside), weights=size, on_node=states_on_node(own, "reference"))


def _engines(inputs: Inputs) -> RoleGroup:
    """Each engine holds a copy in bf16, split over its tensor-parallel GPUs."""
    topology = inputs.run.topology
    per_node, parallel = max(1, topology.gpus_per_node), max(1, topology.tensor_parallel)
    nodes, spans = -(-topology.rollout_gpus // per_node), -(-parallel // per_node)
    beside = "actor" if topology.colocated else ""
    weights = BF16 * inputs.shape.parameters // parallel
    copies = max(1, topology.rollout_gpus // parallel)
    return RoleGroup("rollout", topology.rollout_gpus, nodes, parallel, spans, copies, beside, weights)
