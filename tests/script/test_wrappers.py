"""Commands around the training command: what runs behind them, and with which environment."""

from __future__ import annotations

import pytest

from advisor.script.document import EditRequest
from tests.script.conftest import Edited, Read, values

TRAIN = "python train.py --n 1"


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("uv run --isolated --extra fsdp --with torch==2.1 -m pkg.main_dapo --n 1", "pkg.main_dapo"),
        ("uv run --python 3.11 -- python -m pkg.train --n 1", "pkg.train"),
        ("uv run mason.py --gpus 8 --env A=1 -- torchrun --nnodes=2 open/dpo.py --n 1", "open/dpo.py"),
        ("uv run coverage run -a --source=src examples/run_grpo.py --n 1", "examples/run_grpo.py"),
        (f"OUT=$({TRAIN} 2>&1)", "train.py"),
        (f'ssh node1 "cd /w && {TRAIN}"', "train.py"),
        (f'sbatch --nodes=1 --wrap="{TRAIN}"', "train.py"),
        (f"sbatch --wrap '{TRAIN}'", "train.py"),
        (f"sbatch <<EOF\n#!/bin/bash\n{TRAIN}\nEOF", "train.py"),
        (f"bash -s x <<'EOF'\n{TRAIN}\nEOF", "train.py"),
        (f"cat <<EOF | bash\n{TRAIN}\nEOF", "train.py"),
        (f"echo '{TRAIN}' | sh", "train.py"),
        (f"trap '{TRAIN}' EXIT", "train.py"),
        (f'docker run --rm -v a:b img bash -c "cd /w && {TRAIN}"', "train.py"),
        (f"timeout --signal=KILL 10h nohup nice -n 5 {TRAIN} > log 2>&1 &", "train.py"),
        (f"conda run -n x {TRAIN}", "train.py"),
        ("$PYTHON -u train.py --n 1", "train.py"),
        ('"$(which python)" -m pkg.train --n 1', "pkg.train"),
        ("python -m cProfile -o x train.py --n 1", "train.py"),
        ("ray job submit -- OMP=1 python3 -m pkg.train --n 1", "pkg.train"),
        ("python -m trl.cli.main grpo --n 1", "trl grpo"),
        ("torchrun --nproc_per_node 4 $(which swift) sft --n 1", "swift sft"),
        ("python -m agent.verl a.b.c=1 a.b.d=2 --n 1", "agent.verl"),
        ("python -m openrlhf.models.judge --n 2 &\npython -m openrlhf.cli.train_dpo --n 1", "openrlhf.cli.train_dpo"),
        (f"python /w/grpo/scripts/patch.py --n 2\n{TRAIN}", "train.py"),
        (
            f"J=$(cat <<EOF\n: $HOSTNAME\n{TRAIN}\nEOF\n)\necho \"$J\" | tr -d '\\r' | kubectl exec p -- bash",
            "train.py",
        ),
        (f"exec {TRAIN}\n{TRAIN.replace('1', '2')}", "train.py"),
    ],
)
def test_the_training_command_is_found_behind_what_runs_it(read: Read, line: str, program: str) -> None:
    (launch,) = read(line + "\n").launches
    assert launch.program == program
    assert values(launch)["--n"] == "1"


@pytest.mark.parametrize(
    ("line", "environment"),
    [
        (f"env -u A C=3 {TRAIN}", {"B": "2", "C": "3"}),
        (f"env -i C=3 {TRAIN}", {"C": "3"}),
        (f"srun --export=ALL,C=3,D=4 {TRAIN}", {"A": "1", "B": "2", "C": "3", "D": "4"}),
        (f"srun --export C=3 {TRAIN}", {"C": "3"}),
        (f"docker run -e C=3 --env D=4 img {TRAIN}", {"C": "3", "D": "4"}),
        (f"ssh host 'C=3 {TRAIN}'", {"C": "3"}),
        (f"mpirun -x C=3 -x D {TRAIN}", {"A": "1", "B": "2", "C": "3"}),
        (f"sudo -E C=3 {TRAIN}", {"A": "1", "B": "2", "C": "3"}),
        (f"unset A; export -n B; {TRAIN}", {}),
        (f"set -a; C=3; set +a; D=4; {TRAIN}", {"A": "1", "B": "2", "C": "3"}),
        (f"export C; C=3; (export D=4); {TRAIN}", {"A": "1", "B": "2", "C": "3"}),
    ],
)
def test_the_environment_is_what_the_wrappers_leave_of_it(read: Read, line: str, environment: dict[str, str]) -> None:
    (launch,) = read(f"export A=1 B=2\n{line}\n").launches
    assert dict(launch.environment) == environment


@pytest.mark.parametrize("line", ["echo a | xargs python train.py --n", "ls | xargs -I{} python train.py --n {}"])
def test_what_xargs_fills_in_is_not_known(read: Read, line: str) -> None:
    (launch,) = read(line + "\n").launches
    assert not launch.effective()["--n"].resolved


def test_a_variable_of_srun_is_edited_where_it_stands(edited: Edited) -> None:
    text = f"srun --export=ALL,C=3,D=4 {TRAIN}\n"
    assert edited(text, EditRequest("C", "9", kind="environment")) == text.replace("C=3", "C=9")


def test_under_slurm_its_variables_are_not_taken_for_unset(read: Read) -> None:
    line = "python train.py --n ${SLURM_NNODES:-2}\n"
    assert values(read(line).launches[0])["--n"] == "2"
    setting = read("#!/bin/bash\n#SBATCH -c 4\n" + line).launches[0].effective()["--n"]
    assert (setting.resolved, setting.reason) == (False, "$SLURM_NNODES is set by Slurm")
    asked = "#SBATCH --nodes=4\n#SBATCH --gres=gpu:a100:8\n"
    assert values(read(asked + line).launches[0])["--n"] == "4"
    assert values(read(asked + line.replace("NNODES", "GPUS_ON_NODE")).launches[0])["--n"] == "8"


@pytest.mark.parametrize(
    ("name", "script", "expected"),
    [
        ("exp.sh", "python train.py --n $(basename $0 .sh)", "exp"),
        ("exp.sh", "python train.py --n ${0##*/}", "exp.sh"),
        ("exp.sh", "#SBATCH -N1\npython train.py --n ${0##*/}", None),
        ("exp.sh", "python train.py --n $(basename $(dirname $0))", None),
        ("jobs/small/exp.sh", "python jobs/train.py --n $(basename $(dirname $0))", "small"),
        ("exp.sh", 'python train.py --n $(basename "$HOME/models/Qwen-7B")', "Qwen-7B"),
    ],
)
def test_the_scripts_own_name_is_known_and_its_folder_is_not(
    read: Read, name: str, script: str, expected: str | None
) -> None:
    (launch,) = read(script + "\n", name).launches
    assert values(launch)["--n"] == expected
