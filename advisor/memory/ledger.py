"""The whole ledger of a run on a machine, and comparisons of two of them."""

from __future__ import annotations

from collections.abc import Callable

from advisor.crash.evidence import Crash
from advisor.machine.inventory import Machine
from advisor.memory import constants as c
from advisor.memory import rollout, training
from advisor.memory.cells import Ledger, Place
from advisor.memory.host import host_parts
from advisor.memory.inputs import Inputs, card_of, missing_inputs, read_inputs
from advisor.memory.parts import Part, phase_sum, weaker
from advisor.memory.validation import validation_parts
from advisor.run.run import Run
from advisor.words import PHASES, Basis, Phase, weakest

_GPU: dict[Phase, Callable[[Inputs], list[Part]]] = {
    "model_load": training.load_parts,
    "rollout_init": rollout.init_parts,
    "rollout_generate": rollout.generate_parts,
    "weight_sync": rollout.sync_parts,
    "log_prob": training.log_prob_parts,
    "actor_update": training.actor_parts,
    "critic_update": training.critic_parts,
    "optimizer_step": training.step_parts,
    "checkpoint": training.checkpoint_parts,
    "validation": validation_parts,
}


def build_ledger(run: Run, machine: Machine, crash: Crash | None = None) -> Ledger:
    """Phase x place x owner → bytes, for the busiest kind of GPU and for one node. Some 100 cells, well below 5 ms.

    Without the model's shape or any count of GPUs the sums are empty and `missing` says what to give.
    """
    capacity, of_card = card_of(machine, crash)
    doubts = (*run.doubts, *of_card)
    limit = machine.host.ceiling_bytes
    missing = missing_inputs(run, machine, crash)
    if missing:
        return Ledger(capacity, limit, (), (), "estimated", missing=missing, doubts=doubts)
    inputs = read_inputs(run, machine, crash)
    phases = phases_of(inputs)
    bounds = _bounds(inputs)
    made = {of: weaker(of(inputs), inputs.basis) for of in {_GPU[phase] for phase in phases}}
    gpu = tuple(phase_sum(p, "gpu", made[_GPU[p]], bounds) for p in phases)
    on_host = zip(phases, host_parts(inputs, phases), strict=True)
    host = tuple(phase_sum(p, "host", weaker(parts, inputs.basis)) for p, parts in on_host)
    basis = weakest(_basis(inputs), "estimated" if doubts else "computed")
    return Ledger(capacity, limit, gpu, host, basis, inputs.assumed, doubts=doubts)


def _bounds(inputs: Inputs) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """How narrow and how wide a phase's interval may be; any width where a guess decides which states a GPU holds, the
    widest where no dialect says how the framework holds them."""
    if not inputs.stage_known:
        return None
    above = c.WIDEST_ABOVE_EXPERTS if inputs.shape.experts else c.WIDEST_ABOVE
    if inputs.run.framework == "unknown":
        return (c.WIDEST_BELOW, c.WIDEST_BELOW), (above, above)
    return (c.NARROWEST_BELOW, c.WIDEST_BELOW), (c.NARROWEST_ABOVE, above)


def _saves(run: Run) -> bool:
    """Whether the run writes checkpoints at all: an interval of -1 or 0 switches them off."""
    every = run.number("checkpoint.every")
    return every is None or every > 0


def phases_of(inputs: Inputs) -> tuple[Phase, ...]:
    """The phases of this run, in the order of `words.PHASES`."""
    rollouts = inputs.run.topology.rollout_gpus > 0 and not inputs.answers_given
    absent: set[Phase] = set()
    if not inputs.has_engine:
        absent |= {"rollout_init", "weight_sync"}
    if not rollouts:
        absent |= {"rollout_init", "rollout_generate", "weight_sync"}
        absent |= set() if inputs.evaluation is not None and inputs.answers_given else {"validation"}
        absent |= set() if inputs.has_reference else {"log_prob"}
    if not _saves(inputs.run):
        absent.add("checkpoint")
    if not inputs.run.has_critic:
        absent.add("critic_update")
    return tuple(p for p in PHASES if p in _GPU and p not in absent)


def _basis(inputs: Inputs) -> Basis:
    """A ledger with guessed inputs is an estimate, whatever its cells say."""
    return weakest(inputs.basis, "estimated" if inputs.assumed else "computed")


def difference(before: Ledger, after: Ledger, place: Place) -> dict[Phase, int]:
    """Expected bytes saved per phase (negative where `after` needs more), for phases that both have."""
    saved: dict[Phase, int] = {}
    for was in before.gpu if place == "gpu" else before.host:
        now = after.phase(place, was.phase)
        if now is not None:
            saved[was.phase] = was.expected - now.expected
    return saved
