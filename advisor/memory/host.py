"""Counts host RAM of one node, phase by phase: offloaded states, engine copies, processes, the batch, loading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory.activations import offloaded_activations
from advisor.memory.amount import Amount, in_bytes, least, quantity
from advisor.memory.batches import TrainedRole
from advisor.memory.cells import Cell, Note, Owner, cell, note, total
from advisor.memory.engine import sleeps
from advisor.memory.engine import weights_cell as engine_weights
from advisor.memory.gpu_phases import reference_on_host, reward_cells, teacher_copy, teacher_rests_on_host
from advisor.memory.inputs import Inputs, per_ledger
from advisor.memory.lora import adapter_count
from advisor.memory.parameters import embedding_parameters, layer_parameters
from advisor.memory.states import Offload, cpu_part, masters_stay, offload_of
from advisor.rules.functions import version_in
from advisor.run.run import ModelShape
from advisor.units import GIB
from advisor.words import Phase

_HELPERS = ("host.agent_workers", "data.loader_workers", "host.reward_workers")
_BEFORE_UPDATES: tuple[Phase, ...] = ("model_load", "rollout_init")
_ON_GPU: tuple[Phase, ...] = ("actor_update", "optimizer_step")
_OFF_GPU: dict[tuple[TrainedRole, str], str] = {
    ("actor", "weights"): mark("actor weights off the GPU"),
    ("actor", "optimizer"): mark("actor optimizer off the GPU"),
    ("critic", "weights"): mark("critic weights off the GPU"),
    ("critic", "optimizer"): mark("critic optimizer off the GPU"),
}
_CPU_ADAM: dict[TrainedRole, str] = {"actor": mark("actor CPU Adam"), "critic": mark("critic CPU Adam")}
_WEIGHTS: dict[TrainedRole, str] = {"actor": mark("actor weights"), "critic": mark("critic weights")}
_PAUSED = mark("gradient buffers of the paused trainer")
_SYNCED = mark("a copy of the weights for the sync")
_PINNED = mark("with pinned blocks rounded to powers of two")


def host_cells(inputs: Inputs, phases: Sequence[Phase]) -> list[list[Cell]]:
    """Everything on one node in each of the phases."""
    always, batch = process_cells(inputs), batch_cells(inputs)
    engine = [*_engine_copies(inputs), *_swap(inputs)]
    return [[*always, *_role_states(inputs, phase), *_own_cells(inputs, phase, engine, batch)] for phase in phases]


def _own_cells(inputs: Inputs, phase: Phase, engine: list[Cell], batch: list[Cell]) -> list[Cell]:
    """What is there in some phases only."""
    if phase == "model_load":
        return loading_cells(inputs)
    if phase == "rollout_init":
        return engine
    cells = [*engine, *(batch_cells(inputs, validating=True) if phase == "validation" else batch)]
    if phase == "actor_update":
        cells += offloaded_activations(inputs, "actor")
    if phase == "critic_update":
        cells += offloaded_activations(inputs, "critic")
    return [*cells, *_checkpoint(inputs)] if phase == "checkpoint" else cells


def _role_states(inputs: Inputs, phase: Phase) -> list[Cell]:
    """States of all roles that one node holds; roles with nodes of their own are not added up: the fullest counts."""
    topology = inputs.run.topology
    actor = [*_states(inputs, "actor", phase), *_paged_out(inputs)]
    reference = _reference(inputs.of("reference"))
    critic = _states(inputs, "critic", phase) if inputs.run.has_critic else []
    # Roles share nodes where they share GPUs, or a node has GPUs for two of them.
    if topology.roles_share_cards or 2 * inputs.node_gpus <= topology.gpus_per_node:
        return [*actor, *reference, *critic, *reward_cells(inputs, "host")]
    if topology.reference_beside_actor:
        actor, reference = [*actor, *reference], []
    return max(actor, critic, reference, key=total)


@per_ledger
def _paged_out(inputs: Inputs) -> list[Cell]:
    """Moments in unified memory, which come to the host where the GPUs are full."""
    if not inputs.per.paged or inputs.adapters:
        return []
    none = in_bytes("of moments", 0, basis="estimated")
    size = none.within(high=inputs.state("paged") * inputs.trained * inputs.node_part)
    return [cell("offloaded_optimizer", size, mark("moments in unified memory, where the GPUs are full"))]


def states_on_node(inputs: Inputs, role: TrainedRole | Literal["reference"]) -> int:
    """Bytes of one role's states (`inputs`: of the role) on one of its nodes while engines generate, resting or not."""
    return total(_reference(inputs) if role == "reference" else _states(inputs, role, "rollout_generate"))


