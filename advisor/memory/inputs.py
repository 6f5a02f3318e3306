"""Resolves what the formulas need of a run and a machine: trainer kind, shards, bytes per parameter, passes."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Mechanics
from advisor.language import listed, mark, say
from advisor.machine.inventory import Machine
from advisor.memory import batches
from advisor.memory import constants as c
from advisor.memory.amount import Amount, Unit, as_amount, in_bytes, quantity
from advisor.memory.megatron import Split, expert_parameters, split_of
from advisor.memory.parameters import (
    Bytes,
    Trainer,
    adapter_parameters,
    bytes_of,
    embedding_parameters,
    is_low_rank,
    layer_parameters,
    targets_of,
)
from advisor.memory.trainer import has_engine, shards_of, stage_of, tensor_ways, trainer_of, unread_stage, whole_on_each
from advisor.run.run import Knob, ModelShape, Run, evaluates_only
from advisor.units import show_bytes
from advisor.words import Basis, weakest

SHARE = "rollout.memory_share"
per_ledger = lru_cache(maxsize=64)
"""Keeps what a formula gave for the last inputs, compared by identity; shared by phases, so not to be changed."""
_STATE_FIELDS = {
    "weights": ("weight_bytes",),
    "gradients": ("gradient_bytes",),
    "optimizer": ("master_bytes", "moment_bytes"),
    "master": ("master_bytes",),
    "paged": ("moment_bytes",),
    "step_extra": ("step_extra_bytes",),
    "reference": ("reference_bytes",),
}
_TABLES = (("embed_tokens", "word_embeddings", "all-embedding"), ("lm_head", "output_layer"))
"""Names of the embedding and of the head among modules that are trained whole."""
_CUT = (
    *("heads", "kv_heads", "intermediate", "linear_key_width", "linear_value_width", "expert_intermediate"),
    *("shared_intermediate", "vocab", "parameters", "vision_parameters"),
)
"""Of a model's shape, what tensor-parallel ranks of an FSDP trainer split."""
_MOST_LAID = ("layers", "parameters", "vision_parameters", "global_layers", "wide_layers")
_LEAST_LAID = ("linear_layers", "dense_layers", "shared_kv_layers", "shared_kv_globals")
"""What of it the cards have parts of over which a process lays its model: the most that one has, and the least."""
StateKind = Literal["weights", "gradients", "optimizer", "master", "paged", "step_extra", "reference"]


