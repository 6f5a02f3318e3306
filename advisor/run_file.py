"""Sizes a run ahead: one that a YAML run file describes, or that of a session."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from advisor.bounded_yaml import UnboundedYamlError, check_bounds
from advisor.crash.evidence import NOTHING
from advisor.diagnosis.computing import speak_of_cards, vendor_of
from advisor.hostile import clean_line
from advisor.knowledge import Knowledge, open_knowledge
from advisor.language import listed, say
from advisor.machine.describe import beside_others, described, merge
from advisor.machine.gpu_spec import gpus_from
from advisor.machine.inventory import Machine
from advisor.machine.measure import measure
from advisor.memory.cells import Ledger, Match
from advisor.memory.fit import Fit, FitVerdict, Walls, fit_of, of_estimate
from advisor.memory.predict import Predictor
from advisor.plan.sizes import Sizes, sizes_of
from advisor.plan.trial import Trial, trial_of
from advisor.request import described_machine
from advisor.run.build import RunInputs
from advisor.run.dialect import Recognised, era_of
from advisor.run.implied import Implied, implied_by
from advisor.run.run import Knob, Run
from advisor.script.document import Setting, Value
from advisor.script.launch import Launch

if TYPE_CHECKING:
    from advisor.session import SessionRequest, State

FILE_LIMIT = 4 * 2**20
VALUES_LIMIT = 50_000
"""Bytes; a run file has a page."""
_FIELDS = {
    "framework", "program", "model", "gpus", "nodes", "host_ram", "libraries", "environment", "launcher", "settings",
    "knobs",
}  # fmt: skip


class Sizing(Struct, frozen=True):
    """A run, its machine and the memory it is expected to take. `margin` is the fraction to be left free."""

    run: Run
    machine: Machine
    ledger: Ledger
    margin: float
    fit: Fit
    attribution: tuple[Match, ...] = ()
    sizes: Sizes | None = None
    """How far it could go; None where nothing can be computed."""
    trial: Trial | None = None
    """How to see its worst batch in the first step."""


def sizing_of(state: State, searched: Container[FitVerdict] | None = None) -> Sizing:
    """What a session says of size. `searched`: the verdicts at which how far it could go is asked for, else at all."""
    margin, situation = state.plan.margin, state.situation
    if situation is None:
        fit = of_estimate(fit_of(state.ledger, Walls(margin), state.run), Walls(margin), state.run)
        return Sizing(state.run, state.machine, state.ledger, margin, fit, state.attribution)
    predictor = situation.predictor
    fit = of_estimate(predictor.predict().fit, predictor.walls, state.run)
    sizes = sizes_of(predictor, state.knowledge.gpus) if searched is None or fit.verdict in searched else None
    trial = trial_of(predictor.built(), predictor.inputs.launch)
    return Sizing(state.run, state.machine, state.ledger, margin, fit, state.attribution, sizes, trial)


def size_run_file(path: Path, asked: SessionRequest) -> Sizing:
    """Size the run a file describes; what the command line says of the machine wins. Raises ValueError, OSError."""
    knowledge = open_knowledge(asked.knowledge)
    stated = _read(path)
    name = clean_line(str(path))
    try:
        machine = _machine(stated, asked, knowledge)
        inputs = _inputs(stated, asked, machine, knowledge, name)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    speak_of_cards(vendor_of(NOTHING, machine, knowledge.gpus))
    predictor = Predictor(inputs, NOTHING, asked.margin)
    now, sizes = predictor.predict(), sizes_of(predictor, knowledge.gpus)
    fit = of_estimate(now.fit, predictor.walls, now.run)
    return Sizing(
        now.run, machine, now.ledger, asked.margin, fit, sizes=sizes, trial=trial_of(now.built, inputs.launch)
    )


def _read(path: Path) -> Mapping[str, Any]:
    import yaml

    name = clean_line(str(path))
    with path.open("rb") as file:
        data = file.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise ValueError(say("{file}: too large for a run file", file=name))
    try:
        check_bounds(data, VALUES_LIMIT)
        stated = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    except UnboundedYamlError as error:
        raise ValueError(f"{name}, {error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or say("cannot be parsed")
        if mark is None:
            raise ValueError(say("{file}: not YAML ({problem})", file=name, problem=problem)) from error
        told = {"file": name, "line": mark.line + 1, "problem": problem}
        raise ValueError(say("{file}, line {line}: not YAML ({problem})", **told)) from error
    if not isinstance(stated, dict) or not stated.get("framework"):
        raise ValueError(say("{file}: a run file is a mapping that names at least its framework", file=name))
    unknown = sorted(str(key) for key in stated if key not in _FIELDS)
    if unknown:
        told = {"file": name, "name": clean_line(unknown[0], 60), "names": listed(sorted(_FIELDS))}
        raise ValueError(say("{file}: {name} is none of {names}", **told))
    return stated


def _machine(stated: Mapping[str, Any], asked: SessionRequest, knowledge: Knowledge) -> Machine:
    """This box, under what the file says, under what the command line says."""
    nodes = stated.get("nodes")
    if nodes is not None and (not isinstance(nodes, int) or isinstance(nodes, bool)):
        raise ValueError(say("nodes must be a whole number, not {given!r}", given=clean_line(str(nodes), 40)))
    versions = _mapping(stated, "libraries")
    from_file = described(
        knowledge.gpus,
        nodes=nodes,
        host_ram=None if stated.get("host_ram") is None else str(stated["host_ram"]),
        libraries=[f"{library}={version}" for library, version in versions.items()],
    )
    if stated.get("gpus") is not None:
        cards = gpus_from(stated["gpus"], knowledge.gpus)
        from_file = dataclasses.replace(from_file, gpus=cards, sources={**from_file.sources, "gpus": "described"})
    here = measure()
    return beside_others(merge(merge(here, from_file), described_machine(asked, knowledge)), here, True)


def _inputs(
    stated: Mapping[str, Any], asked: SessionRequest, machine: Machine, knowledge: Knowledge, name: str
) -> RunInputs:
    word = str(stated["framework"])
    framework = next((each for each in knowledge.frameworks if each.framework == word), None)
    given = _mapping(stated, "settings")
    variables = framework.environment if framework is not None else {}
    environment = {str(key): _text(value) for key, value in _mapping(stated, "environment").items()}
    environment |= {str(key): _text(value) for key, value in given.items() if key in variables}
    settings = [Setting(str(key), _value(value), "file") for key, value in given.items() if key not in variables]
    keys = {setting.key for setting in settings}
    version = machine.libraries.get(framework.package) if framework is not None else None
    era = era_of(framework, version, keys) if framework is not None else ""
    told = {"word": clean_line(word, 40), "file": name}
    if framework is not None:
        because = say("the word {word} in {file}", **told)
    else:
        because = say("the word {word} in {file}, which is not known", **told)
    knobs = {
        str(knob): Knob(str(knob), value, "user")
        for knob, value in _mapping(stated, "knobs").items()
        if value is not None
    }
    launcher = {str(key): _text(value) for key, value in _mapping(stated, "launcher").items()}
    implied = implied_by(framework, era, keys, knobs) if framework is not None else Implied()
    settings += [Setting(key, text, "file") for key, text in implied.settings.items() if key not in keys]
    program = clean_line(str(stated.get("program") or implied.program))
    model = asked.model_name or stated.get("model")
    return RunInputs(
        Recognised(framework, era, because, version),
        Launch(0, program, (), environment, tuple(settings), launcher=launcher),
        machine,
        knowledge.models,
        model_name=None if model is None else str(model),
        knobs={**knobs, **asked.knobs},
        sized=True,
    )


def _text(value: object) -> str:
    """A YAML scalar or list as one word."""
    found = _value(value)
    return found if isinstance(found, str) else ",".join(str(part) for part in found or ())


def _mapping(stated: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = stated.get(key) or {}
    if not isinstance(value, dict):
        problem = say("{key} must be a mapping, not {given!r}", key=key, given=clean_line(str(value), 40))
        raise ValueError(problem)  # noqa: TRY004 - one kind of error for input
    return value


def _value(value: object) -> Value:
    """A YAML scalar as the text a program would get."""
    if isinstance(value, list):
        return tuple(clean_line(str(item)) for item in value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return clean_line(str(value))
