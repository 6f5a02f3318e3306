"""The `defaults:` list of a hydra config, as hydra composes it from the files beside it."""

from __future__ import annotations

from pathlib import Path

from tests.script.conftest import Read, values

LAUNCH = "python -m verl.trainer.main_ppo --config-path=conf --config-name=main trainer.x=1\n"
FILES = {
    "main.yaml": (
        "defaults:\n  - ppo_trainer\n  - actor@actor_rollout_ref.actor: dp\n  - opt: adam\n  - override x: y\n"
        "  - _self_\ntrainer: {x: 5, y: 6}\nactor_rollout_ref:\n  actor:\n    mb: 8\n"
    ),
    "actor/dp.yaml": "defaults:\n  - /opt@optim: adam\n  - base\nlr: 1\nmb: 2\nz: 1\n",
    "actor/base.yaml": "z: 9\n",
    "opt/adam.yaml": "betas: [1, 2]\n",
}


def _written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_groups_stand_under_their_packages_and_later_ones_win(read: Read, tmp_path: Path) -> None:
    _written(tmp_path, FILES)
    (launch,) = read(LAUNCH).launches
    assert values(launch) == {
        "actor_rollout_ref.actor.optim.betas": ("1", "2"),
        "actor_rollout_ref.actor.z": "1",  # the config itself comes last where it does not say
        "actor_rollout_ref.actor.lr": "1",
        "actor_rollout_ref.actor.mb": "8",
        "opt.betas": ("1", "2"),
        "trainer.x": "1",
        "trainer.y": "6",
        "--config-path": "conf",
        "--config-name": "main",
    }


def test_a_default_that_is_not_there_is_said(read: Read, tmp_path: Path) -> None:
    _written(tmp_path, FILES)
    (launch,) = read(LAUNCH).launches
    assert [note for note in launch.notes if "ppo_trainer" in note]


def test_what_comes_before_self_is_overridden_and_what_comes_after_overrides(read: Read, tmp_path: Path) -> None:
    _written(tmp_path, {"main.yaml": "defaults: [_self_, late]\na: 1\n", "late.yaml": "# @package _global_\na: 2\n"})
    assert values(read(LAUNCH).launches[0])["a"] == "2"


def test_defaults_that_name_each_other_end(read: Read, tmp_path: Path) -> None:
    _written(tmp_path, {"main.yaml": "defaults: [main]\na: 1\n"})
    assert values(read(LAUNCH).launches[0])["a"] == "1"
