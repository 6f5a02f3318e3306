"""Builds the Run: binds native values, reads the topology, fills the knobs, marks what was defaulted or assumed."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.knowledge.schema import CountName, Framework, MechanicsWhen, ModelFact
from advisor.language import mark, say
from advisor.machine.inventory import Machine
from advisor.run.bound import Tables, bind_natives, with_defaults_of_method
from advisor.run.dialect import ASSUMED_BY, Recognised, elsewhere
from advisor.run.filled_knobs import TAKEN_AT_DEFAULT, by_hint, derive_knobs, engine_size, fill_knobs, quantised
from advisor.run.implied import algorithm_of, stated_topology
from advisor.run.model_read import (
    another_model,
    critic_shape,
    fuller_name,
    hints_of,
    model_in_words,
    model_name,
    model_shape,
    named_model,
)
from advisor.run.natives import Natives, RunScope, gpus_of, native
from advisor.run.recipe import UNDESCRIBED, FilledMechanics, assumed_mechanics, mechanics_of, recipe_of, usual_trainer
from advisor.run.recipe import UNKNOWN as NO_METHOD
from advisor.run.run import Knob, ModelShape, Run, Topology, Unread
from advisor.run.seen_launch import base_parameters, idle_cards, launcher_counts, see_launch, started, trained_part
from advisor.run.shape import without_head
from advisor.run.topology import Cards, cards_of, decided_by, read_topology, too_few, unsharded_by
from advisor.run.unknown_keys import by_name_note, read_by_name, uncounted, unknown_keys, unknown_note
from advisor.run.unread import doubts_of, taken, with_settings
from advisor.run.version_notes import newer_than_read, title_of, version_notes
from advisor.script.launch import Launch


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
    observed: Mapping[str, Knob] = field(default_factory=dict)
    """Knobs that a crash shows; where a change sets the same, the change wins."""
    sized: bool = False
    """A run file: where its settings count no GPUs, all of the machine's train; its knobs may choose the trainer."""
    counts: Mapping[CountName, int] = field(default_factory=dict)
    """What the log's libraries counted of the run."""
    frames: tuple[str, ...] = ()
    """Files of the log's traceback, outermost first: where no launch is seen, one of them is the program."""
    functions: tuple[str, ...] = ()
    """Functions of that traceback."""
    engine: bool = False
    """The log shows a rollout engine at work."""
    printed_model: str = ""
    """The model as a library names it in the log."""
    printed_config: str = ""
    """Its configuration as the log prints it, JSON."""
    no_launch: str = ""
    """A script was given in which nothing starts a training, in words."""
    script_notes: tuple[str, ...] = ()
    prose: tuple[str, ...] = ()
    """Words of a person who describes the run."""
    unread: Unread | None = None
    """A missing file that would say how the states are sharded, and what is taken where nothing else says it."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Knob → regular expression of its usual spellings."""
    tables: Tables = field(default_factory=Tables)
    """Shared by the runs that vary it."""


class BuiltRun(Struct):
    """The run and the native table it was bound from."""

    run: Run
    natives: Natives
    broken: list[tuple[tuple[str, int], str, bool]] | None = None
    """Constraints that the values in force break; None until somebody asks (see constraints)."""


