"""Turns what a run is, by its launch and its framework, into facts: its parts, its batches, the length of its rows, its
attention.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.diagnosis.fact import Fact, Facts
from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework
from advisor.language import say
from advisor.memory.seen_sums import stands_apart
from advisor.regex import regex
from advisor.rules.functions import version_in
from advisor.run.natives import adapters_by_default, default_bits, last_part
from advisor.run.run import Knob, Run
from advisor.run.values import parse_value
from advisor.script.pasted import ENGINE_CALL


def run_facts(run: Run) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    if run.framework != "unknown":
        facts["framework"] = Fact(run.framework, run.recognised_from, run.recognised_by)
        facts["era"] = Fact(run.era, run.recognised_from, run.recognised_by)
    if run.algorithm != "unknown":
        facts["algorithm"] = Fact(run.algorithm, "script", say("the launch's settings"))
        facts.update(_recipe_facts(run))
    for name, knob in run.knobs.items():
        if knob.value is None:
            continue
        facts[f"knob.{name}"] = Fact(knob.value, "log" if knob.source == "log" else "script", _given(knob, run))
    if run.model is not None:
        facts["model"] = Fact(run.model.name, "script", run.model.note)
        facts["model.parameters"] = Fact(run.model.parameters, "script", run.model.note)
    facts.update(_mechanism_facts(run))
    if (laid := run.topology.process_gpus) > 1:
        facts["laid_over"] = Fact(True, "script", say("one process lays its layers over {cards} cards", cards=laid))
    if run.topology.known and (run.settings or run.topology.actor_gpus > 1):  # one by default says nothing
        facts["gpus"] = Fact(run.topology.actor_gpus, "script", say("the launch's topology"))
    return facts


def idle_cards(run: Run, facts: Facts) -> dict[str, Fact]:
    alone, cards = facts.get("one_process"), run.topology.nodes * run.topology.gpus_per_node
    several = cards > max(1, run.topology.process_gpus)
    if alone is None or alone.value is not True or run.recipe.answers == "generated" or not several:
        return {}
    if not (run.seen_whole or run.settings or alone.source == "log"):
        return {}
    because = say("one process starts for {cards} cards ({why})", cards=cards, why=alone.because)
    return {"idle_cards": Fact(True, alone.source, because)}


def _recipe_facts(run: Run) -> dict[str, Fact]:
    """Which parts a step of this algorithm has: nobody is asked about one that it has not."""
    because = say("{algorithm} trains", algorithm=run.recipe.title)
    parts = {
        "rolls_out": run.recipe.answers == "generated",
        "log_prob_pass": run.recipe.loss == "log_probs",
        **({} if run.recipe.critic is None else {"has_critic": run.has_critic}),
    }
    return {name: Fact(value, "script", because) for name, value in parts.items()}


def _given(knob: Knob, run: Run) -> str:
    told = {"key": knob.key, "value": knob.value, "framework": run.framework}
    if knob.source == "default":
        return say("{key} is not set; {framework}'s default", **told)
    if knob.key and knob.source == "log":
        return say("{key} = {value}, printed in the log", **told)
    return f"{knob.key} = {knob.value}" if knob.key else knob.note


def _mechanism_facts(run: Run) -> dict[str, Fact]:
    """Facts that follow from how the framework works together with the run's settings."""
    facts: dict[str, Fact] = {}

    def add(name: str, value: bool, because: str) -> None:
        facts[name] = Fact(value, "script", because)

    if run.framework == "unknown":
        return facts
    by_fsdp = run.by_fsdp
    trainer = "fsdp" if by_fsdp else run.mechanics.trainer
    facts["trainer"] = Fact(trainer, "script", by_fsdp or say("how {framework} trains here", framework=run.framework))
    if by_fsdp:
        add("sharded", True, by_fsdp)
    add("cpu_adam", run.mechanics.offload_lowers_update, say("how {framework} offloads", framework=run.framework))
    beside = run.topology.colocated and run.recipe.answers != "given"  # who is given answers has no engine
    sleeping = beside and run.is_on("rollout.sleeps", run.mechanics.engine_sleeps)
    if run.settings or not run.era_assumed:
        pool = sleeping and run.mechanics.engine_pool
        add("sleeping_engine_in_process", pool, say("a sleeping engine in the trainer's process"))
    stage = run.number("actor.zero_stage")
    if stage is not None:
        add("zero3", stage == 3, say("ZeRO stage {stage:g}", stage=stage))
    checkpointing = run.knobs.get("actor.gradient_checkpointing")
    if checkpointing is not None and isinstance(checkpointing.value, bool):
        add("gradient_checkpointing", checkpointing.value, checkpointing.key or checkpointing.note)
    if beside or run.settings or run.recipe.answers == "given":  # of a launch that nobody saw nothing is known
        add("colocated", beside, say("the launch's topology"))
    if (apart := stands_apart(run)) is not None:
        add("engine.apart", apart, say("how {framework} starts its engine", framework=run.title))
    full = run.knobs.get("actor.full_finetuning")
    if full is None and default_bits(run):
        add("lora", True, say("{framework} packs the weights by default", framework=run.title))
    elif full is not None or not adapters_by_default(run):  # else nobody knows
        add("lora", run.trains_adapters, full.note if full and full.source == "log" else say("the launch's settings"))
    add("sleep", sleeping, say("the launch's settings"))
    level = run.number("rollout.sleep_level")
    kept = (run.mechanics.sleep_level if level is None else level) == 1
    add("sleep_copies", sleeping and kept, say("a sleeping engine keeps its weights in host RAM at level 1"))
    facts.update(_batch_facts(run))
    return facts


