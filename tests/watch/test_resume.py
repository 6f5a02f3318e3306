"""What a death would cost: how each dialect saves and goes on from there, and which checkpoint is whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor.retry.attempt import open_run, resume_in
from advisor.retry.declined import Declined
from advisor.run.resume import Resume, newest_checkpoint

VERL = "python3 -m verl.trainer.main_ppo data.train_batch_size=8 trainer.project_name=p trainer.experiment_name=e "
EASYR1 = "python3 -m verl.trainer.main config=x.yaml worker.actor.global_batch_size=8 trainer.experiment_name=e "
OPENRLHF = "python3 -m openrlhf.cli.train_ppo_ray --pretrain m --rollout_batch_size 8 --vllm_num_engines 1 "
SWIFT = "swift rlhf --rlhf_type grpo --model m --num_generations 8 --vllm_mode colocate "
TRL = "trl grpo --model_name_or_path m --num_generations 8 --max_completion_length 9 "
OPEN_R1 = "python src/open_r1/grpo.py --model_name_or_path m --num_generations 8 --max_completion_length 9 "
SLIME = "python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --rollout-batch-size 8 --hf-checkpoint m "
OWN_SCRIPT = "accelerate launch train_mine.py --per_device_train_batch_size 1 --num_generations 8 --save_steps 9"


@pytest.fixture
def resume_of_launch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read(command: str) -> Resume:
        Path("run.sh").write_text(command + "\n")
        state = open_run(Path("run.sh"), None, ())
        assert not isinstance(state, Declined)
        return resume_in(state)

    return read


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (VERL + "trainer.save_freq=50", "saves every 50 steps to checkpoints/p/e; resumes by itself"),
        (VERL, "nothing would resume: add trainer.save_freq=20"),
        (
            VERL + "trainer.save_freq=5 trainer.resume_mode=disable",
            "nothing would resume: add trainer.resume_mode=auto",
        ),
        (
            EASYR1 + "trainer.save_freq=5 trainer.save_checkpoint_path=out trainer.find_last_checkpoint=true",
            "saves every 5 steps to out; resumes by itself",
        ),
        (
            OPENRLHF + "--save_steps 9",
            "nothing would resume: add --load_checkpoint",
        ),
        (
            OPENRLHF + "--save_steps 9 --load_checkpoint --ckpt_path out",
            "saves every 9 steps to out; resumes by itself",
        ),
        (
            SWIFT + "--save_steps 9 --output_dir out",
            "saves every 9 steps to out; a retry sets resume_from_checkpoint to the newest checkpoint",
        ),
        (TRL + "--save_steps 9", "nothing would resume: this program does not go on from its checkpoints"),
        (OPEN_R1 + "--save_steps 9 --output_dir out", "saves every 9 steps to out; resumes by itself"),
        (SLIME + "--save out --save-interval 9", "nothing would resume: add --load out"),
        (SLIME + "--save out --load out --save-interval 9", "saves every 9 steps to out; resumes by itself"),
        (OWN_SCRIPT, "nothing would resume: how this run saves and goes on is not known"),
    ],
)
def test_the_sentence_before_the_first_start(resume_of_launch, command, sentence):
    assert resume_of_launch(command).sentence() == sentence


def test_only_a_whole_checkpoint_counts_and_the_newest_of_them(resume_of_launch, tmp_path):
    resume = resume_of_launch(SWIFT + "--save_steps 9 --output_dir out")
    for step in (9, 18, 27):
        (tmp_path / f"out/v0-1/checkpoint-{step}").mkdir(parents=True)
    assert newest_checkpoint(resume, tmp_path) is None
    for step in (9, 18):
        written = tmp_path / f"out/v0-1/checkpoint-{step}/trainer_state.json"
        written.touch()
        os.utime(written, (step, step))
    found = newest_checkpoint(resume, tmp_path)
    assert found is not None
    assert (found.step, found.folder) == (18, tmp_path / "out/v0-1/checkpoint-18")
    assert newest_checkpoint(resume, tmp_path, since=20.0) is None


def test_a_tracker_written_last_names_the_step(resume_of_launch, tmp_path):
    resume = resume_of_launch(EASYR1 + "trainer.save_freq=5 trainer.save_checkpoint_path=out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/checkpoint_tracker.json").write_text('{"best_global_step": 5, "last_global_step": 10}')
    found = newest_checkpoint(resume, tmp_path)
    assert found is not None
    assert found.step == 10


def test_where_the_folder_is_not_known_nothing_is_looked_for(resume_of_launch, tmp_path):
    resume = resume_of_launch(VERL.replace("trainer.project_name=p", "") + "trainer.save_freq=5")
    assert resume.goes_on
    assert not resume.place_known
    assert newest_checkpoint(resume, tmp_path) is None
