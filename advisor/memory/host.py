"""Host RAM of one node, phase by phase: offloaded states, engine copies, processes, the driver's batch, loading."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from advisor.language import say
from advisor.memory import constants as c
from advisor.memory import host_words as said
from advisor.memory.activations import offloaded_activations
from advisor.memory.cells import Owner
from advisor.memory.engine import sleeps, weights_part
from advisor.memory.formula import Words
from advisor.memory.inputs import Inputs
from advisor.memory.parts import Part, part, total
from advisor.memory.per_parameter import embedding_parameters, layer_parameters
from advisor.memory.states import Offload, Role, masters_stay, offload_of
from advisor.memory.training import reference_on_host, reward_parts
from advisor.words import Basis, Phase

_HELPERS = ("host.agent_workers", "data.loader_workers", "host.reward_workers")
_BEFORE_UPDATES: tuple[Phase, ...] = ("model_load", "rollout_init")
_ON_CARD: tuple[Phase, ...] = ("actor_update", "optimizer_step")


def host_parts(inputs: Inputs, phases: Sequence[Phase]) -> list[list[Part]]:
    """Everything on one node in each of the phases."""
    always, batch = process_parts(inputs), batch_parts(inputs)
    engine = [*_engine_copies(inputs), *_swap(inputs)]
    return [[*always, *_role_states(inputs, phase), *_own_parts(inputs, phase, engine, batch)] for phase in phases]


def _own_parts(inputs: Inputs, phase: Phase, engine: list[Part], batch: list[Part]) -> list[Part]:
    """What is there in some phases only."""
    if phase == "model_load":
        return loading_parts(inputs)
    if phase == "rollout_init":
        return engine
    parts = [*engine, *(batch_parts(inputs, validating=True) if phase == "validation" else batch)]
    if phase == "actor_update":
        parts.append(offloaded_activations(inputs, "actor"))
    if phase == "critic_update":
        parts.append(offloaded_activations(inputs, "critic"))
    if phase == "checkpoint":
        parts += _checkpoint(inputs)
    return parts


def _role_states(inputs: Inputs, phase: Phase) -> list[Part]:
    """States of all roles that one node holds; roles with nodes of their own are not added up: the fullest counts."""
    actor, reference = _states(inputs, "actor", phase) + _paged_out(inputs), _reference(inputs.of("reference"))
    critic = _states(inputs, "critic", phase) if inputs.run.has_critic else []
    if _roles_meet(inputs):
        return [*actor, *reference, *critic, *reward_parts(inputs, "host")]
    if inputs.run.topology.reference_beside_actor:
        actor, reference = [*actor, *reference], []
    return max(actor, critic, reference, key=total)


def _paged_out(inputs: Inputs) -> list[Part]:
    """Moments in unified memory, which come to the host where the cards are full."""
    if not inputs.per.paged or inputs.adapters:
        return []
    most = inputs.per.paged * inputs.trained * inputs.node_part
    return [part("offloaded_optimizer", 0, partial(said.paged, most), high=most, basis="estimated")]


def states_on_node(inputs: Inputs, role: Role | Literal["reference"]) -> int:
    """Bytes of one role's states that one of its nodes holds while engines generate: what rests, or always lives there.

    `inputs`: those of the role (`Inputs.of`).
    """
    return total(_reference(inputs) if role == "reference" else _states(inputs, role, "rollout_generate"))


def _roles_meet(inputs: Inputs) -> bool:
    """Whether roles share nodes: they share cards, or a node has cards for two of them."""
    topology = inputs.run.topology
    return topology.roles_share_cards or 2 * inputs.node_gpus <= topology.gpus_per_node


def pinned_rounding(inputs: Inputs) -> float:
    """How much larger pinned copies are than the states: torch rounds each block to a power of two and keeps it.

    FSDP moves one shard a unit (decoder layers, then embedding and head); DeepSpeed pins large flat buffers.
    """
    if inputs.trainer == "deepspeed":
        block = max(1, round(c.FP32 * min(inputs.parameters / inputs.shards, c.SUB_GROUP)))
        return _power_of_two(block) / block
    layer = max(1, layer_parameters(inputs.shape) * c.FP32 // inputs.shards)
    root = max(1, embedding_parameters(inputs.shape) * c.FP32 // inputs.shards)
    nominal = inputs.shape.layers * layer + root
    return (inputs.shape.layers * _power_of_two(layer) + _power_of_two(root)) / nominal


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def process_parts(inputs: Inputs) -> list[Part]:
    """Worker processes of every GPU on the node, the driver, and the named helpers (agents, loaders)."""
    gpus = max(inputs.node_gpus, inputs.engine_gpus)
    count = gpus * inputs.mechanics.processes_per_gpu
    each = inputs.mechanics.host_process_bytes
    helpers = int(sum(inputs.run.number(knob) or 0 for knob in _HELPERS))
    size = count * each + c.DRIVER_BYTES + helpers * c.WORKER_PROCESS_BYTES
    words = partial(
        say,
        said.PROCESSES_AND_HELPERS if helpers else said.PROCESSES,
        count=count,
        each=each / 1e9,
        driver=c.DRIVER_BYTES / 1e9,
        helpers=helpers,
        helper=c.WORKER_PROCESS_BYTES / 1e9,
    )
    return [part("processes", size, words, low=size * c.PROCESS_LOW, high=size * c.PROCESS_HIGH, basis="estimated")]


def _states(inputs: Inputs, role: Role, phase: Phase) -> list[Part]:
    """States of one role that rest, or are updated, in host RAM."""
    inputs = inputs.of(role)
    offload = offload_of(inputs, role)
    if inputs.mechanics.offload_lowers_update or offload.everything:
        return _cpu_adam(inputs, role, offload)
    parts: list[Part] = []
    rounding = pinned_rounding(inputs)
    back = phase in _ON_CARD
    if offload.weights and phase != "model_load":
        parts.append(_rested(inputs, role, "weights", inputs.per.weights, rounding, back))
    if (offload.optimizer or offload.sleeps) and not _not_yet(inputs, phase) and not inputs.adapters:
        parts.append(_rested(inputs, role, "optimizer", inputs.per.optimizer, rounding, back))
    return [*parts, *_stepping_on_cpu(inputs, role, rounding)]


def _stepping_on_cpu(inputs: Inputs, role: Role, rounding: float) -> list[Part]:
    """The part of Megatron's optimizer that lives and steps on the CPU, with the gradients copied to it."""
    fraction = min(1.0, inputs.run.number("actor.optimizer_cpu_part") or 0.0)
    if inputs.split is None or role != "actor" or fraction <= 0 or inputs.adapters:
        return []
    per = inputs.per.optimizer + c.FP32
    size = fraction * per * inputs.split.optimizer * inputs.node_gpus
    words = partial(said.stepping, inputs, inputs.split, fraction, per)
    return [part("offloaded_optimizer", size, words, high=size * rounding, basis=inputs.basis)]