def _batch_facts(run: Run) -> dict[str, Fact]:
    """Which of batch, micro-batch and samples decides how much goes through one GPU in one pass."""
    held, micro = run.number("actor.sequences_per_gpu"), run.number("actor.micro_batch")
    if run.is_on("actor.dynamic_batch"):
        return {}
    knob = run.knobs.get("actor.micro_batch")
    in_groups = knob is not None and knob.times_samples
    facts = {"samples.in_pass": Fact(True, "script", knob.note)} if knob is not None and in_groups else {}
    if held is None:
        return facts | _divisor_fact(run)
    binds = micro is None or micro >= held
    because = _pass(held, micro, knob.note if knob is not None else "")
    return facts | {"batch.binds": Fact(binds, "script", because), "samples.bind": Fact(binds, "script", because)}


def _pass(held: float, micro: float | None, note: str) -> str:
    if not micro:
        return say("one GPU holds {held:g} sequences of a step", held=held)
    told = {"held": held, "micro": micro, "note": note}
    return say("one GPU holds {held:g} sequences of a step; a pass may take {micro:g} ({note})", **told)


def _divisor_fact(run: Run) -> dict[str, Fact]:
    """Where a batch must divide by the samples, they limit how small it can be."""
    if not run.is_on("samples.limit_batch"):
        return {}
    return {"samples.bind": Fact(True, "script", run.knobs["samples.limit_batch"].note)}


def tells_of_training(run: Run) -> bool:
    """Whether a setting is seen that is not of the rollout engine alone."""
    return any(not one.key.startswith(f"{ENGINE_CALL}.") for one in run.settings)


_FILLS = regex(r"pad_to_(?:sequence_len|max_len(?:gth)?|maximum|fixed_length|longest_allowed)|padding_to_max_length")
"""Switches that pad every row to the longest length (axolotl, AReaL, older scripts of transformers)."""


_WHOLE_ROW = regex(
    r"(?:model_)?max_(?:seq(?:uence)?_)?len(?:gth)?|cutoff_len|block_size|(?:max_)?seq(?:uence)?_len(?:gth)?"
)
"""Keys of the longest row, prompt and answer together."""
SHORT_ROW = 512
"""Tokens: a row of so many holds about 0.3 GiB of logits and as much of activations (judgement)."""


def row_facts(run: Run) -> dict[str, Fact]:
    """rows.equal, rows.short; only where the launch says it."""
    equal = next(_equal(run), "")
    facts = {"rows.equal": Fact(True, "script", equal)} if equal else {}
    caps = {one.key: number for one in run.settings if _WHOLE_ROW.fullmatch(last_part(one.key))
            and isinstance(number := parse_value(one.text, "int"), int) and number > 0}  # fmt: skip
    if caps and max(caps.values()) <= SHORT_ROW:
        key = max(caps, key=lambda name: caps[name])
        because = say("{key} {value}: no row is long", key=key, value=caps[key])
        facts["rows.short"] = Fact(True, "script", because)
    return facts


