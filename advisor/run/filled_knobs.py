"""Fills the knobs of a run from its native values, marks what was assumed, derives those that no setting carries."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from msgspec.structs import replace

from advisor.knowledge.schema import Mechanics, RecipeFact
from advisor.language import Sayings, mark, say
from advisor.machine.inventory import Machine
from advisor.rules.tree import Compare, Name, Sum, as_number, walk
from advisor.run.bound import Tables
from advisor.run.conversion import Converted, conversions, to_knob
from advisor.run.model_read import Hints
from advisor.run.natives import SAMPLES, EnvironmentPrefix, Native, Natives, RunScope, default_of, differing, gpus_of
from advisor.run.run import Knob, KnobValue, ModelShape, Topology
from advisor.run.shape import bits_in_name, packed_by_name

_ENGINE_SIZE = "rollout.tensor_parallel"
TAKEN_AT_DEFAULT = frozenset({"rollout.memory_share", _ENGINE_SIZE})
"""Knobs that some value must be taken for: the framework's own default before the engine's."""
_ANY_SWITCH = frozenset({"algorithm.kl", "actor.gradient_checkpointing"})
"""Knobs with several switches of which one is enough."""
_LENGTHS = ("_tokens", "_model_len")
"""Ends of knobs that limit lengths; 0 and -1 stand for no limit in every framework."""
_TRAINED = ("actor.full_finetuning", "actor.lora_rank")


def fill_knobs(natives: Natives, topology: Topology, taken: frozenset[str], tables: Tables) -> dict[str, Knob]:
    """The knobs that something sets. `taken`: those for which the framework's default is assumed where nothing does. A
    knob is made once for the values that it is read from: a what-if moves few of them."""
    scope, chosen = RunScope(natives, topology), (natives.rolls_out, natives.algorithm, natives.program)
    outside = (*natives.launcher.items(), *natives.libraries.items())
    key = ("knobs", natives.era, taken, topology, chosen, outside)
    values, made = tables.once(
        key, lambda: (natives.values, {name: _knob(name, scope, taken) for name in natives.knobs()})
    )
    moved = differing(values, natives.values)
    if moved:
        read = tables.once(("keys of knobs", natives.era), lambda: _read_for_knobs(natives))
        made = {name: one if moved.isdisjoint(read[name]) else _knob(name, scope, taken) for name, one in made.items()}
    return {name: one for name, one in made.items() if one is not None}


def _read_for_knobs(natives: Natives) -> dict[str, tuple[str, ...]]:
    """Knob → every key of the table on which it may depend: those that carry it, and those that their rules name."""
    read: dict[str, tuple[str, ...]] = {}
    for name in natives.knobs():
        keys = natives.keys_of(name)
        rules = [conversions(fact)[name] for key in keys if (fact := natives.values[key].fact) is not None]
        named = [one for rule in rules if rule is not None for one in rule.names()]
        keys = (*keys, *named, *(natives.keys_of(SAMPLES) if "samples" in named else ()))
        facts = [one.fact for key in keys if (one := natives.values.get(key)) is not None]
        choosing = [fact.only_with for fact in facts if fact is not None and fact.only_with is not None]
        read[name] = tuple(dict.fromkeys((*keys, *(one for rule in choosing for one in rule.names()))))
    return read


def _knob(name: str, scope: RunScope, taken: Container[str]) -> Knob | None:
    """A knob by the key that carries it; None where nothing sets it."""
    natives = scope.natives
    carrier = _switched_on(natives, name) or natives.carrier(name)
    if carrier is None or carrier.fact is None:
        return None
    if carrier.value is None:
        if carrier.given:
            unresolved = say("the value could not be resolved")
            return Knob(name, None, carrier.source, carrier.key, unresolved, unread=carrier.text is None)
        usual = default_of(carrier.fact, natives.era) if name in taken else None
        if usual is None:
            return None
        became = to_knob(usual, conversions(carrier.fact)[name], scope)
        return Knob(name, became.value, "assumed", carrier.key, say("the framework's default; no launch shows it"))
    rule = carrier.fact.to_knob if name == carrier.fact.knob else carrier.fact.also[name]
    became = to_knob(carrier.value, rule, scope)
    if name.endswith(_LENGTHS) and isinstance(became.value, (int, float)) and became.value <= 0:
        became = Converted(None, say("no limit"))
    return Knob(
        name,
        became.value,
        carrier.source,
        carrier.key.removeprefix(EnvironmentPrefix),
        became.how,
        times_samples=became.times_samples,
    )


def _switched_on(natives: Natives, knob: str) -> Native | None:
    """A knob that any of several switches turns on (a KL term in the loss or in the reward): the one that does."""
    if knob not in _ANY_SWITCH:
        return None
    return next(
        (n for n in natives.carriers(knob) if n.value is True and n.fact is not None and n.fact.to_knob is None), None
    )


def engine_size(knobs: dict[str, Knob], topology: Topology, machine: Machine) -> tuple[dict[str, Knob], Topology, str]:
    """Knobs and topology by the GPUs of one rollout engine, and that the launch gives it more than there are, in words:
    a default that the machine cannot have is none of the run's."""
    size, cards = knobs.get(_ENGINE_SIZE), gpus_of(machine) * (machine.nodes or 1)
    if size is None or not isinstance(size.value, int) or topology.engine_elsewhere:
        return knobs, topology, ""
    if size.source == "assumed":
        if 0 < cards < size.value:
            return {name: knob for name, knob in knobs.items() if name != _ENGINE_SIZE}, topology, ""
        return knobs, replace(topology, tensor_parallel=size.value), ""
    have = topology.rollout_gpus if topology.known else cards
    if size.source == "default" or not 0 < have < size.value:
        return knobs, topology, ""
    told = mark("{key} {size} spreads one engine over {size} GPUs, and it has {count}: it cannot start so.")
    return knobs, topology, say(told, key=size.key, size=size.value, count=have)


