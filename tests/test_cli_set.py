"""set, scan and streams, as scripts use them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest

from advisor import cli
from advisor.demo import demo_files
from advisor.exits import Exit

TWO = b"""\
#!/bin/bash
export NCCL_DEBUG=WARN
python3 -m verl.trainer.main_ppo data.train_batch_size=8 trainer.nnodes=1
python3 -m verl.trainer.main_ppo data.train_batch_size=16 actor_rollout_ref.rollout.n=4
"""
FLAGS = b"deepspeed --module openrlhf.cli.train_ppo_ray --micro_train_batch_size 2 --packing_samples\n"


def advisor(*arguments, cwd=None, stdin=b""):
    return subprocess.run(
        [sys.executable, "-m", "advisor", *map(str, arguments)],
        cwd=cwd, input=stdin, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def two(tmp_path):
    (tmp_path / "run.sh").write_bytes(TWO)
    return tmp_path / "run.sh"


@pytest.fixture
def flags(tmp_path):
    (tmp_path / "flags.sh").write_bytes(FLAGS)
    return tmp_path / "flags.sh"


def edited(script, *arguments):
    """The new bytes, through the door in this process."""
    assert cli.main(["set", str(script), *arguments]) == 0
    return script.with_name(f"{script.stem}.fits.sh").read_bytes()


def test_all_launches_that_have_the_key_get_the_value(two):
    new = TWO.replace(b"batch_size=8", b"batch_size=4").replace(b"batch_size=16", b"batch_size=4")
    assert edited(two, "data.train_batch_size=4") == new


def test_only_the_launch_that_has_the_key_gets_it(two):
    assert edited(two, "actor_rollout_ref.rollout.n=2") == TWO.replace(b"rollout.n=4", b"rollout.n=2")


def test_one_launch_can_be_named(two):
    assert edited(two, "data.train_batch_size=4", "--launch", "2") == TWO.replace(b"size=16", b"size=4")


def test_a_key_that_no_launch_has_is_added_to_the_first(two):
    first, second = edited(two, "trainer.save_freq=5").split(b"nnodes=1")
    assert b"trainer.save_freq=5" in second.splitlines()[0] + first
    assert b"save_freq" not in second.splitlines()[-1]


def test_several_settings_are_set_at_once(two):
    new = edited(two, "trainer.nnodes=2", "actor_rollout_ref.rollout.n=8")
    assert new == TWO.replace(b"nnodes=1", b"nnodes=2").replace(b"rollout.n=4", b"rollout.n=8")


HEAD = "from trl import GRPOConfig, GRPOTrainer, TrlParser\n"
OWN = f"{HEAD}import argparse\np = argparse.ArgumentParser()\np.add_argument('--bs')\na = p.parse_args()\n"
TRAIN = "GRPOTrainer('m', args=args).train()\n"
TRAINER = (
    "torchrun finetune.py --output_dir o --bf16 True --per_device_train_batch_size 1 --seed 1 --deepspeed ds.json\n"
)
OMEGA = """import os
from omegaconf import OmegaConf
base = OmegaConf.load(os.path.join(os.path.dirname(__file__), "c", "a.yaml"))
print(OmegaConf.merge(base, OmegaConf.from_cli()))
"""
HYDRA = """import hydra
@hydra.main(config_path=".", config_name="config", version_base=None)
def main(cfg): ...
"""


@pytest.mark.parametrize(
    ("key", "files", "line"),
    [
        (  # beside a YAML LLaMA-Factory takes key=value and stops at an option
            "cutoff_len",
            {"run.sh": "llamafactory-cli train x.yaml\n", "x.yaml": "cutoff_len: 8\nenable_thinking: false\n"},
            "llamafactory-cli train x.yaml cutoff_len=2\n",
        ),
        ("cutoff_len", {"run.sh": 'llamafactory-cli train "$1"\n'}, 'llamafactory-cli train "$1" cutoff_len=2\n'),
        ("micro_batch_size", {"run.sh": "axolotl train $CFG\n"}, "axolotl train $CFG --micro-batch-size 2\n"),
        (  # a file that the launch names has it, and the copy is named
            "zero_optimization.stage",
            {"run.sh": TRAINER, "ds.json": '{"zero_optimization": {"stage": 3}}'},
            "# rl-oom-advisor: ds.json -> ds.fits.json\n" + TRAINER.replace("ds.", "ds.fits."),
        ),
        (
            "train.bs",
            {"run.sh": "torchrun train.py\n", "train.py": OMEGA, "c/a.yaml": "train: {bs: 4}\n"},
            "torchrun train.py train.bs=2\n",
        ),
        (
            "bs",
            {"run.sh": "torchrun train.py c.py\n", "train.py": "bs = 4\nexec(open('configurator.py').read())\n"},
            "torchrun train.py c.py --bs=2\n",
        ),
        (
            "per_device_train_batch_size",
            {"run.sh": "accelerate launch train.py --per-device-train-batch-size 8 --seed 1\n"},
            "accelerate launch train.py --per-device-train-batch-size 2 --seed 1\n",
        ),
    ],
)
def test_it_is_written_as_the_framework_takes_it(key, files, line, tmp_path):
    (tmp_path / "c").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert edited(tmp_path / "run.sh", f"{key}=2").decode() == line


@pytest.mark.parametrize(
    ("key", "files", "reason"),
    [
        (
            "actor_rollout_ref.rollout.n",
            {"run.sh": "python3 -m verl.trainer.fsdp_sft_trainer data.a=1\n"},
            "stop at it",
        ),
        ("nonsense.key", {"run.sh": TRAINER}, "Nothing tells that finetune.py takes nonsense.key"),
        ("num_processes", {"run.sh": f"accelerate launch {TRAINER[9:]}"}, "takes num_processes"),
        ("mb", {"run.yaml": "method: grid\nparameters:\n  mb: {values: [2, 4]}\n"}, "parameters.mb.values?"),
        (
            "num_generations",
            {"run.sh": "python3 train.py\n", "train.py": f"{HEAD}args = GRPOConfig()\n{TRAIN}"},
            "runs",
        ),
        (
            "num_generations",
            {"run.sh": "python3 train.py --bs 1\n", "train.py": f"{OWN}args = GRPOConfig(seed=a.bs)\n{TRAIN}"},
            "the one to change",
        ),
    ],
)
def test_a_key_that_the_run_does_not_take_is_refused(key, files, reason, tmp_path, capsys):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cli.main(["set", str(tmp_path / next(iter(files))), f"{key}=2"]) == Exit.UNUSABLE
    assert reason in capsys.readouterr().err


def test_what_else_comes_with_the_change_is_said(tmp_path, capsys):
    command = "python3 -m verl.trainer.main_ppo data.train_batch_size=8"
    (tmp_path / "run.sh").write_text(
        f"{command} \\\n  # data.a=1 \\\n  actor_rollout_ref.model.path=m trainer.nnodes=1\n"
    )
    edited(tmp_path / "run.sh", "trainer.nnodes=2")
    assert "what stands below comes into force" in capsys.readouterr().err
    (tmp_path / "loop.sh").write_text(f"for i in 1 2; do\n{command} trainer.seed=$i\ndone\n")
    edited(tmp_path / "loop.sh", "data.train_batch_size=2", "--launch", "1")
    assert "line 2 starts 2 launches that get it" in capsys.readouterr().err
    for name, text in {
        "train.py": HYDRA,
        "config.yaml": "defaults: [trainer: a, _self_]\neval: ${trainer.bs}\n",
        "trainer/b.yaml": "bs: 8\n",
        "own.sh": "python train.py trainer=b\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    edited(tmp_path / "own.sh", "trainer.bs=2")
    assert "what follows from it: eval=2" in capsys.readouterr().err


def test_a_variable_of_the_environment_is_set_where_it_stands(flags):
    flags.write_bytes(b"export NCCL_DEBUG=WARN\n" + FLAGS)
    assert edited(flags, "NCCL_DEBUG=INFO") == b"export NCCL_DEBUG=INFO\n" + FLAGS


@pytest.mark.parametrize("key", ["micro_train_batch_size", "--micro_train_batch_size"])
def test_a_flag_goes_by_its_name_with_or_without_dashes(flags, key):
    assert edited(flags, f"{key}=1") == FLAGS.replace(b"size 2", b"size 1")


def test_options_may_stand_between_settings(flags):
    done = advisor("set", flags, "--micro_train_batch_size=1", "-o", "-", "--packing_samples=false")
    assert done.stdout == FLAGS.replace(b"size 2", b"size 1").replace(b" --packing_samples", b"")


def test_the_value_that_is_there_already_changes_nothing(two):
    assert edited(two, "trainer.nnodes=1") == TWO


def test_mode_bits_are_kept(two):
    two.chmod(0o750)
    assert edited(two, "trainer.nnodes=2")
    assert two.with_name("run.fits.sh").stat().st_mode & 0o777 == 0o750


def test_a_launch_that_is_not_there_is_refused(two, capsys):
    assert cli.main(["set", str(two), "trainer.nnodes=2", "--launch", "3"]) == Exit.UNUSABLE
    told = capsys.readouterr()
    assert told.out == ""
    assert "has 2" in told.err
    assert not two.with_name("run.fits.sh").exists()


def test_a_script_without_a_training_command_is_refused(tmp_path, capsys):
    (tmp_path / "notes.sh").write_bytes(b"echo hello\n")
    assert cli.main(["set", str(tmp_path / "notes.sh"), "a.b=1"]) == Exit.UNUSABLE
    assert "no training command" in capsys.readouterr().err


def test_a_log_may_come_through_a_pipe_or_compressed(tmp_path):
    log = demo_files().log.read_bytes()
    (tmp_path / "train.log.gz").write_bytes(gzip.compress(log))
    piped, packed = (
        advisor("scan", "-", "--format", "json", stdin=log),
        advisor("scan", tmp_path / "train.log.gz", "--format", "json"),
    )
    told = [json.loads(done.stdout)["crash"] for done in (piped, packed)]
    assert [crash["signature"] for crash in told] == ["ray-memory-kill"] * 2
    assert told[0]["evidence"][0]["line"] == told[1]["evidence"][0]["line"]


def test_the_same_question_gets_the_same_bytes(capfdbinary):
    """Here and in a process of its own, where sets of texts have another order."""
    demo = demo_files()
    arguments = ("diagnose", demo.script, "--log", demo.log, "--machine", demo.machine, "--format", "json")
    cli.main([*map(str, arguments)])
    assert capfdbinary.readouterr().out == advisor(*arguments).stdout != b""


def test_an_element_of_a_list_goes_by_either_spelling(tmp_path, capsys):
    file = tmp_path / "a.yaml"
    file.write_text("actors:\n  - mb: 4\n    x: 1\n")
    for key in ("actors[0].mb", "actors.0.mb"):
        assert cli.main(["set", str(file), f"{key}=2", "-o", "-"]) == 0
        assert "- mb: 2\n" in capsys.readouterr().out
    assert cli.main(["set", str(file), "actors[7].mb=2", "-o", "-"]) == 2


_RANKED = "torchrun --nnodes 2 --node_rank {} train_dpo.py --batch_size 8 --beta 0.1{}\n"


@pytest.mark.parametrize(
    ("text", "told", "changed"),
    [
        (_RANKED.format(0, " &") + f'ssh h2 "{_RANKED.format(1, "").strip()}"\n', "line 2 is the same training", 2),
        (_RANKED.format(0, " --log a &") + _RANKED.format(1, " --log b"), "line 2 may be the same training", 1),
        ("python train_dpo.py a.yaml --batch_size 8 b.yaml\n", "is added where it wins", 1),
        ("export P='{\"batch_size\": 4}'\npython train_dpo.py --batch_size 8\n", "$P holds --batch_size, too", 0),
        ("conda run -n trl --live-stream python train_dpo.py --batch_size 8\n", "written", 1),
        ("bash -c 'cd . && bash inner.sh lr=1'\n", "written", 1),
    ],
)
def test_what_else_holds_the_setting(tmp_path, capsys, text, told, changed):
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("batch_size: 4\nlr: 1.0e-5\n")
    (tmp_path / "inner.sh").write_text('python train_dpo.py batch_size=8 "$@"\n')
    file = tmp_path / "run.sh"
    file.write_text(text)
    assert cli.main(["set", str(file), "batch_size=2", "--launch", "1"]) == (0 if changed else 2)
    assert told in capsys.readouterr().err
    written = tmp_path / "run.fits.sh"
    assert (written.read_text().count("2") - text.count("2") if written.exists() else 0) == changed


@pytest.mark.parametrize(
    ("version", "line"),
    [("0.5.0", b"++actor_rollout_ref.actor.fsdp_config.model_dtype=bf16"),
     ("0.7.0", b" actor_rollout_ref.actor.fsdp_config.model_dtype=bf16")],
)  # fmt: skip
def test_hydra_is_told_to_add_what_its_config_has_not(two, version, line):
    (two.parent / "verl" / "version").mkdir(parents=True)
    (two.parent / "verl" / "version" / "version").write_text(version)
    assert line in edited(two, "actor_rollout_ref.actor.fsdp_config.model_dtype=bf16", "--launch", "1")


@pytest.mark.parametrize("value", ["abc", "1.7", "-0.5"])
def test_what_a_share_cannot_be_is_refused(two, value, capsys):
    assert cli.main(["set", str(two), f"actor_rollout_ref.rollout.gpu_memory_utilization={value}"]) == Exit.UNUSABLE
    assert "gpu_memory_utilization" in capsys.readouterr().err
    assert cli.main(["set", str(two), "rollout.gpu_mem=0.2"]) == Exit.UNUSABLE


def test_an_edit_in_place_is_no_addition_whatever_an_earlier_one_moved(tmp_path, capsys):
    file = tmp_path / "run.sh"
    file.write_text("python train_dpo.py --lr 1 \\\n  --grad_acc 2 --batch_size 4\n")
    assert cli.main(["set", str(file), "grad_acc=16", "batch_size=2"]) == 0
    assert "is added where it wins" not in capsys.readouterr().err
