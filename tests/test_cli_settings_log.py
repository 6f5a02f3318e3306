"""`settings SCRIPT --log LOG`: what the run printed fills what the script leaves open, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.cli import main

VERL = "python3 -m verl.trainer.main_ppo data.train_batch_size=$B actor_rollout_ref.actor.optim.lr=1e-6 {}\n"
PRETTY = """\
+ date
(TaskRunner pid=4021) {'actor_rollout_ref': {'actor': {'optim': {'lr': 1e-06},
(TaskRunner pid=4021)                                  'ppo_epochs': 1}},
(TaskRunner pid=4021)  'data': {'train_batch_size': 1024}}
"""
EASY = """\
(Runner pid=9) {
(Runner pid=9)   "data": {
(Runner pid=9)     "rollout_batch_size": 512
(Runner pid=9)   },
(Runner pid=9)   "worker": {"rollout": {
(Runner pid=9)     "n": 5}}
(Runner pid=9) }
"""
OVERRIDES = (
    "Error executing job with overrides: ['data.train_batch_size=256', 'actor_rollout_ref.actor.optim.lr=2e-6']\n"
)
TRACED = "+ date\n+ python3 -m verl.trainer.main_ppo data.train_batch_size=64 actor_rollout_ref.actor.optim.lr=1e-6\n"
ARGUMENTS = "GRPOConfig(\n_n_gpu=1,\nper_device_train_batch_size=2,\n)\n"


SWIFT = """\
[INFO:swift] Loading the model using model_dir: /data/Qwen2.5-7B-Instruct
[INFO:swift] args: RLHFArguments(
_n_gpu=-1,
deepspeed={'zero_optimization': {'stage': 3}},
num_generations=8,
per_device_train_batch_size=2,
)
[INFO:swift] Global seed set to 42
"""
ON_ONE_LINE = "2025-02-11 INFO Namespace(pretrain='/data/model', micro_train_batch_size=4, zero_stage=3, bf16=True)\n"
DEEPSPEED = """\
[2025-02-11 03:25:41,123] [INFO] [config.py:1001:print] DeepSpeedEngine configuration:
[2025-02-11 03:25:41,124] [INFO] [config.py:1005:print]   gradient_clipping ............ 1.0
[2025-02-11 03:25:41,124] [INFO] [config.py:991:print_user_config]   json = {
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {
            "device": "cpu"
        }
    },
    "train_micro_batch_size_per_gpu": 8
}
"""


def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str, log: str) -> dict[str, dict[str, object]]:
    """key → its entry in the JSON answer, of the only launch."""
    (tmp_path / "run.sh").write_text(script)
    (tmp_path / "run.log").write_text(log)
    assert main(["settings", str(tmp_path / "run.sh"), "--log", str(tmp_path / "run.log"), "--format", "json"]) == 0
    (launch,) = json.loads(capsys.readouterr().out)["launches"]
    return {entry["key"]: entry for entry in launch["settings"]} | {"notes": {"all": " ".join(launch["notes"])}}


@pytest.mark.parametrize(
    ("script", "log", "key", "value", "line"),
    [
        (VERL, PRETTY, "data.train_batch_size", "1024", 4),
        (VERL, OVERRIDES, "data.train_batch_size", "256", 1),
        (VERL, TRACED, "data.train_batch_size", "64", 2),
        ("python -m verl.trainer.main worker.rollout.n=$N data.x=4\n", EASY, "worker.rollout.n", "5", 6),
        ("swift rlhf --model $M\n", "+ swift rlhf --model Qwen/Q\n", "--model", "Qwen/Q", 1),
        ("python train_grpo.py --per_device_train_batch_size $B\n", ARGUMENTS, "--per_device_train_batch_size", "2", 3),
    ],
    ids=["verl's dictionary", "hydra's overrides", "set -x", "EasyR1's JSON", "a traced swift", "TRL's arguments"],
)  # fmt: skip
def test_an_open_value_comes_from_the_line_that_printed_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str, log: str, key: str, value: str, line: int
) -> None:
    entry = asked(tmp_path, capsys, script, log)[key]
    assert (entry["value"], entry["resolved"], entry["origin"]) == (value, True, "log")
    assert (entry["file"], entry["line"]) == (str(tmp_path / "run.log"), line)
    assert "leaves it open" in str(entry["reason"])


def test_a_value_of_the_script_stays_and_the_difference_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked(tmp_path, capsys, VERL, OVERRIDES)
    entry = found["actor_rollout_ref.actor.optim.lr"]
    assert (entry["value"], entry["origin"]) == ("1e-6", "command")
    assert "is 1e-6 in the script, but the log printed 2e-6 (run.log:1)" in str(found["notes"])
    assert "printed" not in str(asked(tmp_path, capsys, VERL, PRETTY)["notes"]).replace("what the log printed.", "")


def test_of_several_launches_the_one_that_the_log_confirms_is_filled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.sh").write_text("python train.py --lr 1 --bs $B\npython train.py --lr 2 --bs $B\n")
    (tmp_path / "run.log").write_text("+ python train.py --lr 2 --bs 8\n")
    main(["settings", str(tmp_path / "run.sh"), "--log", str(tmp_path / "run.log"), "--format", "json"])
    first, second = json.loads(capsys.readouterr().out)["launches"]
    assert [launch["settings"][1]["value"] for launch in (first, second)] == [None, "8"]


def test_the_text_says_where_a_value_comes_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.sh").write_text("python train.py --bs $B\n")
    (tmp_path / "run.log").write_text("+ python train.py --bs 8\n")
    main(["settings", str(tmp_path / "run.sh"), "--log", str(tmp_path / "run.log")])
    text = " ".join(capsys.readouterr().out.split())
    assert "--bs = 8 run.log:1 (from the log; the script leaves it open: $B is not set in the script)" in text


def test_a_log_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.sh").write_text("python train.py --bs $B\n")
    assert main(["settings", str(tmp_path / "run.sh"), "--log", str(tmp_path / "none.log")]) == 2
    assert "none.log" in capsys.readouterr().err


def test_the_arguments_that_swift_prints_fill_its_variables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "swift rlhf --rlhf_type grpo --deepspeed zero3 --num_generations $N --per_device_train_batch_size $1\n"
    found = asked(tmp_path, capsys, script, SWIFT)
    assert found["--num_generations"]["value"] == "8"
    assert found["--per_device_train_batch_size"]["line"] == 6
    assert found["--deepspeed"]["value"] == "zero3"


def test_arguments_printed_on_one_line_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "deepspeed --module openrlhf.cli.train_ppo --pretrain $MODEL --micro_train_batch_size $B --zero_stage 3\n"
    found = asked(tmp_path, capsys, script, ON_ONE_LINE)
    assert (found["--pretrain"]["value"], found["--micro_train_batch_size"]["value"]) == ("/data/model", "4")


def test_the_configuration_that_deepspeed_prints_stands_in_for_a_file_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked(tmp_path, capsys, "swift rlhf --rlhf_type grpo --deepspeed missing.json\n", DEEPSPEED)
    assert found["zero_optimization.stage"]["value"] == "3"
    assert found["zero_optimization.offload_optimizer.device"]["value"] == "cpu"