class Inputs(Struct, frozen=True, eq=False):
    """Resolved inputs of one ledger. Counts of GPUs are of the whole job unless they say otherwise."""

    run: Run
    shape: ModelShape
    mechanics: Mechanics
    trainer: Trainer
    stage: int
    """ZeRO stage; FSDP counts as 3."""
    shards: int
    node_gpus: int
    """Training GPUs on one node."""
    engine_gpus: int
    """GPUs on one node that hold rollout engines."""
    per: Bytes
    adapters: int
    """LoRA parameters; 0: all weights are trained."""
    gpu_bytes: int | None
    ram_bytes: int | None
    has_engine: bool
    update: batches.Pass
    scoring: batches.Pass
    critic: batches.Pass
    basis: Basis
    assumed: tuple[str, ...]
    stage_known: bool = True
    """False: the DeepSpeed file that says the stage could not be read, so `stage` is a guess."""
    split: Split | None = None
    """Megatron's shares; None: another trainer, or no parallel size is known."""
    gpu_context: int = c.GPU_CONTEXT
    """Bytes of a CUDA context on this card."""
    evaluation: batches.Pass | None = None
    """The pass that scores an evaluation batch; None: nothing is evaluated, or only by a rollout."""
    tensor: int = 1
    """GPUs that split every matrix of an FSDP trainer (Megatron's are in `split`)."""
    stream: int = 1
    """Of these, GPUs that split the stream between the layers and its norms, too."""
    assumed_mechanics: frozenset[str] = frozenset()
    ran_out: bool = False
    """A GPU of the run ran out: torch had given back by then what nothing used."""
    """Fields of the mechanics that nobody stated."""

    @property
    def parameters(self) -> Amount:
        """Of the policy, text and vision."""
        return quantity("parameters", self.shape.parameters, basis=self.shape.basis)

    @property
    def over(self) -> Amount:
        """GPUs over which one copy of the training states is spread."""
        return quantity("GPUs", self.shards, basis=self._spread_basis)

    @property
    def here(self) -> Amount:
        """Training GPUs on one node."""
        return quantity("GPUs", self.node_gpus, basis=self._spread_basis)

    @property
    def _spread_basis(self) -> Basis:
        sure = self.run.topology.known and self.stage_known and self.trainer != "megatron"
        return "computed" if sure else "estimated"

    @property
    def by_zero(self) -> bool:
        """Whether DeepSpeed shares the states, and not FSDP under a trainer that serves both."""
        return self.trainer == "deepspeed" and not self.run.by_fsdp

    @property
    def moments_wait(self) -> bool:
        """Whether an optimizer's moments appear at its first step, as torch's do; DeepSpeed makes them at the start."""
        return not self.by_zero

    def state(self, kind: StateKind) -> Amount:
        """Bytes per parameter that the trainer keeps of one kind of state."""
        unknown = not self.assumed_mechanics.isdisjoint(_STATE_FIELDS[kind])
        return in_bytes("", getattr(self.per, kind), basis="estimated" if unknown else "computed")

    def mechanic(self, field: str, name: str = "", unit: Unit = "bytes") -> Amount:
        """A number of the mechanics, estimated where nobody stated it; `name` is marked for translation."""
        basis: Basis = "estimated" if field in self.assumed_mechanics else "computed"
        return quantity(name, getattr(self.mechanics, field), unit, basis=basis)

    def knob(self, knob: str, name: str, usual: float, unit: Unit = "") -> Amount:
        """A knob's number, or the usual one as an assumption."""
        value = self.run.number(knob)
        if value is None:
            return quantity(name, usual, unit, basis="estimated")
        return quantity(name, value, unit, basis=self.run.knobs[knob].basis)

    @property
    def by_tensor(self) -> bool:
        """Whether layers are counted tensor by tensor: LoRA in fp32 on a half-precision base under autocast. DeepSpeed
        casts the adapters with the model."""
        casts = self.mechanics.adapter_casts and self.trainer == "ddp" and self.per.weights <= c.BF16
        return casts and self.adapters > 0

    @property
    def answers_given(self) -> bool:
        """Whether the answers stand in the data: fine-tuning, preference pairs."""
        return self.run.recipe.answers == "given"

    @property
    def trained(self) -> Amount:
        """Parameters with gradients and optimizer states beside adapters': all but a frozen tower, some layers with the
        tables, or modules that are trained whole beside the adapters."""
        if self.adapters:
            return quantity("parameters of modules trained whole", self.saved, basis=self.shape.basis)
        if layers := self.run.number("actor.trained_layers"):
            count = embedding_parameters(self.shape) + int(layers) * layer_parameters(self.shape)
            return quantity("parameters of the layers in training", count, basis=self.shape.basis)
        if not self.run.is_on("actor.freeze_vision") or not self.shape.vision_parameters:
            return self.parameters
        count = self.shape.parameters - self.shape.vision_parameters
        return quantity("trained parameters", count, basis=self.shape.basis)

    @property
    def copied(self) -> int:
        """Parameters of embedding and head that are trained in copies of their own, beside adapters."""
        names = str(self.run.value("actor.saved_modules") or "").lower()
        tables = sum(any(word in names for word in words) for words in _TABLES)
        return tables * self.shape.vocab * self.shape.hidden if self.adapters else 0

    @property
    def saved(self) -> int:
        """Parameters that are trained whole beside adapters: these, and a vision tower."""
        tower = self.run.is_on("actor.vision_beside_adapters")
        return self.copied + (self.shape.vision_parameters if tower else 0)

    @property
    def expandable(self) -> bool:
        """Whether torch's segments grow and shrink with what is asked of them."""
        said = str(self.run.value("allocator.settings") or "").replace(" ", "").lower()
        return self.mechanics.expandable_segments or "expandable_segments:true" in said

    @property
    def node_part(self) -> Amount:
        """Copies of the sharded states that one node holds: a part of one, or several where every GPU has its own."""
        if self.stage and self.node_gpus == self.shards:
            return as_amount(1).rests_on(self._spread_basis)
        return self.here / self.over if self.stage else self.here

    @property
    def spans(self) -> int:
        """Nodes over which one copy of the sharded states is spread."""
        return -(-self.shards // self.node_gpus)

    @property
    def copies(self) -> int:
        """Copies of them in the whole job: more than one where shards stay within a group of GPUs (HSDP)."""
        return max(1, self.run.topology.actor_gpus // self.shards)

    @per_ledger
    def of(self, role: str) -> Inputs:
        """The same for a role with a model, or a number of GPUs, that is not the actor's."""
        topology, own = self.run.topology, self.run.critic_model if role == "critic" else None
        if own is not None and own is not self.shape:
            adapters = _adapters(self.run, own, batches.Assumptions()) if self.adapters else 0
            split = split_of(self.run, own) if self.split is not None else None
            return replace(self, shape=own, adapters=adapters, split=split).of(role)
        count = {"critic": topology.critic_gpus, "reference": topology.reference_gpus}.get(role)
        if count is None or count == topology.actor_gpus or self.split is not None:
            return self
        run = replace(self.run, topology=replace(topology, actor_gpus=count))
        return replace(self, run=run, shards=shards_of(run), node_gpus=max(1, min(topology.gpus_per_node, count)))

    @property
    def has_reference(self) -> bool:
        """A reference model of its own (with LoRA the adapter is switched off instead)."""
        return self.run.has_reference and not self.adapters


@per_ledger
def of_rank(inputs: Inputs) -> Inputs:
    """The same inputs with the matrices of one tensor-parallel and the experts of one expert-parallel rank of an FSDP
    trainer; they themselves where nothing splits either. States are not concerned: FSDP spreads them over all
    dimensions of the mesh alike."""
    shape = inputs.shape if inputs.tensor == 1 else shape_of_rank(inputs.shape, inputs.tensor)
    ways = int(inputs.run.number("actor.expert_parallel") or 1) if inputs.trainer == "fsdp" and shape.experts else 1
    if ways > 1:
        elsewhere = expert_parameters(shape) * (ways - 1) // ways
        shape = replace(shape, experts=-(-shape.experts // ways), parameters=shape.parameters - elsewhere)
    return inputs if shape is inputs.shape else replace(inputs, shape=shape)


def shape_of_rank(shape: ModelShape, ways: int) -> ModelShape:
    """Heads, MLP, experts and vocabulary split `ways` ways, the stream whole; its parameters are those that FSDP then
    gathers (torch's ColwiseParallel and RowwiseParallel: every matrix has one dimension cut)."""
    return replace(shape, **{name: -(-getattr(shape, name) // ways) for name in _CUT})


def laid_over(shape: ModelShape, gpus: int) -> ModelShape:
    """Layers and parameters of one of the GPUs over which a process lays its model, evenly (device_map: accelerate's
    balanced memory); its widths stay whole, and the logits are on one of them."""
    if gpus <= 1:
        return shape
    sizes = {name: -(-getattr(shape, name) // gpus) for name in _MOST_LAID} | {
        name: getattr(shape, name) // gpus for name in _LEAST_LAID
    }
    return replace(shape, **sizes)


def missing_inputs(run: Run, machine: Machine, crash: Crash | None) -> tuple[str, ...]:
    """Inputs without which nothing can be computed, in words."""
    missing = [run.undescribed] if run.undescribed else []
    missing += [say("the settings in {file}", file=name) for name in run.missing_files]
    if run.model is None:
        missing.append(
            say("the shape of the model {model} (--model NAME or a config.json)", model=run.model_name)
            if run.model_name
            else say("the shape of the model (--model NAME or a config.json)")
        )
    has_cards = crash is None or crash.platform not in ("mps", "cpu", "tpu")
    if has_cards and not run.topology.known and not run.topology.assumed and not whole_on_each(run):
        roles = run.recipe.answers == "generated" and run.algorithm != "unknown"
        held = mark("how many of the GPUs each role has (the launch script says it, or --gpus)")
        trained = mark("how many of the GPUs train it (the launch script says it, or --gpus)")
        told = say(held if roles else trained)
        missing.append(told if machine.gpus else say("the number of GPUs (--gpus 8xA100-80GB)"))
    return tuple(missing)


def unread_parts(run: Run) -> tuple[Knob, ...]:
    """Settings that nobody could read (a variable of elsewhere, an argument) and on which a main part of the count
    rests: how long rows are, how many a pass has, the engine's share, the rank of adapters. A token budget bounds a
    pass however long its rows are."""
    bounded = run.is_on("actor.dynamic_batch") and run.number("actor.tokens_per_gpu")
    lengths = () if bounded else batches.unread_lengths(run)
    names = (SHARE, "rollout.tensor_parallel") if has_engine(run) else ()
    others = (run.knobs[name] for name in (*names, "actor.lora_rank") if name in run.knobs and run.knobs[name].unread)
    return tuple(dict.fromkeys((*lengths, *batches.unread_rows(run), *others)))


def gpu_of(machine: Machine, crash: Crash | None) -> tuple[int | None, tuple[str, ...]]:
    """Bytes of one GPU (None: unknown), and what does not go together: the GPU that the run died on counts."""
    known, printed = machine.gpu_bytes, crash.gpu_total_bytes if crash is not None else None
    if known is None or printed is None or abs(known - printed) <= c.SAME_GPU * printed:
        return known or printed, ()
    doubt = say(
        "The log's card has {printed}, the machine's {known}: memory is counted for the card of the log, on which the "
        "run died.",
        printed=show_bytes(printed),
        known=show_bytes(known),
    )
    return printed, (doubt,)


def read_inputs(run: Run, machine: Machine, crash: Crash | None = None) -> Inputs:
    """Resolve the inputs. The model's shape must be known (see `missing_inputs`)."""
    if run.model is None:
        raise ValueError("the model's shape is unknown")
    assumed = batches.Assumptions()
    topology = run.topology
    trainer = trainer_of(run)
    stage = stage_of(run, trainer)
    unread = unread_stage(run) if trainer == "deepspeed" else ""
    if unread:
        assumed.note(
            say(
                "ZeRO stage {stage} without offload: {unread} was not read, so it may be 0 to 3",
                stage=stage,
                unread=unread,
            )
        )
    capacity, _ = gpu_of(machine, crash)
    if capacity is None and run.recipe.answers == "generated" and not run.is_on("host.trains"):
        assumed.note(say("the card's size is unknown: the rollout engine's share is left out"))
    if not topology.known:
        alike = say("every card holds a whole copy, however many there are") if whole_on_each(run) else ""
        assumed.note(topology.assumed or alike or say("{count} training GPUs", count=topology.actor_gpus))
    if run.model.basis == "estimated":
        assumed.note(say("model shape: {note}", note=run.model.note))
    if run.model.remembered:
        told = {"model": run.model.name}
        assumed.note(say("the layers and widths of {model}: its config.json (--model FILE) settles them", **told))
    split = split_of(run, run.model) if trainer == "megatron" else None
    shape = laid_over(run.model, topology.process_gpus) if trainer == "ddp" else run.model
    if trainer == "megatron" and split is None:
        assumed.note(say("Megatron: states spread evenly over all training GPUs"))
    if run.assumed_mechanics:
        told = {"trainer": run.mechanics.trainer, "fields": listed(run.assumed_mechanics)}
        assumed.note(say("as is usual with {trainer}, for the dialect does not say it: {fields}", **told))
    _note_guesses(run, trainer, assumed)
    per_node = max(1, topology.gpus_per_node)
    per = bytes_of(run, trainer)
    if evaluates_only(run):  # nothing is trained
        per = replace(per, gradients=0.0, optimizer=0.0, step_extra=0.0, master=0.0, paged=0.0)
    splits = run.is_on("actor.tensor_splits_stream", run.mechanics.tensor_splits_stream)
    guessed = bool(unread) or (run.unread is not None and run.unread.told_by in ("name", "nothing"))
    sure = topology.known and not guessed and trainer != "megatron"
    return Inputs(
        run=run,
        shape=shape,
        mechanics=run.mechanics,
        trainer=trainer,
        stage=stage,
        shards=shards_of(run),
        node_gpus=max(1, min(per_node, topology.actor_gpus)),
        engine_gpus=min(per_node, topology.rollout_gpus),
        per=per,
        adapters=_adapters(run, shape, assumed),
        gpu_bytes=capacity,
        ram_bytes=machine.host.total_bytes or machine.host.ceiling_bytes,
        has_engine=has_engine(run),
        update=batches.update_pass(run, assumed),
        scoring=batches.scoring_pass(run, assumed),
        critic=batches.critic_pass(run, assumed),
        evaluation=batches.evaluation_pass(run, assumed),
        tensor=tensor_ways(run) if trainer == "fsdp" else 1,
        stream=tensor_ways(run) if trainer == "fsdp" and splits else 1,
        basis=weakest(run.model.basis, "computed" if sure else "estimated"),
        assumed=tuple(assumed.said),
        stage_known=not guessed,
        split=split,
        gpu_context=_contexts().get(_plain(machine.usable[0].name), c.GPU_CONTEXT) if machine.gpus else c.GPU_CONTEXT,
        assumed_mechanics=frozenset(run.assumed_mechanics),
        ran_out=crash is not None and crash.memory == "gpu",
    )


_LIKE: dict[Trainer, str] = {
    "fsdp": mark("the trainer holds memory as torch's FSDP does: no dialect describes it"),
    "deepspeed": mark("the trainer holds memory as transformers' Trainer with DeepSpeed does: no dialect describes it"),
    "megatron": mark("the trainer holds memory as Megatron does: no dialect describes it"),
    "ddp": mark("the trainer holds memory as transformers' Trainer does: no dialect describes it"),
}


def _note_limits(run: Run, trainer: Trainer, assumed: batches.Assumptions) -> None:
    """Kinds of runs whose readings this ledger was not shown to meet (docs/accuracy.md)."""
    if run.framework == "unknown":
        assumed.note(say(_LIKE[trainer]))
    if (run.number("actor.quantized_bits") or 16) < 16:
        assumed.note(say("a quantised base: counted from the libraries' code, compared with no reading"))
    known = run.number("data.pack_tokens") or run.value(batches.LONGEST_ROW)
    if run.recipe.answers == "given" and not known and (rows := batches.row_lengths(run)) is not None:
        assumed.note(
            say(
                "rows of {names} have {mean:.0f} tokens on average and {longest:.0f} at the most, as is published of "
                "them (--max-row N says otherwise)",
                names=str(run.value("data.sets")),
                mean=rows.mean,
                longest=rows.longest,
            )
        )
    elif run.recipe.answers == "given" and not known:
        assumed.note(
            say(
                "lengths of the data are not known: its longest row is taken as {part:.0%} of the cap (--max-row N "
                "says what it is)",
                part=batches.usual_longest(run, batches.sequence_length(run, batches.Assumptions())[0]),
            )
        )


def _note_guesses(run: Run, trainer: Trainer, assumed: batches.Assumptions) -> None:
    for knob in run.knobs.values():
        if knob.source == "assumed" and knob.value is not None:
            told = {"knob": knob.name, "value": knob.value, "note": knob.note}
            assumed.note(say("{knob} = {value} ({note})", **told) if knob.note else f"{knob.name} = {knob.value}")
    for knob in batches.unread_rows(run):
        assumed.note(say("{key} could not be read: the least that a pass can be is counted", key=knob.key))
    engine = has_engine(run)
    if engine and run.number(SHARE) is None:
        share = run.knobs.get(SHARE)
        told = {"share": c.ASSUMED_SHARE, "key": share.key if share is not None else ""}
        assumed.note(
            say("{key} could not be read: the engine's share of the card is taken as {share}, vLLM's own", **told)
            if share is not None and share.unread
            else say("the engine's share of the card: {share}, vLLM's own", **told)
        )
    _note_limits(run, trainer, assumed)
    if is_low_rank(str(run.value("actor.optimizer") or "").lower()) and not run.number("actor.projection_rank"):
        assumed.note(say("rank {rank} of the optimizer's projections", rank=c.USUAL_RANK))


def _adapters(run: Run, shape: ModelShape, assumed: batches.Assumptions) -> int:
    """LoRA parameters on all linear layers; 0 where all weights are trained."""
    if not run.trains_adapters:
        return 0
    rank = run.number("actor.lora_rank")
    if not rank:
        assumed.note(say("LoRA rank {rank}", rank=c.ASSUMED_RANK))
    targets = targets_of(run, experts_are_linear=run.mechanics.experts_are_linear)
    return adapter_parameters(shape, rank or c.ASSUMED_RANK, targets)


@lru_cache(maxsize=1)
def _contexts() -> dict[str, int]:
    """Plain name of a card → bytes of its CUDA context, for those that gpus.yaml knows."""
    facts = [fact for fact in load_knowledge().gpus if fact.context_bytes is not None]
    return {_plain(name): fact.context_bytes or 0 for fact in facts for name in (fact.name, *fact.aliases)}


def _plain(name: str) -> str:
    """ "NVIDIA A100-SXM4-40GB" and "a100 sxm4 40gb" are one name."""
    return name.lower().removeprefix("nvidia ").replace(" ", "-")
