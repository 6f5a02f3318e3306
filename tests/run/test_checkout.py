"""Versions as people have them, and the version of the source tree that a script lies in."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.rules.functions import release_of, version_in
from advisor.run.dialect import recognise, told_era
from advisor.run.version_notes import version_notes
from advisor.script.reader import read_script
from tests.loops import each

K = load_knowledge()
BY_NAME = {framework.framework: framework for framework in K.frameworks}
COMMANDS = {
    "verl": "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Q/Q-7B trainer.n_gpus_per_node=8\n",
    "openrlhf": "python3 -m openrlhf.cli.train_ppo_ray --pretrain Q/Q-7B --micro_train_batch_size 4\n",
    "ms-swift": "swift rlhf --rlhf_type grpo --model Q/Q-7B\n",
    "trl": "accelerate launch -m trl.scripts.grpo --model_name_or_path Q/Q-7B\n",
}


@each(
    ("written", "release"),
    [
        ("0.17.0.dev0", "0.17.0"), ("0.17.0rc1", "0.17.0"), ("0.17.0-rc1", "0.17.0"), ("v0.4.1", "0.4.1"),
        ("v0.4.1-25-gabc1234", "0.4.1"), ("2.6.0+cu124", "2.6.0"), ("2.7.0.dev20250101+rocm6", "2.7.0"),
        ("0.4.10.post2", "0.4.10.post2"), ("0.10.0.dev", "0.10.0"), ("main", None), ("3fa2b1c", None),
    ],
)  # fmt: skip
def test_a_version_belongs_to_the_release_it_leads_to(written: str, release: str | None) -> None:
    found = release_of(written)
    assert (None if found is None else str(found)) == release


def test_a_version_in_another_table_of_the_project_is_none_of_its_own(tmp_path: Path) -> None:
    project = '[project]\nname = "trl"\ndynamic = ["version"]\n\n[[tool.uv.dependency-metadata]]\nversion = "1.5.4"\n'
    (tmp_path / "pyproject.toml").write_text(project)
    script = tmp_path / "run.sh"
    script.write_text(COMMANDS["trl"])
    (launch,) = read_script(script).launches
    assert recognise(launch, "", (), {}, {}, K.frameworks, script=script).checkout is None


@each("name", ["trl", "verl", "openrlhf", "ms-swift", "easyr1"])
def test_a_prerelease_has_the_era_of_its_release(name: str) -> None:
    dialect = BY_NAME[name]
    lows = [era.versions.partition(",")[0].removeprefix(">=") for era in dialect.eras if era.versions.startswith(">=")]
    for low in filter(None, (release_of(low) for low in lows)):
        era = told_era(dialect, str(low), set(), {})
        assert era[1] == "version"
        for end in (".dev0", "rc1", ".dev20250101+cu124", "-3-gabcdef0"):
            assert told_era(dialect, f"{low}{end}", set(), {}) == era


def test_a_prerelease_is_not_older_than_its_release() -> None:
    assert version_in(">=0.9", "0.9.0rc1")
    assert not version_in("<0.9", "0.9.0.dev0")


@pytest.mark.parametrize(
    ("name", "file", "text", "version"),
    [
        ("verl", "verl/version/version", "0.3.0.post1\n", "0.3.0.post1"),
        ("openrlhf", "version.txt", "0.8.11", "0.8.11"),
        ("ms-swift", "swift/version.py", "# by hand\n__version__ = '3.5.3'\n", "3.5.3"),
        ("trl", "trl/__init__.py", '__version__ = "0.16.0.dev0"\nimport x\n', "0.16.0.dev0"),
        ("trl", "pyproject.toml", '[project]\nname = "trl"\nversion = "0.29.0"\n', "0.29.0"),
    ],
)
def test_the_checkout_around_a_script_tells_the_version(
    tmp_path: Path, name: str, file: str, text: str, version: str
) -> None:
    script = tmp_path / "examples" / "scripts" / "run.sh"
    script.parent.mkdir(parents=True)
    script.write_text(COMMANDS[name])
    (tmp_path / name.replace("-", "_")).mkdir(exist_ok=True)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    (launch,) = read_script(script).launches
    found = recognise(launch, "", (), {}, {}, K.frameworks, script=script)
    assert (found.version, found.era_told_by) == (version, "version")
    assert found.era == told_era(BY_NAME[name], version, set(), {})[0]
    assert any(f"is {version} by the checkout" in note for note in version_notes(found, launch))

    package = BY_NAME[name].package
    said = recognise(launch, "", (), {}, {package: "99.0"}, K.frameworks, script=script)
    assert said.version == "99.0"
    assert any(version in note and "what counts is 99.0" in note for note in version_notes(said, launch))


def test_somebody_elses_version_file_tells_nothing(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(COMMANDS["openrlhf"])
    (tmp_path / "version.txt").write_text("0.8.11")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\nversion = "3.0"\n')
    (launch,) = read_script(script).launches
    assert recognise(launch, "", (), {}, {}, K.frameworks, script=script).version is None