def build_run(inputs: RunInputs) -> BuiltRun:
    """Bind the dialect to the launch. Without a dialect the run is "unknown" with the machine's topology."""
    framework, era = inputs.recognised.framework, inputs.recognised.era
    seen = inputs.tables.once(("launch", era), lambda: see_launch(inputs.recognised, inputs.launch))
    launch, shipped, shows_all = seen.launch, seen.shipped, seen.shows_all
    version = inputs.recognised.version or inputs.recognised.checkout  # the log's, or the tree's around the script
    libraries = {**({framework.package: version} if framework and version else {}), **inputs.machine.libraries}
    config_alone = launch is not None and not launch.program and launch.files  # given without what starts it
    natives = bind_natives(
        framework,
        era,
        seen.settings,
        launch.environment if launch else {},
        inputs.log_settings,
        inputs.overrides,
        with_defaults=shows_all,
        program=launch.program if launch else "",
        config_alone=posixpath.basename(config_alone[0]) if config_alone else "",
        launcher=launcher_counts(launch, inputs.counts, inputs.machine),
        tables=inputs.tables,
        libraries=libraries,
        shipped=shipped,
        in_pieces=launch is not None and launch.partial,
        spelled=inputs.spelled,
    )
    spreads = launch.spreads if launch is not None else ""
    by_launch = cards_of(launch, started(launch, inputs.counts)) if framework is None and launch is not None else None
    topology = _topology(natives, inputs, spreads, by_launch)
    topology = replace(topology, assumed="") if launch is not None and launch.hints else topology
    inputs = replace(inputs, knobs={**_observed(inputs, natives), **inputs.knobs})
    told = inputs.knobs.get("algorithm.estimator")
    alone = launch is None or not launch.program  # else of a person's words only the model, where nothing names one
    prose = inputs.prose if alone else ()
    missed = (inputs.launch.hints, inputs.launch.missing) if inputs.launch is not None else ()
    hints = inputs.tables.once(
        ("hints", missed, shipped, prose), lambda: hints_of(inputs.launch, shipped, inputs.models, prose)
    )
    said, programs = hints.method if prose else "", _programs(launch)
    seen_of = (inputs.frames, inputs.knobs, programs, shows_all, inputs.engine, said, inputs.functions)
    algorithm = str(told.value) if told else algorithm_of(framework, natives, *seen_of)
    algorithm = hints.method if algorithm == NO_METHOD and hints.method else algorithm
    recipe = recipe_of(algorithm)
    natives = replace(natives, rolls_out=recipe.answers == "generated", algorithm=algorithm)
    natives = with_defaults_of_method(natives, inputs.tables) if shows_all else natives
    chosen = _chosen(framework, natives, algorithm)
    filled = _mechanics(framework, inputs, era, chosen)
    mechanics = filled.mechanics
    ways = _sizes(natives, inputs.knobs, _SPREADS.get(mechanics.trainer or "", ()))
    if ways > 1:
        least = topology.model_parallel if mechanics.trainer == "megatron" else 1
        topology = replace(topology, model_parallel=max(least, ways))
    worded = hints.model or inputs.tables.once(("worded",), lambda: model_in_words(inputs.prose, inputs.models))
    of_launch = partial(inputs.tables.once, ("named", era), lambda: named_model(launch, inputs.models))
    stated = model_name(natives, of_launch, inputs.printed_model, worded)
    said_too = (inputs.model_name or "", stated)
    name = inputs.tables.once(("fuller", *said_too), lambda: fuller_name(*said_too, inputs.models)) or None
    whole = base_parameters(inputs.counts)
    found = partial(model_shape, name or "", inputs.models, inputs.printed_config, whole)
    shape = inputs.tables.once(("shape", name), found)
    shape = shape if shape is None or recipe.head == "vocabulary" else without_head(shape)
    if inputs.sized:
        topology = stated_topology(topology, inputs.knobs)
    missing, own = seen.missing, inputs.recognised.own_program
    unknown = inputs.tables.once(("unknown keys", era), lambda: unknown_keys(framework, era, launch, own=own))
    read = inputs.tables.once(("read by name", era), lambda: read_by_name(natives))
    unknown = tuple(one for one in unknown if one.meant or one.key not in read)  # what is a slip is told as one
    knobs = {
        **fill_knobs(natives, topology, frozenset() if missing else TAKEN_AT_DEFAULT, inputs.tables),
        **inputs.knobs,
    }
    knobs, topology, wide = engine_size(knobs, topology, inputs.machine)
    cut = launch.cuts if launch is not None else ()
    short = (told for told in (too_few(topology, inputs.machine), wide, hints.said) if told)
    told_first = (*cut, *idle_cards(launch, topology, inputs.counts, inputs.machine), *short)
    unread, of_file = taken(inputs.unread, knobs, natives, mechanics)
    natives = with_settings(natives, unread)
    knobs = {**knobs, **of_file}
    knobs = {**by_hint(hints, knobs), **trained_part(inputs.counts, shape), **knobs}
    knobs = {**knobs, **quantised(name, shape, knobs)}
    derived = derive_knobs(knobs, natives, topology, mechanics, recipe)
    knobs = {**knobs, **derived, **inputs.knobs}
    critic = another_model("critic.path", knobs, name)
    run = Run(
        framework=framework.framework if framework else "unknown",
        part_of=framework.part_of if framework else "",
        title=title_of(inputs.recognised),
        era=era,
        algorithm=algorithm,
        model=shape,
        model_name=name or "",
        topology=topology,
        knobs=knobs,
        mechanics=mechanics,
        critic_model=inputs.tables.once(("critic", critic, shape), lambda: critic_shape(critic, inputs.models, shape)),
        settings=launch.settings if launch else (),
        notes=(
            *inputs.tables.once("version notes", lambda: version_notes(inputs.recognised, launch)),
            *unknown_note(unknown),
            *by_name_note({key: meant for key, meant in read.items() if all(key != one.key for one in unknown)}),
            *dict.fromkeys(
                (*told_first, *_notes(framework, launch, topology, inputs.machine, shape, name, sized=inputs.sized))
            ),
            *(one.note for one in chosen if one.note),
        ),
        recognised_by=inputs.recognised.because,
        recognised_from=inputs.recognised.told_by,
        missing_files=missing,
        libraries=libraries,
        era_assumed=inputs.recognised.era_told_by == "nothing",
        era_guessed=inputs.recognised.era_told_by in ASSUMED_BY,
        unread=unread,
        assumed_mechanics=filled.assumed,
        uncounted=uncounted(framework, natives) if shows_all else (),
        doubts=(
            *inputs.tables.once("newer", lambda: newer_than_read(inputs.recognised)),
            *(_of_its_own(name, inputs.recognised, launch) for name in shipped),
            *doubts_of([one for one in launch.not_found if one.file not in shipped] if launch else (), unread),
        ),
        undescribed=_undescribed(framework, chosen, sized=inputs.sized),
        unknown_keys=unknown,
        newest_read=framework.newest_read if framework else None,
        told_first=told_first,
        lost=launch.lost if launch is not None else (),
        maybe_lost=launch.maybe_lost if launch is not None else (),
        launcher_unseen=mechanics.launcher_shards
        and not any(path.replace("\\", "/").endswith(OF_DDP) for path in inputs.frames)
        and (launch is not None and not launch.partial and (not launch.program or "" in launch.launcher_unread)),
        quoted=launch is not None and launch.partial,
        no_launch=inputs.no_launch,
        unsharded=unsharded_by(launch) if framework is None and launch is not None else "",
        seen_whole=shows_all and launch is not None and not launch.partial,
        unlimited_rows=recipe.answers == "given" and _unlimited(natives, shows_all),
    )
    return BuiltRun(run, natives)


