"""What a death would cost: how a run saves, whether it starts again by itself, and which checkpoint is whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from advisor.run.resume import Resumption, cost_of_a_death, last_checkpoint, resumption_of

from .test_binding import K, built, gpus, launch

HERE = Path("/run")
VERL = {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": "1", "trainer.n_gpus_per_node": "8"}
OPENRLHF = {"--actor_num_gpus_per_node": "8", "--vllm_num_engines": "4", "--save_steps": "20", "--ckpt_path": "ck"}


def resumed(program: str, settings: dict[str, str | tuple[()]], start: Path = HERE, **libraries: str) -> Resumption:
    return resumption_of(built(launch(program, **settings), gpus(8), libraries=libraries), start)


def verl(start: Path = HERE, version: str = "0.6.0", **settings: str) -> Resumption:
    given = {**VERL, **{f"trainer.{key}": value for key, value in settings.items()}}
    return resumed("verl.trainer.main_ppo", dict(given), start, verl=version)


def test_a_run_that_saves_nothing_is_told_which_setting_makes_it_save() -> None:
    found = verl()
    assert not found.can_resume()
    assert cost_of_a_death(found) == "nothing would resume: add trainer.save_freq=20"


def test_verl_starts_again_by_itself_unless_it_is_told_not_to() -> None:
    assert verl(save_freq="50").by_itself
    assert not verl(save_freq="50", resume_mode="disable").by_itself
    assert verl(save_freq="50", resume_mode="disable").settings_from(None) == {"trainer.resume_mode": "auto"}


def test_the_folder_follows_the_names_of_project_and_experiment() -> None:
    assert verl(save_freq="5", project_name="p").folder == HERE / "checkpoints/p/gsm8k"
    said = cost_of_a_death(verl(save_freq="50", default_local_dir="/ck"))
    assert said == "saves every 50 steps to /ck; resumes by itself"


def test_weights_that_nothing_reads_back_are_no_checkpoint() -> None:
    found = verl(version="0.1", save_freq="10")
    assert not found.can_resume()
    assert "never reads them back" in cost_of_a_death(found)


def test_a_bare_flag_counts_as_set() -> None:
    assert resumed("openrlhf.cli.train_ppo_ray", {**OPENRLHF, "--load_checkpoint": ()}, openrlhf="0.8.0").by_itself
    without = resumed("openrlhf.cli.train_ppo_ray", dict(OPENRLHF), openrlhf="0.8.0")
    assert not without.by_itself
    assert without.settings_from(None) == {"load_checkpoint": "true"}


@pytest.mark.parametrize(("latest", "step"), [("20", 20), ("10", 10), (None, None), ("30", None)])
def test_the_checkpoint_that_the_framework_calls_its_last_counts(
    tmp_path: Path, latest: str | None, step: int | None
) -> None:
    for saved in (10, 20):
        (tmp_path / f"global_step_{saved}" / "actor").mkdir(parents=True)
    if latest is not None:
        (tmp_path / "latest_checkpointed_iteration.txt").write_text(latest)
    found = last_checkpoint(verl(save_freq="10", default_local_dir=str(tmp_path)))
    assert (found.step if found else None) == step


def test_a_checkpoint_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    given = {"--output_dir": str(tmp_path), "--save_steps": "5", "--use_vllm": "true", "--num_generations": "8"}
    run = resumed("trl grpo", dict(given), trl="0.25.0")
    for saved, whole in ((5, True), (10, False)):
        (tmp_path / f"checkpoint-{saved}").mkdir()
        (tmp_path / f"checkpoint-{saved}" / "model.safetensors").write_text("x")
        if whole:
            (tmp_path / f"checkpoint-{saved}" / "trainer_state.json").write_text("{}")
    found = last_checkpoint(run)
    assert found.step == 5
    assert last_checkpoint(run, since=os.stat(found.path).st_mtime + 60) is None


def test_easyr1_names_its_last_step_in_json(tmp_path: Path) -> None:
    settings = {"worker.rollout.n": "5", "trainer.save_freq": "5", "trainer.save_checkpoint_path": str(tmp_path)}
    run = resumed("verl.trainer.main", dict(settings), verl="0.3.2")
    (tmp_path / "global_step_15" / "actor").mkdir(parents=True)
    (tmp_path / "checkpoint_tracker.json").write_text(json.dumps({"best_global_step": 5, "last_global_step": 15}))
    found = last_checkpoint(run)
    assert found.step == 15


def test_a_checkpoint_does_not_survive_another_layout_of_the_states() -> None:
    found = verl(save_freq="5")
    assert found.survives("actor.micro_batch")
    assert found.survives("rollout.memory_share")
    assert not found.survives("actor.optimizer")
    assert not found.survives("actor.shard_size")


def test_every_dialect_that_says_how_it_saves_is_told_in_words() -> None:
    told = {one.framework: one.resume for one in K.frameworks if one.resume}
    assert {"verl", "easyr1", "logic-rl", "openrlhf", "ms-swift", "trl", "slime", "nemo-rl", "areal", "roll"} <= {*told}
    for ways in told.values():
        assert all(way.source and (way.every or way.says) for way in ways)