def _not_yet(inputs: Inputs, phase: Phase) -> bool:
    """Torch's moments appear at the first step; DeepSpeed's at initialisation."""
    return phase == "model_load" or (phase in _BEFORE_UPDATES and inputs.mechanics.lazy_optimizer)


def _rested(inputs: Inputs, role: Role, what: str, per: float, rounding: float, back: bool) -> Part:
    """States resting in pinned host memory; torch keeps the pinned blocks while the states are on the card."""
    size = per * inputs.parameters * inputs.node_part
    each: float | None = None
    if inputs.split is not None:
        each = inputs.split.parameters if what == "weights" else inputs.split.optimizer
        size = per * each * inputs.node_gpus

    def words() -> str:
        counted = said.per_node(inputs, per) if each is None else said.per_rank(inputs, per, each)
        states = say(said.OFF_CARD[role, what], size=counted)
        return say(said.ROUNDED_BACK if back else said.ROUNDED, states=states, most=rounding)

    owner: Owner = "offloaded_weights" if what == "weights" else "offloaded_optimizer"
    return part(owner, size, words, high=size * rounding, basis=inputs.basis)


def _cpu_adam(inputs: Inputs, role: Role, offload: Offload) -> list[Part]:
    """DeepSpeed's CPU Adam (or FSDP's CPU offload): the states live on the host all the time."""
    parts: list[Part] = []
    rounding = pinned_rounding(inputs)
    nominal = inputs.parameters * inputs.node_part
    if offload.adam_on_host and not inputs.adapters:
        parts.append(
            part(
                "offloaded_optimizer",
                c.CPU_ADAM * nominal,
                lambda: say(said.CPU_ADAM[role], size=said.per_node(inputs, c.CPU_ADAM)),
                low=c.CPU_ADAM_LOW * nominal,
                high=c.CPU_ADAM * nominal * max(c.CPU_ADAM_MARGIN, rounding),
                basis=inputs.basis,
            )
        )
    elif offload.sleeps and not inputs.adapters:
        leaves = inputs.per.optimizer - (inputs.per.master if masters_stay(inputs) else 0)
        parts.append(_rested(inputs, role, "optimizer", leaves, rounding, back=False))
    if offload.weights or offload.weights_sleep or offload.everything:
        size = c.BF16 * nominal
        words = partial(said.weights, inputs, role)
        parts.append(part("offloaded_weights", size, words, high=size * rounding, basis=inputs.basis))
    return parts