def _observed(inputs: RunInputs, natives: Natives) -> dict[str, Knob]:
    """What a crash shows of the run, as far as no change moves it and the launch does not say otherwise."""
    changed = {native(key) for key in inputs.overrides}
    return {
        name: knob
        for name, knob in inputs.observed.items()
        if not any(native(one.key) in changed or one.setting is not None for one in natives.carriers(name))
    }


def _topology(natives: Natives, inputs: RunInputs, spreads: str, by_launch: Cards | None) -> Topology:
    """Read once for all what-ifs that leave what it depends on alone: nearly all of them."""
    machine, tables = inputs.machine, inputs.tables
    stated = (natives.values.get(key) for key in decided_by(natives, tables))
    told = tuple(None if one is None else (one.text, one.source) for one in stated)
    outside = (*natives.launcher.items(), *natives.libraries.items())
    key = ("topology", natives.era, told, outside, machine.nodes, gpus_of(machine), inputs.sized, spreads, by_launch)
    return tables.once(key, lambda: read_topology(natives, machine, inputs.sized, spreads, by_launch))


def _programs(launch: Launch | None) -> tuple[str, ...]:
    """What the launch runs, and the Python file that a launcher of the framework's own is given."""
    if launch is None:
        return ()
    files = [word for word in launch.argv[1:] if word is not None and word.endswith(".py")]
    return (launch.program, *files[:1])


