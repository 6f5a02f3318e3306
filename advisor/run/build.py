"""Build the Run: bind native values, read the topology, fill the knobs, mark what was defaulted or assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from math import prod

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from advisor.knowledge.schema import Framework, Mechanics, ModelFact, Rule, SettingFact
from advisor.language import say
from advisor.machine.inventory import Machine
from advisor.run.bound import EnvironmentPrefix, Native, Natives, bind_natives
from advisor.run.derive import derive_knobs
from advisor.run.dialect import Recognised, elsewhere
from advisor.run.implied import stated_topology, usual_mechanics
from advisor.run.normalise import Around, becomes
from advisor.run.run import Knob, ModelShape, Run, Topology, Unread
from advisor.run.shape import find_shape
from advisor.run.topology import read_topology, too_few
from advisor.run.unread import doubts_of, taken
from advisor.run.versions import version_notes
from advisor.script.launch import Launch

ANY_SWITCH = frozenset({"algorithm.kl"})
"""Knobs with several switches of which one is enough."""


class RunInputs(Struct, frozen=True):
    """All that decides a run; the plan varies only `overrides` (key, `$NAME` for variables → text, None removes)."""

    recognised: Recognised
    launch: Launch | None
    machine: Machine
    models: Sequence[ModelFact]
    log_settings: Mapping[str, str] = field(default_factory=dict)
    model_name: str | None = None
    overrides: Mapping[str, str | None] = field(default_factory=dict)
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    """Knobs known from elsewhere (an advisory's leak); they win."""
    sized: bool = False
    """A run file: where its settings count no GPUs, all of the machine's train; its knobs may choose the trainer."""
    unread: Unread | None = None
    """A missing file that would say how the states are sharded, and what is taken where nothing else says it."""


class BuiltRun(Struct, frozen=True):
    """The run and the native table it was bound from."""

    run: Run
    natives: Natives
    broken: list[list[tuple[tuple[str, int], str]]] = field(default_factory=list)
    """Rules that the values in force break; filled when first asked for (see constraints)."""


def build_run(inputs: RunInputs) -> BuiltRun:
    """Bind the dialect to the launch. Without a dialect the run is "unknown" with the machine's topology."""
    framework, launch = inputs.recognised.framework, inputs.launch
    natives = bind_natives(
        framework,
        inputs.recognised.era,
        launch.settings if launch else (),
        launch.environment if launch else {},
        inputs.log_settings,
        inputs.overrides,
        with_defaults=_shows_all(inputs.recognised, launch),
        program=launch.program if launch else "",
    )
    topology = read_topology(natives, _counted(launch), inputs.machine, inputs.sized)
    told = inputs.knobs.get("algorithm.estimator")
    algorithm = str(told.value) if told else _algorithm(framework, natives, _shows_all(inputs.recognised, launch))
    mechanics = _mechanics(framework, inputs.recognised.era, natives, algorithm)
    if framework is None and inputs.sized:
        mechanics = usual_mechanics(inputs.knobs)
    if mechanics.trainer == "megatron":
        topology = replace(topology, model_parallel=_model_parallel(natives, inputs.knobs))
    elif mechanics.trainer == "fsdp" and (ways := _sizes(natives, inputs.knobs, ("tensor",))) > 1:
        topology = replace(topology, model_parallel=ways)
    name = inputs.model_name or _text(natives, "model.path") or _path_ending(natives, "model.path")
    shape = find_shape(name, inputs.models) if name else None
    if inputs.sized:
        topology = stated_topology(topology, inputs.knobs)
    knobs = {**_knobs(natives, topology), **inputs.knobs}
    unread, of_file = taken(inputs.unread, knobs, natives, mechanics)
    knobs = {**knobs, **of_file}
    derived = derive_knobs(knobs, natives, topology, mechanics, algorithm)
    knobs = {**knobs, **derived, **inputs.knobs}
    run = Run(
        framework=framework.framework if framework else "unknown",
        title=framework.title if framework else say("no dialect known"),
        era=inputs.recognised.era,
        algorithm=algorithm,
        model=shape,
        model_name=name or "",
        topology=topology,
        knobs=knobs,
        mechanics=mechanics,
        settings=launch.settings if launch else (),
        notes=(
            *version_notes(inputs.recognised, launch),
            *_notes(framework, launch, topology, inputs.machine, shape, name, sized=inputs.sized),
            *(str(r["note"]) for r in _backends(framework, natives, algorithm) if "note" in r),
        ),
        recognised_by=inputs.recognised.because,
        recognised_from=inputs.recognised.told_by,
        missing_files=launch.missing if launch else (),
        libraries={**_of_checkout(inputs.recognised), **inputs.machine.libraries},
        era_assumed=inputs.recognised.era_told_by == "nothing",
        unread=unread,
        doubts=doubts_of(launch.not_found if launch else (), unread),
    )
    return BuiltRun(run, natives)


def _counted(launch: Launch | None) -> dict[str, str]:
    """Options of the launcher; "" for one, and for a variable of the environment, that is set to nothing known."""
    if launch is None:
        return {}
    outside = (setting.key for setting in launch.exports if not setting.resolved)
    return {**dict.fromkeys((*launch.launcher_unread, *outside), ""), **launch.launcher}


def _of_checkout(recognised: Recognised) -> dict[str, str]:
    """The framework's version as a library's, where the checkout around the script states it."""
    framework, version = recognised.framework, recognised.checkout
    return {} if framework is None or version is None else {framework.package: version}


def _shows_all(recognised: Recognised, launch: Launch | None) -> bool:
    """Whether what the launch leaves out is at its default: not where a file is missing, or only the log speaks."""
    if launch is None or launch.missing or recognised.told_by == "log":
        return False
    return not elsewhere(recognised.framework, launch)


def _model_parallel(natives: Natives, knobs: Mapping[str, Knob]) -> int:
    """GPUs over which Megatron spreads one copy of the model: tensor x pipeline x context parallel."""
    return _sizes(natives, knobs, ("tensor", "pipeline", "context"))


def _sizes(natives: Natives, knobs: Mapping[str, Knob], kinds: tuple[str, ...]) -> int:
    names = [f"actor.{kind}_parallel" for kind in kinds]
    carriers = [knobs.get(name) or natives.carrier(name) for name in names]
    sizes = [c.value for c in carriers if c is not None]
    return prod(max(1, int(size)) for size in sizes if isinstance(size, (int, float)))


def _text(natives: Natives, knob: str) -> str | None:
    carrier = natives.carrier(knob)
    return None if carrier is None or carrier.value is None else str(carrier.value)


def _path_ending(natives: Natives, knob: str) -> str | None:
    """The last component of a path of which only the beginning is unknown: "$HOME/models/Qwen2.5-7B" names a model."""
    for carrier in natives.carriers(knob):
        _, slash, last = (carrier.setting.ending if carrier.setting else "").rstrip("/").rpartition("/")
        if carrier.text is None and slash and last:
            return last
    return None


def _backends(framework: Framework | None, natives: Natives, algorithm: str) -> list[Rule]:
    """What the dialect says of the backend, the command and the algorithm that the launch chose."""
    rules = framework.mechanics_when if framework is not None else ()
    chosen = [r for r in rules if algorithm in r.get("algorithms", (algorithm,))]
    return [r for r in chosen if (natives.value(str(r["key"])) == r["is"] if "key" in r else natives.runs(r))]


def _mechanics(framework: Framework | None, era: str, natives: Natives, algorithm: str) -> Mechanics:
    if framework is None:
        return Mechanics()
    changed: dict[str, object] = dict(framework.per_era.get(era) or {})
    for rule in _backends(framework, natives, algorithm):
        changed.update(rule.get("set", {}))
    if not changed:
        return framework.mechanics
    merged = {**msgspec.structs.asdict(framework.mechanics), **changed}
    return msgspec.convert(merged, Mechanics)


def _algorithm(framework: Framework | None, natives: Natives, has_launch: bool) -> str:
    """The algorithm by the dialect's rule: by the program, a native key and its words (fnmatch), or a fixed word.

    A log alone has no defaults.
    """
    rule: Rule = (framework.algorithm if framework else None) or {}
    for pattern, word in rule.get("programs", {}).items():
        if fnmatchcase(natives.program, pattern):
            return str(word)
    for key in [*_listed(rule.get("key")), *_listed(rule.get("also"))]:
        value = natives.value(key)
        if value is not None:
            words = rule.get("values", {})
            named = next((word for pattern, word in words.items() if fnmatchcase(str(value), pattern)), None)
            return str(named or words.get(str(value).lower(), rule.get("fixed", rule.get("otherwise", value))))
    if "fixed" in rule:
        return str(rule["fixed"])
    return str(rule.get("default", "unknown")) if has_launch else "unknown"


def _listed(places: object) -> list[str]:
    return [places] if isinstance(places, str) else [str(p) for p in places] if isinstance(places, list) else []


def _knobs(natives: Natives, topology: Topology) -> dict[str, Knob]:
    around = Around(natives, topology)
    knobs: dict[str, Knob] = {}
    for name in natives.knobs():
        carrier = _switched_on(natives, name) or natives.carrier(name)
        if carrier is None or carrier.fact is None:
            continue
        if carrier.value is None:
            if carrier.given:
                unresolved = say("the value could not be resolved")
                knobs[name] = Knob(name, None, carrier.source, carrier.key, unresolved)
            continue
        became = becomes(carrier.value, _rule_for(name, carrier.fact), around)
        knobs[name] = Knob(
            name,
            became.value,
            carrier.source,
            carrier.key.removeprefix(EnvironmentPrefix),
            became.how,
            became.times_samples,
        )
    return knobs


def _switched_on(natives: Natives, knob: str) -> Native | None:
    """A knob that any of several switches turns on (a KL term in the loss or in the reward): the one that does."""
    if knob not in ANY_SWITCH:
        return None
    return next(
        (n for n in natives.carriers(knob) if n.value is True and n.fact is not None and not n.fact.becomes), None
    )


def _rule_for(knob: str, fact: SettingFact) -> Rule | None:
    """How the value becomes this knob: a key may carry several."""
    return fact.becomes if fact.knob == knob else fact.also[knob]


def _notes(
    framework: Framework | None,
    launch: Launch | None,
    topology: Topology,
    machine: Machine,
    shape: ModelShape | None,
    name: str | None,
    *,
    sized: bool,
) -> tuple[str, ...]:
    """`sized`: a run file, whose knobs say what no dialect does."""
    notes: list[str] = list(launch.notes) if launch is not None else []
    if topology.assumed:
        notes.append(say("{clause}.", clause=topology.assumed))
    if short := too_few(topology, machine):
        notes.append(short)
    if launch is not None and (file := elsewhere(framework, launch)):
        notes.append(
            say("The settings of this launch stand in {file}, which was not found: give that file instead.", file=file)
        )
    if framework is None and not sized:
        notes.append(say("No dialect is known for this launch: settings are listed, memory is not predicted."))
    if shape is None:
        notes.append(
            say(
                "The shape of the model {name!r} is not known: give a config.json with --model, or a known name.",
                name=name,
            )
            if name
            else say("The run names no model: give one with --model.")
        )
    return tuple(notes)
