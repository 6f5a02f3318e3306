"""The tables of renamed settings, read both ways: every old name tells its new one, every new name its old one."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework
from advisor.run.dialect import recognise
from advisor.run.natives import in_era
from advisor.run.version_notes import other_name, version_notes
from advisor.script.reader import read_script
from tests.loops import each

KNOWLEDGE = load_knowledge()
PAIRS = [(f, old, new) for f in KNOWLEDGE.frameworks for old, new in f.renamed.items()]
IDS = [f"{f.framework}-{old}" for f, old, _ in PAIRS]
OPENRLHF = next(f for f in KNOWLEDGE.frameworks if f.framework == "openrlhf")


def eras_with(framework: Framework, key: str) -> set[str]:
    """The eras that have the key."""
    fact = framework.settings.get(key)
    return {era.id for era in framework.eras if fact is not None and in_era(fact, era.id)}


@each(("framework", "old", "new"), PAIRS, ids=IDS)
def test_each_name_tells_the_other_in_the_eras_that_have_only_that_one(
    framework: Framework, old: str, new: str
) -> None:
    of_old, of_new = eras_with(framework, old), eras_with(framework, new)
    for era in of_new - of_old:
        assert other_name(framework, old, era)
    for era in of_old - of_new:
        assert other_name(framework, new, era)


def test_all_flat_options_of_openrlhf_have_a_group() -> None:
    newest = OPENRLHF.eras[0].id
    table = {old for old in OPENRLHF.renamed if "." not in old}
    assert len(table) >= 60
    assert not {old for old in table if not other_name(OPENRLHF, old, newest)} - eras_keys(newest)


def eras_keys(era: str) -> set[str]:
    return {key for key, fact in OPENRLHF.settings.items() if in_era(fact, era)}


@pytest.mark.parametrize(
    ("version", "given", "called"),
    [
        ("0.11.0", "micro_train_batch_size", "train.micro_batch_size"),
        ("0.9.6", "train.micro_batch_size", "micro_train_batch_size"),
    ],
)
def test_a_launch_for_another_version_is_told_the_name_of_this_one(
    tmp_path: Path, version: str, given: str, called: str
) -> None:
    text = f"python3 -m openrlhf.cli.train_ppo_ray --{given} 4\n"
    (tmp_path / "run.sh").write_text(text)
    launch = read_script(tmp_path / "run.sh").launches[0]
    found = recognise(launch, text, (), {}, {"openrlhf": version}, KNOWLEDGE.frameworks)
    (note,) = [note for note in version_notes(found, launch) if given in note]
    assert f"{given} is not a setting of OpenRLHF {found.era}: there it is called {called}." in note
