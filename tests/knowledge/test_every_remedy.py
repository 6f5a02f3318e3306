"""Every remedy on the least launch of every era of every dialect: what it changes must exist there and be allowed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from advisor.crash.evidence import NOTHING, Crash
from advisor.knowledge import Knowledge, load_knowledge
from advisor.knowledge.schema import Framework, Remedy
from advisor.machine.describe import described
from advisor.machine.inventory import Machine
from advisor.memory import predict
from advisor.memory.cells import Ledger
from advisor.memory.ledger import build_ledger
from advisor.memory.predict import Predictor
from advisor.plan import candidates
from advisor.plan.options import options, unseen_number
from advisor.plan.situation import Situation
from advisor.run.build import RunInputs
from advisor.run.constraints import violations
from advisor.run.dialect import recognise
from advisor.run.natives import EnvironmentPrefix, fact_in
from advisor.run.run import Run
from advisor.run.values import parse_value
from advisor.script.reader import read_script
from tests.heavy import sampled
from tests.knowledge.minimal_launch import MinimalLaunch, minimal_launch

KNOWLEDGE: Knowledge = load_knowledge()
ERAS = [(f, e.id, e.versions) for f in KNOWLEDGE.frameworks for e in f.eras] + [
    (f, "", "") for f in KNOWLEDGE.frameworks if not f.eras
]
IDS = [f"{framework.framework}-{era or 'any'}" for framework, era, _ in ERAS]
NAMES = [framework.framework for framework, _, _ in ERAS]
ENDS = [place for place, name in enumerate(NAMES) if NAMES.index(name) == place or name not in NAMES[place + 1 :]]
"""The first and the last era of each dialect: between them, what changes is looked at at its ends."""
SETTINGS = [remedy for remedy in KNOWLEDGE.remedies if remedy.knob is not None and remedy.value is not None]
FEW = 2
"""Values looked at for each remedy."""
TYPED = ("int", "float", "bool", "flag")
EITHER = ("lower-actor-micro-batch", "token-budget", "lower-pack-length", "lower-logprob-micro-batch")


@dataclass(frozen=True)
class Opened:
    """A launch as it was read, and what the plan would be made for."""

    launch: MinimalLaunch
    situation: Situation


@pytest.fixture(autouse=True)
def few_values_and_one_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a change saves does not matter here, only what it is."""
    monkeypatch.setattr(candidates, "MOST", FEW)
    ledgers: dict[str, Ledger] = {}

    def once(run: Run, machine: Machine, crash: Crash) -> Ledger:
        key = f"{run.framework} {run.era}"
        return ledgers[key] if key in ledgers else ledgers.setdefault(key, build_ledger(run, machine, crash))

    monkeypatch.setattr(predict, "build_ledger", once)


@cache
def opened(name: str, era: str, versions: str, folder: Path) -> Opened:
    """The launch, read and recognised on a described machine."""
    framework = next(each for each in KNOWLEDGE.frameworks if each.framework == name)
    launch = minimal_launch(framework, era, versions)
    file = folder / f"{name}-{era}-{launch.name}"
    file.write_text(launch.text)
    told = (f"{framework.package}={launch.version}",) if launch.version else ()
    machine = described(KNOWLEDGE.gpus, gpus="8xA100-80GB", host_ram="1000GB", libraries=told)
    read = read_script(file).launches[0]
    recognised = recognise(read, launch.text, (), {}, machine.libraries, KNOWLEDGE.frameworks)
    inputs = RunInputs(recognised, read, machine, KNOWLEDGE.models)
    predictor = Predictor(inputs, NOTHING, 0.08)
    situation = Situation(predictor, KNOWLEDGE, {}, "", "actor_update", "gpu")
    return Opened(launch, situation)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("launches")


@pytest.mark.parametrize(("framework", "era", "versions"), ERAS, ids=IDS)
def test_the_least_launch_is_read_as_what_it_is(framework: Framework, era: str, versions: str, folder: Path) -> None:
    found = opened(framework.framework, era, versions, folder)
    built = found.situation.now.built
    assert (built.run.framework, built.run.era) == (framework.framework, era), found.launch.text
    assert not [note for note in built.run.notes if "is not a setting of" in note]
    assert built.run.topology.known
    assert built.run.model is not None
    assert not violations(built, found.launch.keys)


@pytest.mark.parametrize(("framework", "era", "versions"), sampled(ERAS, ENDS), ids=IDS)
def test_every_change_is_one_that_the_framework_takes(
    framework: Framework, era: str, versions: str, folder: Path
) -> None:
    situation = opened(framework.framework, era, versions, folder).situation
    offered = {r.id: changes for r in SETTINGS if (changes := _changes(r, situation))}
    wrong = [
        (remedy, said)
        for remedy, changes in offered.items()
        for overrides in changes
        for said in _wrong(overrides, framework, era, situation)
    ]
    assert not wrong
    told = {r.id for r in SETTINGS if unseen_number(r, situation)}  # by hand, where a file was not found
    assert set(EITHER) & {*offered, *told}, f"nothing makes a pass of the batch smaller: {sorted(offered)}"


def _changes(remedy: Remedy, situation: Situation) -> list[dict[str, str | None]]:
    found = options(remedy, situation, {})
    return [] if found is None else [dict(option.overrides) for option in found[0]]


def _wrong(overrides: dict[str, str | None], framework: Framework, era: str, situation: Situation) -> list[str]:
    """What the framework would refuse: a key that the era lacks, a text of the wrong type, a rule that breaks."""
    said = []
    for key, text in overrides.items():
        if key.startswith(EnvironmentPrefix):
            continue
        known = framework.settings.get(key)
        fact = fact_in(known, era) if known is not None else None
        if fact is None:
            said.append(f"{key} does not exist in {era}")
        elif (
            text is not None and fact.type in ("int", "float", "bool", "flag") and parse_value(text, fact.type) is None
        ):
            said.append(f"{key}={text} is no {fact.type}")
    keys = [key for key in overrides if not key.startswith(EnvironmentPrefix)]
    already = violations(situation.now.built, keys)
    return said + [v for v in violations(situation.predictor.built(overrides), keys) if v not in already]


def test_no_remedy_of_the_plan_is_without_a_dialect() -> None:
    """A remedy whose knob no dialect carries could never be proposed."""
    carried = {
        knob
        for framework in KNOWLEDGE.frameworks
        for fact in (*framework.settings.values(), *framework.environment.values())
        for knob in (fact.knob, *fact.also)
    }
    assert not [r.id for r in SETTINGS if r.knob not in carried and not r.environment]


def test_names_of_the_table_of_names_are_settings_of_some_era() -> None:
    for framework in KNOWLEDGE.frameworks:
        unknown = {new for new in framework.renamed.values() if new not in framework.settings}
        assert not unknown, framework.framework
