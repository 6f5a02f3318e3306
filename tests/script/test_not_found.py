"""What a launch names and is not there is kept with the option that names it and whose settings it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.script.launch import Launch, NotFound
from advisor.script.reader import printed_launch, read_script


def launched(folder: Path, command: str) -> Launch:
    (folder / "run.sh").write_text(command + "\n")
    return read_script(folder / "run.sh").launches[0]


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (
            "accelerate launch --config_file acc.yaml train.py --a 1",
            NotFound("--config_file", "acc.yaml", "accelerate"),
        ),
        ("deepspeed train.py --a 1 --deepspeed conf/z3.json", NotFound("--deepspeed", "conf/z3.json", "deepspeed")),
        ("torchrun train.py --fsdp_config fsdp.json", NotFound("--fsdp_config", "fsdp.json", "fsdp")),
        ("trl grpo --config recipe.yaml", NotFound("--config", "recipe.yaml")),
    ],
)
def test_a_file_that_is_not_there_is_kept_with_its_option(tmp_path: Path, command: str, missing: NotFound) -> None:
    assert launched(tmp_path, command).not_found == (missing,)


def test_a_file_that_is_there_or_a_word_of_the_framework_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "acc.yaml").write_text("num_processes: 2\n")
    (tmp_path / "fsdp.json").write_text('{"min_num_params": 0}\n')
    there = launched(
        tmp_path, "accelerate launch --config_file acc.yaml train.py --deepspeed zero3 --fsdp_config fsdp.json"
    )
    assert there.not_found == ()
    assert any(setting.key == "fsdp:min_num_params" for setting in there.settings)


def test_a_name_with_control_characters_is_none_that_is_told(tmp_path: Path) -> None:
    found = launched(tmp_path, "torchrun train.py --deepspeed $'a\\e[31mb.json'")
    assert found.not_found == ()
    assert [(s.value, s.reason) for s in found.settings] == [(None, "it holds characters that are no text")]


def test_a_script_that_is_not_found_is_no_training_command_by_its_name(tmp_path):
    script = tmp_path / "notes.sh"
    script.write_text("bash examples/train_rl.sh\nactor_rollout_ref.rollout.gpu_memory_utilization=0.8\n")
    found = read_script(script)
    assert [launch.program for launch in found.launches] == [""]
    assert [setting.key for setting in found.launches[0].settings] == [
        "actor_rollout_ref.rollout.gpu_memory_utilization"
    ]


def test_a_file_that_a_log_alone_names_was_not_given_also_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acc.yaml").write_text("num_processes: 2\n")
    monkeypatch.chdir(tmp_path)
    launch = printed_launch("accelerate launch --config_file acc.yaml train.py")
    assert [one.absent for one in launch.not_found] == ["was not given"]
    assert launch.notes == ("--config_file names acc.yaml, which was not given.",)


def test_what_a_script_runs_on_another_machine_is_known_by_the_end_of_its_path(tmp_path: Path) -> None:
    inner = tmp_path / "proj" / "scripts" / "run.sh"
    inner.parent.mkdir(parents=True)
    inner.write_text("python3 -m verl.trainer.main_ppo trainer.nnodes=2 data.train_batch_size=8\n")
    for text in (
        "cd /n/lab/proj\nbash scripts/run.sh\n",
        "bash ~/work/proj/scripts/run.sh\n",
        "/n/x/proj/scripts/run.sh\n",
    ):
        (tmp_path / "job.sh").write_text(text)
        (launch,) = read_script(tmp_path / "job.sh").launches
        assert launch.effective()["trainer.nnodes"].text == "2"
