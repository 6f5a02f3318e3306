"""Tells whether a remedy, or a step made of it, is for this run at all: every list of a plan asks here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from advisor.crash.observations import cures
from advisor.crash.statements import ON
from advisor.diagnosis.fact import all_hold, contradicted
from advisor.knowledge.schema import Framework, Remedy, SettingFact
from advisor.memory.trainer import has_engine
from advisor.plan.candidates import at_most, candidates, printed_now
from advisor.plan.common_names import ROLES, names_of, stated_by_name
from advisor.plan.plan import Change, PlanStep
from advisor.plan.select import lever_of
from advisor.plan.situation import Situation
from advisor.plan.steps import example_of
from advisor.rules.tree import as_number
from advisor.run.dialect import ASSUMED_BY
from advisor.run.natives import OF_ROLLOUTS, Native, last_part
from advisor.run.run import KnobValue
from advisor.run.values import parse_value

QUANTIZE = "quantize-base"
MOST_MONTHS = 12
"""A newer version by more is another program to its user, not a step (judgement)."""


Barred = Literal["in force", "tried", "ruled out"]
"""Why a remedy is no step here, whatever the cause: it stands so already, or the user says that it did not help, or
that there is no more of what it takes."""
_OF_ROWS = frozenset({"batch", "length", "pictures"})
_SHOWN = ("script", "log", "environment")
_WHOLLY_TRIED = frozenset({"recompute", "allocator", "chunks", "batch", "length", "samples", "pictures"})
"""Levers of which one try says all: of offload, sharding, adapters and kernels there are several."""


def barred(remedy: Remedy, situation: Situation) -> Barred | None:
    """Why the remedy is no step for this run; None where it is one. Every list of steps asks this. A number that the
    launch shows and that can still be made smaller was only a step on the way."""
    seen = situation.predictor.crash.observations
    helped = {one.lever for one in cures(seen) if one.change != "off"}
    if stands(remedy, situation) or lever_of(remedy) in helped & _WHOLLY_TRIED:
        return "in force"
    if any(one.outcome == "ruled_out" and one.name == remedy.takes for one in seen):
        return "ruled out"
    if "gpu.grows" in situation.facts and remedy.relieves in ("pass", "rows") and situation.in_vain & _OF_ROWS:
        return "tried"  # what grows whatever a pass holds is none of it
    if lever_of(remedy) not in situation.in_vain & _WHOLLY_TRIED:
        return None
    carrier = situation.now.built.natives.carrier(remedy.knob or "") or stated_by_name(remedy, situation)
    shown = carrier is not None and carrier.source in _SHOWN
    return None if shown and carrier is not None and next_value(remedy, carrier, situation) is not None else "tried"


def stands(remedy: Remedy, situation: Situation) -> bool:
    """Whether launch, printed config, frames or words have the setting where the remedy would bring it."""
    fact, knob = situation.value(f"knob.{remedy.knob}"), situation.now.run.knobs.get(remedy.knob or "")
    wanted = remedy.value.to if remedy.value is not None else None
    shown = knob is not None and knob.source in _SHOWN
    if wanted is True and not shown and f"{ON}{remedy.knob}" in situation.predictor.crash.statements:
        return True  # the words say more than a default
    return wanted is not None and fact == wanted and (knob is None or shown)


def applies(remedy: Remedy, situation: Situation) -> bool:
    """Whether the run has what the remedy moves, has not done it already, and can be told how it is done."""
    if needs_engine(remedy, situation) == "missing":
        return False
    if not told(remedy, situation):
        return False
    if situation.now.built.natives.framework is not None:
        return not spent(remedy, situation)
    return not settled(remedy, situation) and usual(remedy, situation)


def may_apply(remedy: Remedy, situation: Situation) -> bool:
    """What is only told needs its facts; where a setting is meant that nobody can see, they must not be otherwise."""
    if remedy.value is None:
        return all_hold(remedy.applies_when, situation.facts) is not None
    return not any(contradicted(rule, situation.facts) for rule in remedy.applies_when)


def fitting(steps: Sequence[PlanStep], situation: Situation) -> list[PlanStep]:
    """The steps less those that are in force already, and less what only repeats another in general words."""
    remedies = {one.id: one for one in situation.remedies}
    kept = [step for step in steps if not (in_force(step, situation) or _of_a_later_one(step, situation))]
    kept = [s for s in kept if not of_another_launcher(((one.key, one.old_source) for one in s.changes), situation)]
    kept = [step for step in kept if step.id not in remedies or barred(remedies[step.id], situation) is None]
    kept = [step for step in kept if not any(_tried_so(change, situation) for change in step.changes)]
    first = {one.example: one.id for one in reversed(kept) if one.example and not one.changes}
    kept = [one for one in kept if one.changes or not one.example or first[one.example] == one.id]
    levers = {remedies[one.id].lever: one.id for one in kept if one.id in remedies and (one.changes or one.example)}

    def repeats(step: PlanStep) -> bool:
        remedy = remedies.get(step.id)
        vague = remedy is not None and remedy.kind == "manual" and remedy.knob is None and not step.selected
        lever = remedy.lever if remedy is not None and vague else ""
        return lever in GENERAL and levers.get(lever, step.id) != step.id

    return [step for step in kept if not repeats(step)]


def _tried_so(change: Change, situation: Situation) -> bool:
    """Whether a person set it so, or further the same way, and it was no help."""
    name, (old, new) = last_part(change.key), map(_number, (change.old, change.new))
    seen = (one for one in situation.predictor.crash.observations if one.outcome == "no_help")
    values = [one.value for one in seen if last_part(one.name) == name]
    numbers = [number for one in values if (number := _number(one)) is not None]
    further = old is not None and new is not None and any((one - new) * (new - old) >= 0 for one in numbers)
    return further or change.new in values


def _number(text: str | None) -> float | None:
    return as_number(parse_value(text or "", "float"))


def _of_a_later_one(step: PlanStep, situation: Situation) -> bool:
    """Whether the step is a setting that the oldest versions lack, in a fork of which nobody knows what it began with:
    its folder holds the framework's package beside its own code."""
    told, framework = situation.predictor.inputs.recognised, situation.now.built.natives.framework
    # others are seldom carried about in a copy
    if framework is None or not framework.on_ray or not framework.eras or told.era_told_by not in ASSUMED_BY:
        return False
    remedy = next((one for one in situation.remedies if one.id == step.id), None)
    seen = any(one.old_source in ("script", "log", "environment") for one in step.changes)
    if remedy is None or remedy.knob is None or seen or not _is_fork(framework.package, situation):
        return False
    oldest = framework.eras[-1].id
    facts = keys_of(remedy, framework, situation).values()
    return bool(facts) and all((fact.eras and oldest not in fact.eras) or fact.since for fact in facts)