def _of_its_own(file: str, recognised: Recognised, launch: Launch | None) -> str:
    """Says that a file of the framework's own stands for one that was not found, or that the program reads unasked."""
    assert recognised.framework is not None
    told = {"file": file, "framework": recognised.framework.title, "era": recognised.era}
    if launch is not None and file in recognised.framework.own_config.values():
        unasked = mark("{program} reads {file} where the command names no config: it counts as of {framework} {era}.")
        return say(unasked, program=launch.program, **told)
    own = mark("The file {file} was not found; {framework}'s own file of that name, as of {era}, counts for it.")
    return say(own, **told)


OF_DDP = "torch/nn/parallel/distributed.py"
"""Code that runs where each card trains a whole copy, whatever started it."""
_SPREADS = {"megatron": ("tensor", "pipeline", "context"), "fsdp": ("tensor",)}
"""Trainer → the sizes over which it spreads one copy of the model."""


def _sizes(natives: Natives, knobs: Mapping[str, Knob], kinds: tuple[str, ...]) -> int:
    names = [f"actor.{kind}_parallel" for kind in kinds]
    carriers = [knobs.get(name) or natives.carrier(name) for name in names]
    sizes = [c.value for c in carriers if c is not None]
    return prod(max(1, int(size)) for size in sizes if isinstance(size, (int, float)))


def _chosen(framework: Framework | None, natives: Natives, algorithm: str) -> list[MechanicsWhen]:
    """What the dialect says of the backend, the command and the algorithm that the launch chose."""
    scope = RunScope(natives, algorithm=algorithm)
    return [one for one in (framework.mechanics_when if framework else ()) if one.when.holds(scope) is True]


def _undescribed(framework: Framework | None, chosen: Sequence[MechanicsWhen], *, sized: bool) -> str:
    """What is not known of how the run holds memory, in words; "" where a dialect or a run file says it."""
    if framework is None:
        return "" if sized else say("how the framework that ran holds memory")
    unread = next((one.unread for one in chosen if one.unread), "")
    told = {"framework": framework.title, "what": unread}
    return say("how {framework} holds memory with {what}, which is not known here", **told) if unread else ""


def _mechanics(
    framework: Framework | None, inputs: RunInputs, era: str, chosen: Sequence[MechanicsWhen]
) -> FilledMechanics:
    """How the run holds memory; without a dialect as the knobs of a run file imply."""
    if framework is None:
        return FilledMechanics(assumed_mechanics(usual_trainer(inputs.knobs)) if inputs.sized else UNDESCRIBED)
    changed: dict[str, Any] = dict(framework.per_era.get(era) or {})
    for one in chosen:
        changed.update(one.set)
    return inputs.tables.once(("mechanics", repr(changed)), lambda: mechanics_of(framework, changed))


def _unlimited(natives: Natives, shows_all: bool) -> bool:
    """Whether rows may be as long as the data: the launch says so, or leaves it to a default that sets no limit."""
    carrier = natives.carrier("data.total_tokens")
    if carrier is None:
        return False
    if carrier.given:
        return isinstance(carrier.value, (int, float)) and carrier.value <= 0
    return carrier.value is None and shows_all


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
        notes.append(say("Assumed: {clause}.", clause=topology.assumed))
    if short := too_few(topology, machine):
        notes.append(short)
    if launch is not None and (file := elsewhere(framework, launch)):
        notes.append(
            say("The settings of this launch stand in {file}, which was not found: give that file instead.", file=file)
        )
    if framework is None and launch is not None and not sized:
        told = mark("The framework of this launch is not known here: settings are listed, memory is not predicted.")
        notes.append(say(told))
    if shape is None and name:
        text = mark("The shape of the model {name!r} is not known: give a config.json with --model, or a known name.")
        notes.append(say(text, name=name))
    elif shape is None:
        notes.append(say("The run names no model: give one with --model."))
    return tuple(notes)