def _reference(inputs: Inputs) -> list[Part]:
    if not inputs.has_reference or not reference_on_host(inputs):
        return []
    per = inputs.mechanics.reference_bytes
    size = per * inputs.parameters * inputs.node_part
    return [
        part(
            "reference",
            size,
            lambda: said.reference(inputs, per),
            high=size * pinned_rounding(inputs),
            basis=inputs.basis,
        )
    ]


def _engine_copies(inputs: Inputs) -> list[Part]:
    """Weights that sleeping engines keep in pinned host memory (sleep level 1), one copy an engine."""
    level = inputs.run.number("rollout.sleep_level")
    level = inputs.mechanics.sleep_level if level is None else level
    if not inputs.has_engine or not inputs.run.topology.colocated or not sleeps(inputs) or level != 1:
        return []
    parallel = max(1, inputs.run.topology.tensor_parallel)
    each = weights_part(inputs, parallel)
    size = float(each.expected * inputs.engine_gpus)
    words = partial(said.engine_copies, each, inputs.engine_gpus)
    return [part("engine_copy", size, words, high=size * 1.1, basis=inputs.basis)]


def _swap(inputs: Inputs) -> list[Part]:
    """The engine's swap space, which vLLM's V0 engine pins at start; V1 has none."""
    if not inputs.has_engine:
        return []
    known = inputs.run.number("host.swap_space")
    each = c.SWAP_BYTES_PER_GPU if known is None else known * 2**30
    version = inputs.run.libraries.get("vllm")
    old = None if version is None else _is_v0(version)
    expected = each * inputs.engine_gpus if old or (known is not None and old is None) else 0
    high = 0 if old is False else each * inputs.engine_gpus
    words = partial(said.swap, each, inputs.engine_gpus)
    basis: Basis = "computed" if old is not None else "estimated"
    return [part("swap", expected, words, low=expected if old else 0, high=high, basis=basis)]