def _equal(run: Run) -> Iterator[str]:
    """Why the passes of the update are of one size whatever the data brings."""
    for name in ("data.packs", "data.pack_tokens", "actor.dynamic_batch"):
        knob = run.knobs.get(name)
        if knob is not None and knob.value not in (None, False) and knob.key and knob.source in ("script", "log"):
            written = next((one.text for one in run.settings if one.key == knob.key and one.effective), knob.value)
            yield say("{key} {value} fills every pass to one size", key=knob.key, value=written)
    for one in run.settings:
        filled = _FILLS.fullmatch(last_part(one.key)) and parse_value(one.text, "bool") is True
        if filled or (last_part(one.key) == "padding" and one.text == "max_length"):
            yield say("{key} {value} pads every row to one length", key=one.key, value=one.text)
    padding = run.knobs.get("actor.remove_padding")
    off = padding is not None and padding.value is False and (run.seen_whole or padding.source == "script")
    if off and padding is not None and run.recipe.answers == "generated" and run.mechanics.trainer == "fsdp":
        told = {"framework": run.title, "key": padding.key}
        yield say("{framework} pads every row to the longest length without {key}", **told)


ATTENTION, ROW_TOKENS = "actor.flash_attention", "data.total_tokens"
LONG_ROW = 2048
"""Tokens from which the scores of plain attention count: heads × length² values in every layer (judgement)."""
SDPA_SINCE = ">=4.36"
"""transformers takes torch's fused attention by itself from this version on, where the model has it."""
ATTENTION_KEYS = frozenset(("attn_implementation", "_attn_implementation", "attn_impl", "flash_attn", "use_flash_attn"))
PLAIN = frozenset(("eager", "disabled", "off"))
OF_EAGER = frozenset(("eager_attention", "use_eager_attention", "force_eager_attention"))


def attention_facts(run: Run, libraries: Mapping[str, str]) -> dict[str, Fact]:
    """attention.eager and attention.unsure, each only where it holds."""
    plain = {*((name, word) for name in ATTENTION_KEYS for word in PLAIN), *((name, "true") for name in OF_EAGER)}
    stated = next((one for one in run.settings if (_plain_key(one.key), one.text.lower()) in plain), None)
    if stated is not None:
        return {"attention.eager": Fact(True, "script", f"{stated.key} {stated.text}")}
    dialect = next((one for one in load_knowledge().frameworks if one.framework == run.framework), None)
    length, knob = run.number(ROW_TOKENS), run.knobs.get(ATTENTION)
    if dialect is None or length is None or length < LONG_ROW or not _carried(dialect):
        return {}
    if knob is not None and knob.value is False:
        return {"attention.eager": Fact(True, "script", knob.note or say("{key} is not set", key=knob.key))}
    known = knob is not None and knob.value is True
    version = libraries.get("transformers")
    by_default = knob is not None and knob.source in ("default", "assumed")
    if known and not (run.era_assumed and by_default and _was_plain(dialect)):
        return {}
    if not known and version is not None and version_in(SDPA_SINCE, version):
        return {}
    told = say("nothing tells which attention computes rows of {length:g} tokens", length=length)
    return {"attention.unsure": Fact(True, "script", told)}


def _plain_key(key: str) -> str:
    return key.lstrip("-+").replace("-", "_").rpartition(".")[2]


def _carried(dialect: Framework) -> bool:
    return any(fact.knob == ATTENTION for fact in dialect.settings.values())


def _was_plain(dialect: Framework) -> bool:
    """Whether attention was the plain one by default in some version of the framework."""
    defaults = (fact.default for fact in dialect.settings.values() if fact.knob == ATTENTION)
    texts = (str(each).lower() for one in defaults for each in (one.values() if isinstance(one, Mapping) else (one,)))
    return any(text in {*PLAIN, "false"} for text in texts)