def _is_fork(package: str, situation: Situation) -> bool:
    inside = re.compile(rf".*/([^/]+)/{re.escape(package)}/(?!lib/)")  # an environment may bear the name, too
    usual = re.compile(rf"(?i)^(?:site|dist)-packages$|^src$|{re.escape(package)}")
    found = (inside.match(frame.file) for frame in situation.predictor.crash.frames)
    return any(one is not None and not usual.search(one.group(1)) for one in found)


def of_another_launcher(sources: Iterable[tuple[str, str | None]], situation: Situation) -> bool:
    """Whether it adds FSDP to a run that DeepSpeed shares out, which no trainer takes together: keys, with their
    sources."""
    new = (key.lstrip("-") for key, source in sources if source in (None, "default", "assumed"))
    return "by_deepspeed" in situation.facts and any(key.startswith("fsdp") for key in new)


GENERAL: frozenset[str] = frozenset({"optimizer", "precision"})
"""Levers of which a step with a setting says all that one in words does."""


def told(remedy: Remedy, situation: Situation) -> bool:
    """Whether there is anything to type, or a sentence that says what to do: a bare title is no step."""
    if remedy.knob is None or remedy.kind in ("data", "manual", "machine") or remedy.known_as or remedy.environment:
        return True
    if (framework := situation.now.built.natives.framework) is not None:
        return remedy.by_hand or bool(keys_of(remedy, framework, situation))
    shown = bool(example_of(remedy, situation) or stated_by_name(remedy, situation))
    spread = remedy.relieves == "states" and bool(remedy.examples)
    foreign = spread and "own_launcher" in situation.facts  # in its own words, or not at all
    return shown or (not foreign and bool(names_of(remedy.knob, situation)))