def by_hint(hints: Hints, knobs: Mapping[str, Knob]) -> dict[str, Knob]:
    """What names alone say, where nothing else does."""
    known = any((one := knobs.get(key)) is not None and one.source not in ("default", "assumed") for key in _TRAINED)
    return {} if known else hints.knobs()


def quantised(name: str | None, model: ModelShape | None, knobs: Mapping[str, Knob]) -> dict[str, Knob]:
    """A base that is quantised by its checkpoint: it stays so under adapters, where it is not trained."""
    named, key = bits_in_name(name or ""), "actor.quantized_bits"
    bits = named or (model.stored_bits if model is not None else 0)
    told = say("by the model's name") if named else say("by the model's config.json")
    rank, full = (None if (one := knobs.get(f"actor.{end}")) is None else one.value
                  for end in ("lora_rank", "full_finetuning"))  # fmt: skip
    adapters = full is False or (full is None and bool(rank or packed_by_name(name or "")))  # nothing else trains there
    known = (found := knobs.get(key)) is not None and found.value is not None
    return {key: Knob(key, bits, "derived", note=told)} if bits and adapters and not known else {}


_FOLLOWERS = {
    "logprob.dynamic_batch": "actor.dynamic_batch",
    "logprob.tokens_per_gpu": "actor.tokens_per_gpu",
    "reference.micro_batch": "logprob.micro_batch",
    "critic.path": "model.path",
}
"""Knob → the knob whose value it takes where its own setting is unset (as the frameworks' own configs interpolate)."""


_DEEPSPEED_FILE = {
    "deepspeed:zero_optimization.stage": "actor.zero_stage",
    "deepspeed:zero_optimization.offload_optimizer.device": "actor.optimizer_offload",
    "deepspeed:zero_optimization.offload_param.device": "actor.param_offload",
}
"""Keys of a DeepSpeed JSON that the launch names → knobs (docs: DeepSpeed configuration JSON, ZeRO)."""


_BUILT: Sayings[str] = Sayings({"always": "built always", "kl": "built kl", "kl_full": "built kl_full"})


def derive_knobs(
    knobs: Mapping[str, Knob], natives: Natives, topology: Topology, mechanics: Mechanics, recipe: RecipeFact
) -> dict[str, Knob]:
    """Derived knobs by name. Only a DeepSpeed file replaces what a setting carries: the setting is then its path."""
    derived = _from_deepspeed_file(natives)

    def add(name: str, value: KnobValue | None, note: str) -> None:
        known = knobs.get(name)
        if value is not None and (known is None or (known.value is None and not known.key)):
            derived[name] = Knob(name, value, "derived", note=note)

    def value_of(name: str) -> KnobValue | None:
        known = knobs.get(name)
        return known.value if known is not None else None

    for follower, leader in _FOLLOWERS.items():
        add(follower, value_of(leader), say("follows {knob}", knob=leader))
    if recipe.critic is not None:
        valued = recipe.critic
        note = say("{algorithm} has value model" if valued else "{algorithm} has no value model", algorithm=recipe.id)
        add("critic.present", valued, note)
    with_reference, because = _reference(knobs, mechanics, recipe)
    habit = say("the framework's habit")
    add("reference.present", with_reference, because)
    if mechanics.fused_loss_always:
        derived["actor.fused_loss"] = Knob("actor.fused_loss", True, "derived", note=habit)
    add("rollout.colocated", topology.colocated, say("topology"))
    add("rollout.sleeps", mechanics.engine_sleeps, habit)
    add("rollout.sleep_level", mechanics.sleep_level, habit)
    add("reference.offload", mechanics.reference_on == "host", habit)
    prompt, response = as_number(value_of("data.prompt_tokens")), as_number(value_of("data.response_tokens"))
    if recipe.answers == "given":
        given = say("answers are in the data")
        derived["data.response_tokens"] = Knob("data.response_tokens", None, "derived", note=given)
        add("data.total_tokens", prompt and int(prompt), say("prompt and answer together"))
    elif prompt is not None and response is not None:
        note = say("prompt {prompt:g} + response {response:g}", prompt=prompt, response=response)
        add("data.total_tokens", int(prompt + response), note)
    _sequences(add, value_of, topology)
    stage = derived.get("actor.zero_stage", knobs.get("actor.zero_stage"))
    idle = _idle_sleep(natives) if stage is not None and stage.value == 3 else ""
    if idle:
        derived["actor.state_sleep"] = Knob("actor.state_sleep", False, "derived", note=idle)
    limit = _samples_limit(natives)
    if limit:
        add("samples.limit_batch", True, limit)
    return derived