@per_ledger
def pinned_rounding(inputs: Inputs) -> float:
    """How much larger pinned copies are than the states: torch rounds each block to a power of two and keeps it. FSDP
    moves one shard a unit (decoder layers, then embedding and head); DeepSpeed pins large flat buffers."""
    if inputs.by_zero:
        block = max(1, round(c.FP32 * min(inputs.shape.parameters / inputs.shards, c.SUB_GROUP)))
        return _power_of_two(block) / block
    layer = max(1, layer_parameters(inputs.shape) * c.FP32 // inputs.shards)
    root = max(1, embedding_parameters(inputs.shape) * c.FP32 // inputs.shards)
    nominal = inputs.shape.layers * layer + root
    return (inputs.shape.layers * _power_of_two(layer) + _power_of_two(root)) / nominal


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _pinned(inputs: Inputs, size: Amount, alonefactor: float = 1) -> Amount:
    """`size` in pinned memory."""
    factor = max(alonefactor, pinned_rounding(inputs))
    return size.within(low=size.low, high=in_bytes(_PINNED, size.value * factor)) if factor > 1 else size


def process_cells(inputs: Inputs) -> list[Cell]:
    """Worker processes of every GPU on the node, the driver, and the named helpers (agents, loaders)."""
    if inputs.run.is_on("host.trains"):
        more = int(sum(inputs.run.number(knob) or 0 for knob in _HELPERS))
        count = quantity("processes without a card", inputs.node_gpus + more)
        return [cell("processes", (count * c.HELPER).spread(c.PROCESS_LOW, c.PROCESS_HIGH))]
    gpus = max(inputs.node_gpus, inputs.engine_gpus)
    count = quantity("worker processes", gpus * inputs.mechanics.processes_per_gpu)
    helpers = quantity("helper processes", int(sum(inputs.run.number(knob) or 0 for knob in _HELPERS)))
    size = count * inputs.mechanic("host_process_bytes") + c.DRIVER
    size = size + helpers * c.HELPER if helpers else size
    return [cell("processes", size.spread(c.PROCESS_LOW, c.PROCESS_HIGH))]


@per_ledger
def _states(inputs: Inputs, role: TrainedRole, phase: Phase) -> list[Cell]:
    """States of one role that rest, or are updated, in host RAM."""
    inputs = inputs.of(role)
    offload = offload_of(inputs, role)
    if inputs.mechanics.offload_lowers_update or offload.everything:
        return [*_cpu_adam(inputs, role, offload), *_copies(inputs, role, phase)]
    cells: list[Cell] = []
    back = phase in _ON_GPU
    if offload.weights and phase != "model_load":
        cells.append(_rested(inputs, role, "weights", inputs.state("weights"), back))
    # Torch's moments appear at the first step; DeepSpeed's at initialisation.
    not_yet = phase == "model_load" or (phase in _BEFORE_UPDATES and inputs.moments_wait and inputs.split is None)
    if (offload.optimizer or offload.sleeps) and not not_yet and not inputs.adapters:
        leaves = (1 - quantity("on the CPU", cpu_part(inputs, role), "%")) * inputs.state("optimizer")
        cells.append(_rested(inputs, role, "optimizer", leaves, back))
    return [*cells, *_stepping_on_cpu(inputs, role)]


def _stepping_on_cpu(inputs: Inputs, role: TrainedRole) -> list[Cell]:
    """The part of Megatron's optimizer that lives and steps on the CPU, with the gradients copied to it."""
    fraction = cpu_part(inputs, role)
    if inputs.split is None or not fraction or inputs.adapters:
        return []
    per = inputs.state("optimizer") + c.IN_FP32
    size = quantity("of the optimizer", fraction, "%") * per * _of_rank(inputs, "optimizer") * inputs.here
    return [cell("offloaded_optimizer", _pinned(inputs, size), inputs.split.note(mark("on the CPU, {split}")))]


def _of_rank(inputs: Inputs, what: str) -> Amount:
    """Parameters whose weights, or optimizer, a rank of Megatron has."""
    assert inputs.split is not None
    count = inputs.split.parameters if what == "weights" else inputs.split.optimizer
    return quantity("parameters of a rank", count, basis="estimated")


def _rested(inputs: Inputs, role: TrainedRole, what: str, per: Amount, back: bool) -> Cell:
    """States resting in pinned host memory; torch keeps the pinned blocks while the states are on the GPU."""
    if inputs.split is not None:
        size = per * _of_rank(inputs, what) * inputs.here
    else:
        count = inputs.parameters if what == "weights" else inputs.trained
        size = per * count * inputs.node_part
    owner: Owner = "offloaded_weights" if what == "weights" else "offloaded_optimizer"
    words = Note(_OFF_GPU[role, what])
    if back:
        words = note(mark("{states}; on the GPU now, torch keeps the pinned blocks"), states=words)
    return cell(owner, _pinned(inputs, size), words)


def _cpu_adam(inputs: Inputs, role: TrainedRole, offload: Offload) -> list[Cell]:
    """DeepSpeed's CPU Adam (or FSDP's CPU offload): the states live on the host all the time."""
    cells: list[Cell] = []
    nominal = inputs.parameters * inputs.node_part
    if offload.adam_on_host and not inputs.adapters:
        states = _pinned(inputs, c.CPU_ADAM * nominal, c.CPU_ADAM_MARGIN)
        cells.append(cell("offloaded_optimizer", states, _CPU_ADAM[role]))
    elif offload.sleeps and not inputs.adapters:
        leaves = inputs.state("optimizer") - (inputs.state("master") if masters_stay(inputs) else 0)
        cells.append(_rested(inputs, role, "optimizer", leaves, back=False))
    if offload.weights or offload.weights_sleep or offload.everything:
        per = inputs.state("weights") if inputs.adapters else c.IN_BF16  # of a frozen base, as it is packed
        size = per * (nominal if inputs.split is None else _of_rank(inputs, "weights") * inputs.here)
        cells.append(cell("offloaded_weights", _pinned(inputs, size), _WEIGHTS[role]))
    return cells


def _copies(inputs: Inputs, role: TrainedRole, phase: Phase) -> list[Cell]:
    """Gradients of a trainer that pauses as one, and the copies of its weights that stay in host RAM."""
    if phase == "model_load" or inputs.split is None or inputs.adapters:
        return []
    weights = _of_rank(inputs, "weights") * inputs.here
    cells = []
    if inputs.mechanics.pauses_whole:
        cells.append(cell("offloaded_weights", _pinned(inputs, inputs.state("gradients") * weights), _PAUSED))
    kept = 0 if role != "actor" or inputs.run.is_on("host.single_weights") else inputs.mechanics.host_weight_copies
    if kept:
        cells.append(
            cell("offloaded_weights", _pinned(inputs, quantity("copies", kept) * c.IN_BF16 * weights), _SYNCED)
        )
    return cells


@per_ledger
def _reference(inputs: Inputs) -> list[Cell]:
    if inputs.run.recipe.teacher and teacher_rests_on_host(inputs):
        copy, words = teacher_copy(inputs)
        return [cell("reference", _pinned(inputs, copy * inputs.node_part), words)]
    if not inputs.has_reference or not reference_on_host(inputs):
        return []
    here = inputs.parameters * inputs.node_part
    if inputs.split is not None:
        here = _of_rank(inputs, "weights") * inputs.here
    return [cell("reference", _pinned(inputs, inputs.state("reference") * here))]


def _engine_copies(inputs: Inputs) -> list[Cell]:
    """Weights that sleeping engines keep in pinned host memory (sleep level 1), one copy an engine."""
    level = inputs.run.number("rollout.sleep_level")
    level = inputs.mechanics.sleep_level if level is None else level
    if not inputs.has_engine or not inputs.run.topology.colocated or not sleeps(inputs) or level != 1:
        return []
    size = engine_weights(inputs).amount * quantity("GPUs of a node", inputs.engine_gpus)
    return [cell("engine_copy", size.spread(high=c.COPY_ROUNDING), mark("sleeping engines"))]


def _swap(inputs: Inputs) -> list[Cell]:
    """The engine's swap space, which vLLM's V0 engine pins at start; V1 has none."""
    if not inputs.has_engine:
        return []
    known = inputs.run.number("host.swap_space")
    version = inputs.run.libraries.get("vllm")
    old = None if version is None else version_in(c.V0_ENGINE, version)
    if old is False:
        return []
    each = in_bytes("of swap space", c.SWAP_BYTES if known is None else known * GIB)
    whole = each * quantity("GPUs of a node", inputs.engine_gpus)
    words = mark("vLLM's V0 engine")
    if old:
        return [cell("swap", whole, words)]
    expected = whole if known is not None else in_bytes("of swap space", 0)
    return [cell("swap", expected.within(low=0, high=whole).rests_on("estimated"), words)]


def _batch_of(inputs: Inputs, prompts: float, samples: float) -> Amount:
    """Bytes of one step's batch: expected, and up to the cap of an image."""
    run, length = inputs.run, inputs.update.length
    per_token = in_bytes("", c.TOKEN_BYTES) * quantity("tokens", length)
    response = quantity("tokens of a response", inputs.update.response or length)
    text = quantity("samples", prompts * samples) * (per_token + in_bytes("", c.RESPONSE_TOKEN_BYTES) * response)
    if not inputs.shape.vision_parameters:
        return text
    cap = run.number("data.max_pixels") or c.TYPICAL_IMAGE_PIXELS
    pixels = quantity("pixels", min(cap, c.TYPICAL_IMAGE_PIXELS), high=cap)
    per_pixel = in_bytes("of a patch", c.PATCH_BYTES) / quantity("pixels a patch", c.PATCH_PIXELS)
    return text + quantity("prompts", prompts) * pixels * per_pixel


def batch_cells(inputs: Inputs, *, validating: bool = False) -> list[Cell]:
    """The step's batch in the driver, and what of it lies in Ray's object store. A validation answers each prompt once.
    Frameworks that take the whole set at once do not tell its size: no less than a step's batch is counted."""
    run = inputs.run
    batch = _batch_of(inputs, run.number("data.train_batch") or 0, run.number("rollout.samples_per_prompt") or 1)
    validated = run.number("data.val_batch") if validating else None
    if validated is not None:
        batch = max(batch, _batch_of(inputs, max(0, validated), 1))
    driver = cell("driver", c.BATCH_COPIES * batch, mark("the step's batch in the driver"))
    ceiling = run.number("host.object_store") or (inputs.ram_bytes * c.STORE_PART if inputs.ram_bytes else None)
    used, top = batch.rests_on("estimated"), c.BATCH_COPIES.value * batch.high
    if ceiling is not None:
        store = in_bytes("of the object store", ceiling)
        used, top = least(used, store), min(top, ceiling)
        bounded = used.within(low=0, high=in_bytes(mark("of what it may grow to"), top))
    else:
        bounded = used.within(low=0, high=top)
    return [driver, cell("object_store", bounded, mark("the batch in Ray's object store"))]


def loading_cells(inputs: Inputs) -> list[Cell]:
    """Checkpoint tensors in host RAM while roles load, one role after the other."""
    model, ranks = c.IN_BF16 * inputs.parameters, inputs.here
    whole = c.IN_FP32 * inputs.parameters if inputs.trainer == "fsdp" and inputs.per.weights > c.BF16 else model
    fsdp = inputs.trainer == "fsdp" or inputs.run.by_fsdp
    once = inputs.run.value("host.load_once") if fsdp else None
    tied = once is None and inputs.trainer == "fsdp" and inputs.shape.tied
    if inputs.per.weights < c.BF16:  # packed while it is read
        whole = inputs.state("weights") * inputs.parameters
    if inputs.mechanics.loads_full_model_per_rank or once is False or tied:
        words = mark("every rank loads the model, tied embeddings cannot be built on the meta device")
        words = words if tied else mark("every rank loads the model, no sharded loading")
        loading = cell("loading", (whole * ranks).within(low=whole.value), words)
    elif inputs.trainer == "fsdp" or once is True:
        loading = cell("loading", whole, mark("rank 0 loads the model"))
    else:
        file = least(model, in_bytes("of one checkpoint file", c.SHARD_FILE, basis="estimated"))
        seen = inputs.stage_known and inputs.run.unread is None  # else nothing says that they share while they load
        ends = (
            (file.value, file * ranks if seen else model * ranks) if inputs.stage == 3 else (model.value, model * ranks)
        )
        size = (file * ranks).rests_on("estimated").within(*ends)
        loading = cell("loading", size, mark("each rank reads one checkpoint file"))
    cache = in_bytes("of page cache", 0).within(high=model)
    return [loading, cell("loading", cache, mark("page cache of the checkpoint"))]


def _checkpoint(inputs: Inputs) -> list[Cell]:
    """Saving: the node's shards copied to the host, and one full copy where rank 0 writes a Hugging Face model.

    Megatron's distributed checkpoints are written by every rank; at the most rank 0 also collects a Hugging Face model.
    """
    if inputs.adapters:
        return [cell("checkpoint", c.IN_FP32 * adapter_count(inputs))]
    if inputs.trainer == "fsdp":
        weights = inputs.state("weights")
        nominal = inputs.parameters * inputs.node_part
        size = (weights + inputs.state("optimizer")) * nominal
        bounded = size.within(low=(weights * nominal).value, high=size + c.IN_FP32 * inputs.parameters)
        return [cell("checkpoint", bounded, mark("shards of weights and optimizer on their way to disk"))]
    size = c.IN_BF16 * inputs.parameters
    if inputs.split is None:
        return [cell("checkpoint", size.spread(high=2), mark("rank 0 collects the model"))]
    shards = c.IN_BF16 * inputs.parameters * inputs.node_part
    copied = shards
    if not offload_of(inputs, "actor").adam_on_host:
        copied = shards + inputs.state("optimizer") * _of_rank(inputs, "optimizer") * inputs.here
    bounded = copied.within(low=shards.value, high=copied + size)
    return [cell("checkpoint", bounded, mark("shards of weights and optimizer on their way to disk"))]


def sub_group_sizes(shape: ModelShape, ranks: int) -> tuple[int, ...]:
    """Elements that one of `ranks` GPUs may hold of a sub-group of a dense model, without repetitions.

    transformers' Trainer keeps norms and biases, which do not decay, in a group of their own; before it knew a model's
    norms it did not: both are listed.
    """
    if shape.experts or shape.per_layer_input or shape.linear_layers:
        return ()
    both = (*sub_groups(shape, ranks), *sub_groups(shape, ranks, only_matrices=True))
    return tuple(dict.fromkeys(both))


def sub_groups(shape: ModelShape, ranks: int, *, only_matrices: bool = False) -> list[int]:
    """Elements on one of `ranks` GPUs of every sub-group: tensors are added in the module's order until sub_group_size
    is reached (deepspeed@edaa722 deepspeed/runtime/zero/stage3.py, _create_fp16_sub_groups)."""
    groups, held = [], 0
    for elements, small in _tensors(shape):
        held += 0 if small and only_matrices else -(-elements // ranks)
        if held >= c.SUB_GROUP:
            groups.append(held)
            held = 0
    return [*groups, held] if held else groups


def _tensors(shape: ModelShape) -> Iterator[tuple[int, bool]]:
    """Elements of every tensor of the text model in its order, and whether it is a norm or a bias."""
    hidden, queries, keys = shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    table = shape.vocab * hidden
    projections = ((hidden * queries, queries), (hidden * keys, keys), (hidden * keys, keys))
    norms = [hidden, hidden] + [shape.head_dim] * (2 if shape.head_norm else 0)
    matrices = (
        sum(size for size, _ in projections) + hidden * queries + shape.mlp_matrices * hidden * shape.intermediate
    )
    text = shape.parameters - shape.vision_parameters - table * (1 if shape.tied else 2) - hidden
    biased = text - shape.layers * (matrices + sum(norms)) == shape.layers * (queries + 2 * keys)
    yield table, False
    for _ in range(shape.layers):
        for weight, bias in projections:
            yield weight, False
            if biased:
                yield bias, True
        yield hidden * queries, False
        for _ in range(shape.mlp_matrices):
            yield hidden * shape.intermediate, False
        for norm in norms:
            yield norm, True
    yield hidden, True
    if not shape.tied:
        yield table, False