_SELDOM = ("fused_layers", "tokens_per_gpu", "tensor_parallel", "pack_tokens", "shard_size")
"""Settings of the trained model, or of its data, that few trainers have."""


def usual(remedy: Remedy, situation: Situation) -> bool:
    """Whether a launch of any kind may have the setting: budgets of tokens, passes of models beside the trained one,
    and what is to be switched off, only where it names them; what makes states smaller only where all weights are
    trained.
    """
    of_base = remedy.id == QUANTIZE or (remedy.kind == "manual" and remedy.phases == ("model_load",))
    if remedy.relieves == "states" and not of_base and situation.value("lora") is True:
        return False  # what they train is small, and so are its moments
    role, _, name = (remedy.knob or "").partition(".")
    launch = situation.predictor.inputs.launch
    off = remedy.value is not None and remedy.value.to is False and remedy.lever != "train-less"
    off = off and (remedy.memory == "gpu" if launch is None else not launch.missing)
    of_rollouts = remedy.lever in ("padding", "samples", "split") and situation.value("rolls_out") is not True
    rare = role in ROLES or name in _SELDOM or off or of_rollouts
    return not rare or stated_by_name(remedy, situation) is not None


EngineSeen = Literal["seen", "unseen", "missing"]
_SIGNS_OF_ENGINE = ("frame.engine", "gpu.others_engine", "sleeping_engine_in_process")
GATHERED = "gather-for-generation"
"""The cause where the trainer's own model generates: an engine, if there is one, has cards of its own."""


def needs_engine(remedy: Remedy, situation: Situation) -> EngineSeen:
    """Whether there is a rollout engine for a remedy that moves one; "seen" for every other remedy, too.

    A launch of no known dialect may be any training: "unseen" where nothing tells whether it rolls out; so is an engine
    that its framework starts only where a launch says so, and no launch is here.
    """
    if remedy.relieves != "engine" and not (remedy.knob or "").startswith(OF_ROLLOUTS):
        return "seen"
    generates = remedy.relieves == "rows" and situation.now.run.framework != "unknown"  # the trainer itself may
    asked = ("rolls_out",) if generates else ("rolls_out", "has_engine")
    told = [situation.value(name) for name in asked]
    if False in told or (situation.cause == GATHERED and remedy.relieves != "rows"):
        return "missing"
    shown = any(situation.value(name) not in (None, False) for name in _SIGNS_OF_ENGINE)
    shown = shown or situation.phase in ("rollout_init", "weight_sync")  # nothing else starts or wakes
    if (run := situation.now.run).framework != "unknown":
        sure = remedy.relieves != "engine" or run.seen_whole or has_engine(run)
        return "seen" if shown or sure else "unseen"
    return "seen" if True in told or shown else "unseen"


def beside_engine(remedy: Remedy, situation: Situation) -> bool:
    """Whether the remedy can move anything where an engine starts or generates: where it has cards of its own the
    trainer holds nothing there; at its start no pass of the trainer has run, no moment was made but by DeepSpeed.
    """
    of_trainer = remedy.relieves in ("pass", "states") and not (remedy.knob or "").startswith(OF_ROLLOUTS)
    if situation.phase not in ("rollout_init", "rollout_generate") or not of_trainer:
        return True
    run = situation.now.run
    apart = situation.value("engine.apart") is True or (
        run.framework != "unknown" and has_engine(run) and not run.topology.colocated
    )
    if situation.phase == "rollout_generate":
        return not apart
    made = remedy.lever not in ("optimizer", "") or situation.value("by_deepspeed") is True
    return remedy.relieves == "states" and made and not apart


