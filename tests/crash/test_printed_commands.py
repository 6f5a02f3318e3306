"""The command that a log prints is read as the launch of a run whose script was not given."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from advisor.crash.command_lines import commands_in
from advisor.crash.lines import peel
from advisor.session import SessionRequest, open_session
from advisor.state import State
from tests.loops import each

WORDS = (
    "--stage rm --do_train True --model_name_or_path m/Llama-2-13b-hf --dataset d --template llama2 --finetuning_type "
    "lora --output_dir out --per_device_train_batch_size 3 --bf16 True"
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. GPU 0 has a total capacity of 23.65 GiB "
    "of which 93.81 MiB is free.\n"
)


def listed(*words: str) -> str:
    return repr([*words, *WORDS.split()])


HOSTS = urlsafe_b64encode(b'{"localhost": [0, 1, 2, 3, 4]}').decode()
LLAMA = "src/llamafactory/launcher.py"
PRINTED = {
    "deepspeed's launcher": "[2024-01-01 10:00:00,000] [ERROR] [launch.py:321:sigkill_handler] "
    + listed("/env/bin/python", "-u", "src/train_bash.py", "--local_rank=4")
    + " exits with return code = -9",
    "subprocess": "subprocess.CalledProcessError: Command '"
    + listed("torchrun", "--nnodes", "1", "--nproc_per_node", "5", LLAMA)
    + "' returned non-zero exit status 1.",
    "killed": "subprocess.CalledProcessError: Command '"
    + listed("/env/bin/torchrun", "--nproc-per-node=5", LLAMA)
    + "' died with <Signals.SIGKILL: 9>.",
    "deepspeed's runner": "[2024-01-01 10:00:00,000] [INFO] [runner.py:555:main] cmd = /env/bin/python3.10 -u -m "
    f"deepspeed.launcher.launch --world_info={HOSTS} --master_port=29500 "
    f"src/train_bash.py {WORDS}",
    "set -x": f"+ torchrun --nproc_per_node 5 src/train_bash.py {WORDS}",
    "a prompt": f"(env) root@gpu7:/work/x# torchrun --nproc_per_node 5 src/train_bash.py {WORDS}",
    "a prompt over lines": "$ torchrun --nproc_per_node 5 \\\n>   src/train_bash.py \\\n> " + WORDS,
    "Ray": f"Running entrypoint for job raysubmit_7: torchrun --nproc_per_node 5 src/train_bash.py {WORDS}",
}


def read(folder: Path, log: str, *, gpus: str | None = "8x24GB", planned: bool = False) -> State:
    (folder / "train.log").write_text(log)
    answers = {"memory": "gpu", "phase": "model_load"}
    return open_session(SessionRequest(logs=(folder / "train.log",), gpus=gpus, answers=answers, planned=planned))


@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
@pytest.mark.parametrize("before", [True, False])
def test_a_printed_command_tells_framework_method_model_batch_and_cards(
    tmp_path: Path, printed: str, before: bool
) -> None:
    run = read(tmp_path, f"{printed}\n{OOM}" if before else f"{OOM}{printed}\n").run
    assert (run.framework, run.algorithm) == ("llamafactory", "rm")
    assert run.model is not None
    assert run.model.name == "Llama-2-13B"
    assert run.knobs["actor.micro_batch"].value == 3
    assert run.trains_adapters
    counted = 8 if "local_rank" in printed else 5  # the command of one rank does not say how many there are
    assert (run.topology.actor_gpus, run.topology.known) == (counted, True)
    assert f"read from line {1 if before else 2} of the log" in " ".join(run.notes)
    assert run.seen_whole


def test_what_the_command_does_not_name_is_not_in_force(tmp_path: Path) -> None:
    printed = PRINTED["deepspeed's launcher"]
    state = read(tmp_path, OOM + printed + "\n", planned=True)
    assert state.run.unread is None
    first = state.plan.steps[0]
    assert first.id == "higher-zero-stage"
    assert first.selected
    stated = read(tmp_path, OOM + printed.replace("'--bf16', 'True'", "'--deepspeed', 'ds_z3_config.json'"))
    assert [one.value for name, one in stated.run.knobs.items() if name == "actor.zero_stage"] == [3]


def test_a_command_that_is_cut_is_a_part_of_the_launch(tmp_path: Path) -> None:
    printed = PRINTED["deepspeed's launcher"].partition("'--output_dir'")[0]
    run = read(tmp_path, OOM + printed + "\n").run
    assert run.quoted
    assert run.algorithm == "rm"


def test_a_program_of_any_name_that_a_launcher_names_is_the_training(tmp_path: Path) -> None:
    words = "--model_name_or_path EleutherAI/gpt-j-6B --train_file a.csv --do_train --do_eval --overwrite_cache "
    words += "--use_fast_tokenizer False --output_dir o --num_train_epochs 1 --per_device_train_batch_size 4"
    command = ["python", "-u", "run_clm.py", "--local_rank=0", *words.split()]
    line = f"[launch.py:324:sigkill_handler] {command} exits with return code = -9"
    run = read(tmp_path, f"Rank: 0 partition count [1] and sizes[(6049711186, False)]\n{OOM}{line}\n", gpus=None).run
    assert (run.framework, run.algorithm, run.topology.actor_gpus) == ("transformers", "sft", 1)
    assert run.model is not None


def test_the_script_that_was_given_is_the_launch(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(PRINTED["set -x"] + "\n" + OOM)
    (tmp_path / "run.sh").write_text("python -m verl.trainer.main_ppo data.train_batch_size=8\n")
    asked = SessionRequest(tmp_path / "run.sh", (tmp_path / "train.log",), planned=False)
    assert open_session(asked).run.framework == "verl"


def test_the_run_that_died_is_the_one_whose_command_counts(tmp_path: Path) -> None:
    first = PRINTED["set -x"].replace("_size 3", "_size 9")
    log = first + "\nstep\n" * 40 + PRINTED["set -x"] + "\n" + OOM
    assert read(tmp_path, log).run.knobs["actor.micro_batch"].value == 3


@each(
    "line",
    [
        "['a', 'b']",
        "files: ['train.py', 'data.json']",
        "$ python convert.py --model m",
        "+ python merge_lora.py --model m",
        "$ nvidia-smi",
        "running python train.py might help",
        "ValueError: ['python', '-c', 'import train']",
        "swift: ['unterminated",
        "[" + "'python', " * 30,
        "python " + "['a', \"['\", " * 900,
    ],
)
def test_what_starts_no_training_is_no_launch(line: str) -> None:
    assert not list(commands_in([peel(line, 1)]))


@pytest.mark.parametrize("secret", ["--config /etc/passwd", "$(touch made)", "; touch made", "`touch made`"])
def test_nothing_that_a_log_names_is_opened_or_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("per_device_train_batch_size: 77\n")
    log = f"+ torchrun --nproc_per_node 5 src/train_bash.py c.yaml {WORDS} {secret}\n{OOM}"
    state = read(tmp_path, log)
    assert state.run.knobs["actor.micro_batch"].value != 77
    assert not (tmp_path / "made").exists()


def test_a_script_that_starts_nothing_leaves_the_command_to_the_log(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(PRINTED["set -x"] + "\n" + OOM)
    (tmp_path / "run.sh").write_text("bash elsewhere/train_qwen_dpo.sh\n")
    asked = SessionRequest(tmp_path / "run.sh", (tmp_path / "train.log",), planned=False)
    run = open_session(asked).run
    assert (run.framework, run.algorithm, run.no_launch) == ("llamafactory", "rm", "")
