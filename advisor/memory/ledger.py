"""Builds the whole ledger of a run on a machine, compares two, and says what one GPU holds of each role over nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.language import listed, say
from advisor.machine.inventory import Machine
from advisor.memory import constants as c
from advisor.memory import gpu_phases
from advisor.memory.amount import quantity
from advisor.memory.batches import TrainedRole
from advisor.memory.cells import Bounds, Cell, Ledger, PhaseSum, Place, Rows, owners_of, phase_sum, total
from advisor.memory.constants import BF16
from advisor.memory.host import host_cells, states_on_node
from advisor.memory.inputs import Inputs, gpu_of, missing_inputs, read_inputs
from advisor.memory.states import gradients_cells, offload_of, optimizer_cells, sharded_cell, weights_cell
from advisor.run.run import Run, evaluates_only
from advisor.words import NOW_AND_THEN, PHASES, Basis, Phase, weakest

COUNTED = owners_of("states", "models", "engine", "batch")
"""Owners that settings tell; what leaks or was measured beyond them is the crash's own."""
IMPLAUSIBLE = 2
"""Times a card: nobody starts a run that needs more of each (judgement)."""
_GPU: dict[Phase, Callable[[Inputs], list[Cell]]] = {
    "model_load": gpu_phases.load_cells,
    "rollout_init": gpu_phases.init_cells,
    "rollout_generate": gpu_phases.generate_cells,
    "weight_sync": gpu_phases.sync_cells,
    "log_prob": gpu_phases.log_prob_cells,
    "actor_update": gpu_phases.actor_cells,
    "critic_update": gpu_phases.critic_cells,
    "optimizer_step": gpu_phases.step_phase_cells,
    "checkpoint": gpu_phases.checkpoint_cells,
    "validation": gpu_phases.validation_cells,
}


def build_ledger(run: Run, machine: Machine, crash: Crash | None = None) -> Ledger:
    """Phase x place x owner → bytes, for the busiest kind of GPU and for one node. Some 100 cells, well below 5 ms.
    Without the model's shape or any count of GPUs the sums are empty and `missing` says what to give."""
    capacity, of_card = gpu_of(machine, crash)
    doubts = (*run.doubts, *of_card)
    limit = machine.host.ceiling_bytes
    missing = missing_inputs(run, machine, crash)
    if missing:
        return Ledger(capacity, limit, (), (), "estimated", missing=missing, doubts=doubts)
    inputs = read_inputs(run, machine, crash)
    phases = phases_of(inputs)
    bounds = _bounds(inputs)
    counted = run.topology.known or bool(run.topology.assumed)  # how many processes a node has
    on_host = zip(phases, host_cells(inputs, phases), strict=True) if counted else ()
    if run.is_on("host.trains"):
        gpu: tuple[PhaseSum, ...] = ()
        host = tuple(
            phase_sum(phase, "host", [*cells, *_on_cpu(inputs, phase)], rows=_rows(inputs, phase))
            for phase, cells in on_host
        )
    else:
        gpu = tuple(phase_sum(phase, "gpu", _GPU[phase](inputs), bounds, _rows(inputs, phase)) for phase in phases)
        host = tuple(phase_sum(phase, "host", cells) for phase, cells in on_host)
    basis = weakest(inputs.basis, "estimated" if doubts or inputs.assumed else "computed")
    assumed = inputs.assumed
    if run.uncounted:
        assumed += (say("not counted, though it moves GPU memory: {keys}", keys=listed(run.uncounted)),)
    return Ledger(capacity, limit, gpu, host, basis, assumed, doubts=doubts)


def certainty(ledger: Ledger, place: Place, phase: Phase, before: Ledger | None = None) -> Basis:
    """How sure a phase's sum, or what differs from `before`, is: as the least sure of what settings decide in it."""
    now, then = (
        {(one.owner, one.expected, one.low, one.high): one.basis for one in found.cells if one.owner in COUNTED}
        if each is not None and (found := each.phase(place, phase)) is not None
        else {}
        for each in (ledger, before)
    )
    every = {**then, **now}
    return weakest(ledger.basis, *(every[key] for key in now.keys() ^ then.keys()))


def _on_cpu(inputs: Inputs, phase: Phase) -> list[Cell]:
    """What the node's processes hold in RAM where they train on the CPU: all but what belongs to a card."""
    here = quantity("processes", inputs.here.value)
    kept = [each for each in _GPU[phase](inputs) if each.owner not in ("context", "fragmentation")]
    return [replace(each, amount=each.amount * here, pooled=False) for each in kept]