def settled(remedy: Remedy, situation: Situation) -> bool:
    """Whether an unrecognised launch has the setting, by its name, where the remedy would bring it."""
    present = stated_by_name(remedy, situation)
    return present is not None and next_value(remedy, present, situation) is None


def spent(remedy: Remedy, situation: Situation) -> bool:
    """Whether the launch itself sets the key, and the remedy has no value left for it."""
    carrier = situation.now.built.natives.carrier(remedy.knob) if remedy.knob is not None else None
    set_here = carrier is not None and carrier.setting is not None and carrier.value is not None
    return (
        carrier is not None and set_here and remedy.value is not None and next_value(remedy, carrier, situation) is None
    )


def in_a_later_version(remedy: Remedy, situation: Situation) -> bool:
    """Whether the version that is counted has no key for the remedy, and a newer one has."""
    natives = situation.now.built.natives
    framework = natives.framework
    if framework is None or remedy.knob is None or natives.carriers(remedy.knob):
        return False
    order = [era.id for era in framework.eras]  # the newest first
    newer = frozenset(order[: order.index(natives.era)] if natives.era in order else ())
    return any(newer.intersection(fact.eras) for fact in keys_of(remedy, framework, situation).values())


def of_years_later(remedy: Remedy, situation: Situation) -> bool:
    """Whether only versions have a key for the remedy that came long after the one that runs, as something tells."""
    told = situation.predictor.inputs.recognised
    framework = situation.now.built.natives.framework
    if framework is None or told.era_told_by == "nothing" or not in_a_later_version(remedy, situation):
        return False
    released = {era.id: era.released for era in framework.eras}
    now, order = released.get(told.era, ""), [era.id for era in framework.eras]
    facts = keys_of(remedy, framework, situation).values()
    newer = [era for fact in facts for era in fact.eras if order.index(era) < order.index(told.era)]
    first = min((day for era in newer if (day := released[era])), default="")
    return bool(now and first) and months(first) - months(now) > MOST_MONTHS


def months(day: str) -> int:
    """Months of a release's day or month, "2024-11"."""
    return int(day[:4]) * 12 + int(day[5:7])


def keys_of(remedy: Remedy, framework: Framework, situation: Situation) -> dict[str, SettingFact]:
    """The keys that carry the knob of the remedy, or of another that is the same step."""
    knobs = {one.knob for one in situation.remedies if one.title == remedy.title}
    return {key: fact for key, fact in framework.settings.items() if fact.knob in knobs}


def next_value(remedy: Remedy, present: Native, situation: Situation) -> tuple[Native, KnobValue] | None:
    """The setting, as the log may correct it, and the value that the remedy gives it; None where there is none."""
    rule = remedy.value
    if rule is None:
        return None
    native = printed_now(rule, present, situation.facts)
    tried = at_most(rule, candidates(rule, native, situation.now.built), situation.facts, native.value)
    working = (v for v in tried if rule.low is not None and isinstance(v, (int, float)) and v <= rule.low)
    new = next(working, next(iter(tried), None))
    return None if new is None else (native, new)


def in_force(step: PlanStep, situation: Situation) -> bool:
    """Whether all that a step sets stands so already, in the launch or in what it exports."""
    launch = situation.predictor.inputs.launch
    exported = launch.environment if launch is not None and step.kind == "environment" else {}
    stands = (exported.get(one.key) == one.new or _stands(one) for one in step.changes)
    return bool(step.changes) and all(one.new is not None for one in step.changes) and all(stands)


def _stands(change: Change) -> bool:
    return change.old is not None and change.old_source != "assumed" and parse_value(change.old, "str") == change.new