def _is_v0(version: str) -> bool:
    """vLLM before 0.8 runs its V0 engine."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version) < Version("0.8.0")
    except InvalidVersion:
        return False


def batch_bytes(inputs: Inputs, *, validating: bool = False) -> tuple[int, int, Words]:
    """Bytes of one step's batch: expected, and at the caps; and in words.

    A validation answers each prompt once. Frameworks that take the whole set at once do not tell its size: no less than
    a step's batch is counted.
    """
    run = inputs.run
    step = _batch_of(inputs, run.number("data.train_batch") or 0, run.number("rollout.samples_per_prompt") or 1)
    validated = run.number("data.val_batch") if validating else None
    if validated is None:
        return step
    return max(step, _batch_of(inputs, max(0, validated), 1), key=lambda batch: batch[:2])


def _batch_of(inputs: Inputs, prompts: float, samples: float) -> tuple[int, int, Words]:
    run = inputs.run
    count, length = prompts * samples, inputs.update.length
    text = count * (c.TOKEN_BYTES * length + c.RESPONSE_TOKEN_BYTES * (inputs.update.response or length))
    if not inputs.shape.vision_parameters:
        return round(text), round(text), partial(say, said.SAMPLES, count=count, length=length)
    cap = run.number("data.max_pixels") or c.TYPICAL_IMAGE_PIXELS
    per_pixel = c.PATCH_BYTES / c.PATCH_PIXELS
    image = min(cap, c.TYPICAL_IMAGE_PIXELS) * per_pixel
    words = partial(say, said.SAMPLES_AND_IMAGES, count=count, length=length, image=image / 1e6)
    return round(text + prompts * image), round(text + prompts * cap * per_pixel), words


def batch_parts(inputs: Inputs, *, validating: bool = False) -> list[Part]:
    """The step's batch in the driver, and what of it lies in Ray's object store."""
    expected, most, words = batch_bytes(inputs, validating=validating)
    driver = part(
        "driver",
        c.BATCH_COPIES * expected,
        lambda: say("the step's batch in the driver: {batch}, {copies} copies", batch=words(), copies=c.BATCH_COPIES),
        low=c.BATCH_COPIES_LOW * expected,
        high=c.BATCH_COPIES_HIGH * most,
        basis="estimated",
    )
    ceiling = inputs.run.number("host.object_store") or (inputs.ram_bytes * c.STORE_PART if inputs.ram_bytes else None)
    used = float(expected) if ceiling is None else min(expected, ceiling)
    top = float(c.BATCH_COPIES * most) if ceiling is None else min(c.BATCH_COPIES * most, ceiling)
    return [
        driver,
        part("object_store", used, partial(said.stored, words, ceiling), low=0, high=top, basis="estimated"),
    ]


def loading_parts(inputs: Inputs) -> list[Part]:
    """Checkpoint tensors in host RAM while roles load, one role after the other."""
    size = inputs.parameters
    per = c.FP32 if inputs.trainer == "fsdp" and inputs.per.weights > c.BF16 else c.BF16
    whole = per * size
    if inputs.mechanics.loads_full_model_per_rank or (inputs.trainer == "fsdp" and inputs.shape.tied):
        loading = part(
            "loading", whole * inputs.node_gpus, partial(said.loaded_by_all, inputs, per), low=whole, basis=inputs.basis
        )
    elif inputs.trainer == "fsdp":
        loading = part("loading", whole, partial(said.loaded_by_first, per, size), basis=inputs.basis)
    else:
        each = min(c.BF16 * size, c.SHARD_FILE)
        words = partial(said.loaded_by_file, each, inputs.node_gpus)
        least = each if inputs.stage == 3 else c.BF16 * size
        high = c.BF16 * size * inputs.node_gpus if inputs.stage < 3 else each * inputs.node_gpus
        loading = part("loading", each * inputs.node_gpus, words, low=least, high=high, basis="estimated")
    cache = part("loading", 0, partial(said.page_cache, size), high=c.BF16 * size)
    return [loading, cache]


def _checkpoint(inputs: Inputs) -> list[Part]:
    """Saving: the node's shards copied to the host, and one full copy where rank 0 writes a Hugging Face model."""
    if inputs.adapters:
        size = float(c.FP32 * inputs.adapters)
        return [part("checkpoint", size, lambda: say("adapters only"))]
    if inputs.trainer == "fsdp":
        per = inputs.per.weights + inputs.per.optimizer
        size = per * inputs.parameters * inputs.node_part
        words = partial(said.shards_to_disk, inputs, per)
        low = inputs.per.weights * inputs.parameters * inputs.node_part
        return [part("checkpoint", size, words, low=low, high=size + c.FP32 * inputs.parameters, basis=inputs.basis)]
    size = float(c.BF16 * inputs.parameters)
    return [part("checkpoint", size, partial(said.collected, inputs.parameters), high=2 * size, basis=inputs.basis)]