def _bounds(inputs: Inputs) -> Bounds | None:
    """How narrow and how wide a phase's interval may be; any width where a guess decides which states a GPU holds, the
    widest where no dialect says how the framework holds them."""
    if not inputs.stage_known:
        return None
    below, above = c.WIDEST_BELOW, c.WIDEST_ABOVE
    if inputs.shape.experts:  # what they dispatch is an allowance
        below, above = c.WIDEST_BELOW_EXPERTS, c.WIDEST_ABOVE_EXPERTS
    if inputs.run.framework == "unknown":
        return (below, below), (above, above)
    return (c.NARROWEST_BELOW, below), (c.NARROWEST_ABOVE, above)


def _rows(inputs: Inputs, phase: Phase) -> Rows | None:
    """The rows of a phase's pass, where they decide what it holds."""
    passes = {
        "log_prob": inputs.scoring,
        "actor_update": inputs.update,
        "optimizer_step": inputs.update,
        "critic_update": inputs.critic,
        "validation": inputs.evaluation,
    }
    step = passes.get(phase)
    return step.rows(max(1, inputs.run.topology.sequence_parallel)) if step is not None else None


def phases_of(inputs: Inputs) -> tuple[Phase, ...]:
    """The phases of this run, in the order of `words.PHASES`."""
    generated = inputs.run.recipe.answers == "generated"
    rollouts = inputs.run.topology.rollout_gpus > 0 and generated
    absent: set[Phase] = set()
    if inputs.evaluation is not None and evaluates_only(inputs.run):
        return ("model_load", "validation")
    if not inputs.has_engine:
        absent |= {"rollout_init", "weight_sync"}
    if inputs.run.topology.engine_elsewhere:
        absent |= {"rollout_init", "rollout_generate"}
        absent |= set() if inputs.evaluation is not None else {"validation"}
    if not rollouts:
        absent |= {"rollout_init", "rollout_generate", "weight_sync"}
        absent |= set() if inputs.evaluation is not None and not generated else {"validation"}
        absent |= set() if inputs.has_reference else {"log_prob"}
    elif not _scores(inputs):
        absent.add("log_prob")
    every = inputs.run.number("checkpoint.every")
    if every is not None and every <= 0:  # -1 and 0 switch checkpoints off
        absent.add("checkpoint")
    if not inputs.run.has_critic:
        absent.add("critic_update")
    return tuple(p for p in PHASES if p in _GPU and p not in absent)


def _scores(inputs: Inputs) -> bool:
    """Whether a pass without gradients goes over what was generated: of policy, reference, teacher or critic."""
    run = inputs.run
    scored = run.is_on("logprob.scored", inputs.mechanics.scores_answers)
    return scored or inputs.has_reference or run.recipe.teacher or run.has_critic


def implausible(run: Run, ledger: Ledger) -> bool:
    """Whether a launch that was not seen whole comes to so much at its defaults that the rest must say otherwise."""
    peak, capacity = ledger.peak("gpu"), ledger.gpu_capacity
    return not run.seen_whole and peak is not None and capacity is not None and peak.expected > IMPLAUSIBLE * capacity


def refuted(ledger: Ledger, ran: bool) -> bool:
    """Whether the cards never had room by the ledger for a phase that steps passed, so that its inputs are wrong."""
    capacity = ledger.gpu_capacity
    if not ran or capacity is None:
        return False
    passed = (one for one in ledger.sums("gpu") if one.phase not in NOW_AND_THEN)
    return any(sum(cell.low for cell in one.cells if cell.owner in COUNTED) > capacity for one in passed)


def peak_rises(before: Ledger, after: Ledger, place: Place) -> bool:
    """Whether a place's fullest phase needs more after a change than before it."""
    first, last = before.peak(place), after.peak(place)
    return last is not None and (first is None or last.expected > first.expected)


def difference(before: Ledger, after: Ledger, place: Place) -> dict[Phase, int]:
    """Expected bytes saved per phase (negative where `after` needs more), for phases that both have."""
    saved: dict[Phase, int] = {}
    for was in before.sums(place):
        now = after.phase(place, was.phase)
        if now is not None:
            saved[was.phase] = was.expected - now.expected
    return saved


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