def _from_deepspeed_file(natives: Natives) -> dict[str, Knob]:
    found: dict[str, Knob] = {}
    for key, knob in _DEEPSPEED_FILE.items():
        text = natives.value(key)
        if text is not None:
            value = str(text) == "cpu" if key.endswith(".device") else int(str(text)) if str(text).isdigit() else None
            found[knob] = Knob(knob, value, "script", key)
    of_file = [key for key in natives.values if key.startswith("deepspeed:")]
    if any(natives.values[key].setting is not None for key in of_file):
        own = say("DeepSpeed's own default")  # whatever the file's name promises
        found.setdefault("actor.zero_stage", Knob("actor.zero_stage", 0, "derived", note=own))
        for offload in ("actor.optimizer_offload", "actor.param_offload"):
            found.setdefault(offload, Knob(offload, False, "derived", note=own))
    return found


def _idle_sleep(natives: Natives) -> str:
    """Why the switch that puts optimizer states to sleep does nothing under ZeRO-3 in this era; "" where it works."""
    carrier = natives.carrier("actor.state_sleep")
    for idle in carrier.fact.no_effect_when if carrier is not None and carrier.fact is not None else ():
        by_stage = idle.when is not None and idle.when.names() == ("actor.zero_stage",)
        if by_stage and (not idle.eras or natives.era in idle.eras):
            return idle.because
    return ""


def _samples_limit(natives: Natives) -> str:
    """The rule by which a micro-batch must divide by the samples per prompt, in words; "" where there is none."""
    samples, micro = natives.carrier("rollout.samples_per_prompt"), natives.carrier("actor.micro_batch")
    if samples is None or micro is None or micro.fact is None:
        return ""
    for rule in micro.fact.must:
        tree = rule.holds.tree
        divided = tree.left if isinstance(tree, Compare) and isinstance(tree.left, Sum) else None
        if divided is None or divided.sign != "%" or (rule.eras and natives.era not in rule.eras):
            continue
        if Name(samples.key) in walk(divided.right):
            return rule.says
    return ""


def _reference(knobs: Mapping[str, Knob], mechanics: Mechanics, recipe: RecipeFact) -> tuple[bool, str]:
    """Whether a frozen reference stays, and why: always, with a KL term, or with a KL term and full training; not where
    its log-probabilities were all taken before."""
    if not recipe.reference:
        return False, say("the method has none")
    precomputed = knobs.get("reference.precomputed")
    if precomputed is not None and precomputed.value is True:
        return False, say("its log-probabilities were taken before")
    built = _BUILT[mechanics.reference_when]
    if mechanics.reference_when == "always":
        return True, built
    kl = knobs.get("algorithm.kl")
    if kl is not None and kl.value is not None and not kl.value:
        return False, say("no KL term: none is built")
    rank = knobs.get("actor.lora_rank")
    full = knobs.get("actor.full_finetuning")
    lora = bool(rank is not None and rank.value) and not (full is not None and full.value is True)
    if mechanics.reference_when == "kl_full" and lora:
        return False, say("LoRA: the base without its adapters is the reference")
    return True, built


def _sequences(
    add: Callable[[str, KnobValue | None, str], None], value_of: Callable[[str], KnobValue | None], topology: Topology
) -> None:
    """Sequences of one step that one GPU holds: prompts x samples / data-parallel ranks. Fewer than one says that
    samples or GPUs are not those of the run: no framework starts so."""
    prompts, samples = as_number(value_of("data.train_batch")), as_number(value_of("rollout.samples_per_prompt")) or 1
    if prompts:
        ranks = topology.data_parallel
        count = int(prompts * samples / ranks)
        note = say(
            "{prompts:g} prompts * {samples:g} samples / {ranks} ranks = {count}",
            prompts=prompts,
            samples=samples,
            ranks=ranks,
            count=count,
        )
        if count:
            add("actor.sequences_per_gpu", count, note)
