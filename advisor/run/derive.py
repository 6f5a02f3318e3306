"""Derives the knobs that no single setting carries: from the algorithm, other knobs, the framework's own habits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from advisor.knowledge.schema import Mechanics, RecipeFact
from advisor.language import Sayings, say
from advisor.rules.tree import Compare, Name, Sum, as_number, walk
from advisor.run.natives import Natives
from advisor.run.run import Knob, KnobValue, Topology

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
    its log-probabilities were all taken before.
    """
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
    """Sequences of one step that one GPU holds: prompts x samples / data-parallel ranks.

    Fewer than one says that samples or GPUs are not those of the run: no framework starts so.
    """
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
