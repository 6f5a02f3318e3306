"""Shell scripts of every form: what the training command would really get."""

from __future__ import annotations

import pytest

from tests.script.conftest import Read, values


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("N=8\npython3 -m verl.trainer.main_ppo a.b=$N", "8"),
        ("N=8\nN=4\npython3 -m verl.trainer.main_ppo a.b=$N", "4"),
        ("python3 -m verl.trainer.main_ppo a.b=${N:-16}", "16"),
        ("M=3\npython3 -m verl.trainer.main_ppo a.b=${N:-$M}", "3"),
        (": ${N:=5}\npython3 -m verl.trainer.main_ppo a.b=$N", "5"),
        ("M=Qwen/QWEN-7B\npython3 -m verl.trainer.main_ppo a.b=${M,,}", "qwen/qwen-7b"),
        ("M=Qwen/QWEN-7B\npython3 -m verl.trainer.main_ppo a.b=${M##*/}", "QWEN-7B"),
        ("M=a.yaml\npython3 -m verl.trainer.main_ppo a.b=${M%.yaml}", "a"),
        ("M=a-b-c\npython3 -m verl.trainer.main_ppo a.b=${M//-/_}", "a_b_c"),
        ("M=a-b-c\npython3 -m verl.trainer.main_ppo a.b=${M/-/\\/}", "a/b-c"),
        ("P=1024\nR=2048\npython3 -m verl.trainer.main_ppo a.b=$(((P + R) * 3))", "9216"),
        ("P=10\nR=$(expr $P \\* 2)\npython3 -m verl.trainer.main_ppo a.b=$R", "20"),
        ("A=(x.y=1 'a.b=2')\nA+=(c.d=3)\npython3 -m verl.trainer.main_ppo \"${A[@]}\"", "2"),
        ("E='a.b=7 c.d=1'\npython3 -m verl.trainer.main_ppo $E", "7"),
        ("E='a.b=7'\nE+=' c.d=1'\npython3 -m verl.trainer.main_ppo $E", "7"),
        ("python3 -m verl.trainer.main_ppo \\\n  x.y=1 \\\n  a.b='[1,2]'", "[1,2]"),
        ("M=/m\npython3 -m verl.trainer.main_ppo x.y=$M\\\n    a.b=3", "3"),
        ("CMD='python3 -m verl.trainer.main_ppo a.b=4'\neval \"$CMD\"", "4"),
        ('srun -N1 bash -c "python3 -m verl.trainer.main_ppo a.b=4 2>&1"', "4"),
        ("f() { local n=$1; python3 -m verl.trainer.main_ppo a.b=$n; }\nf 9", "9"),
        ("if [ 2 -gt 1 ]; then N=1; else N=2; fi\npython3 -m verl.trainer.main_ppo a.b=$N", "1"),
        ("X=b\ncase $X in a) N=1;; b|c) N=2;; *) N=3;; esac\npython3 -m verl.trainer.main_ppo a.b=$N", "2"),
        ("N=3\nwhile [[ $# -gt 0 ]]; do N=$2; shift 2; done\npython3 -m verl.trainer.main_ppo a.b=$N", "3"),
        ("python3 -m verl.trainer.main_ppo a.b=1 a.b=2 $@ 2>&1 | tee x.log", "2"),
        ("nohup env X=1 time python3 -u -m verl.trainer.main_ppo a.b=5 > log 2>&1 &", "5"),
        ("n=$(cat <<EOF\n6\nEOF\n)\npython3 -m verl.trainer.main_ppo a.b=$n", "6"),
        ("cat > inner.sh <<'EOF'\npython3 -m verl.trainer.main_ppo a.b=$1\nEOF\nbash inner.sh 8", "8"),
        ("# 学习率 说明\nN=8  # 批量\npython3 -m verl.trainer.main_ppo a.b=$N", "8"),
        ("N=8\r\npython3 -m verl.trainer.main_ppo \\\r\n  a.b=$N\r\n", "8"),
    ],
)
def test_a_value_is_what_bash_would_pass(read: Read, script: str, expected: str) -> None:
    (launch,) = read(script).launches
    assert values(launch)["a.b"] == expected


@pytest.mark.parametrize(
    "value",
    [
        "$HOSTNAME",
        "$(date +%s)",
        "$1",
        "$NOT_SET_HERE",
        "$HOME/data",
        "~/data",
        "$(nvidia-smi -L | wc -l)",
        "$((NOT_SET + 1))",
    ],
)
def test_what_depends_on_the_outside_is_unresolved_and_says_why(read: Read, value: str) -> None:
    (launch,) = read(f"V={value}\npython3 -m verl.trainer.main_ppo a.b=$V c.d=1").launches
    setting = launch.effective()["a.b"]
    assert not setting.resolved
    assert setting.value is None
    assert setting.reason
    assert values(launch)["c.d"] == "1"


def test_an_undecidable_condition_leaves_what_it_touches_unresolved(read: Read) -> None:
    (launch,) = read("N=1\nM=2\nif [ -f /x ]; then N=4; fi\npython3 -m train_ppo --n $N --m $M").launches
    assert launch.effective()["--n"].reason == "it depends on the condition in line 3"
    assert values(launch)["--m"] == "2"


def test_given_positional_arguments_are_used(read: Read) -> None:
    (launch,) = read("N=$1\nshift\npython3 train_ppo.py --n $N --rest $@", positional=("8", "x", "y")).launches
    assert values(launch) == {"--n": "8", "--rest": ("x", "y")}


def test_options_flags_and_lists_keep_their_dashes(read: Read) -> None:
    (launch,) = read(
        "deepspeed --num_gpus 8 --module openrlhf.cli.train_ppo "
        "--zero_stage 3 --bf16 --adam_betas 0.9 0.95 --lr=-1e-6 --range -10 10"
    ).launches
    assert launch.program == "openrlhf.cli.train_ppo"
    assert launch.launcher == {"--num_gpus": "8"}
    assert values(launch) == {
        "--zero_stage": "3",
        "--bf16": (),
        "--adam_betas": ("0.9", "0.95"),
        "--lr": "-1e-6",
        "--range": ("-10", "10"),
    }


def test_a_heredoc_holds_the_command(read: Read) -> None:
    script = """read -r -d '' training_commands <<EOF
openrlhf.cli.train_ppo \\
   --zero_stage 2 \\
   --bf16
EOF
if [[ ${1} != "slurm" ]]; then
    deepspeed --module $training_commands
fi
"""
    parsed = read(script)
    setting = parsed.launches[0].effective()["--zero_stage"]
    assert (setting.value, setting.span.line) == ("2", 3)


def test_ray_job_submit_runs_what_follows_the_bare_dashes(read: Read) -> None:
    (launch,) = read(
        'ray job submit --address=http://x:1 --runtime-env-json=\'{"env_vars": {"A": "1"}}\' -- '
        "/opt/env/bin/python3 -m openrlhf.cli.train_ppo_ray --zero_stage 3"
    ).launches
    assert launch.program == "openrlhf.cli.train_ppo_ray"
    assert launch.interpreter == "/opt/env/bin/python3"
    assert launch.environment == {"A": "1"}


def test_prefixes_and_exports_are_the_environment(read: Read) -> None:
    (launch,) = read("export A=1\nB=2\nC=3 \\\nD=4 \\\nswift rlhf --rlhf_type grpo\n").launches
    assert launch.program == "swift rlhf"
    assert launch.environment == {"A": "1", "C": "3", "D": "4"}
    assert {setting.key: setting.span.line for setting in launch.exports if setting.span} == {"A": 1, "C": 3, "D": 4}


def test_a_loop_launches_several_times(read: Read) -> None:
    launches = read("for lr in 1e-6 5e-7; do\n  python3 train_grpo.py --lr $lr\ndone\n").launches
    assert [values(launch)["--lr"] for launch in launches] == ["1e-6", "5e-7"]


def test_a_comment_in_a_chain_is_reported_with_what_it_loses(read: Read) -> None:
    (launch,) = read("python3 -m verl.trainer.main_ppo \\\n  a.b=1 \\\n  # a note\n  c.d=2 \\\n  e.f=3\n").launches
    assert values(launch) == {"a.b": "1"}
    (note,) = launch.cuts
    assert "line 3: a comment ends the command; c.d, e.f below it are not given" in note
    assert launch.notes == launch.cuts


def test_a_literal_that_several_settings_share_names_the_others(read: Read) -> None:
    (launch,) = read("O=True\npython3 -m verl.trainer.main_ppo a.b=$O c.d=$O e.f=False\n").launches
    assert launch.effective()["a.b"].shared_with == ("c.d",)
    assert launch.effective()["e.f"].shared_with == ()


def test_sourced_files_are_followed(read: Read, tmp_path) -> None:
    (tmp_path / "env.sh").write_text("N=12\nexport M=3\n")
    script = read('source "$(dirname "$0")/env.sh"\npython3 train_ppo.py --n $N\n')
    assert values(script.launches[0]) == {"--n": "12"}
    assert script.launches[0].environment == {"M": "3"}
    assert [document.path.name for document in script.documents] == ["run.sh", "env.sh"]


def test_config_files_come_before_the_command_line(read: Read, tmp_path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/config.yaml").write_text("worker:\n  rollout:\n    n: 5  # samples\n    tp: 2\n")
    (launch,) = read("python3 -m verl.trainer.main config=examples/config.yaml worker.rollout.n=8\n").launches
    assert [(s.key, s.value, s.origin, s.effective) for s in launch.settings] == [
        ("worker.rollout.n", "5", "file", False),
        ("worker.rollout.tp", "2", "file", True),
        ("config", "examples/config.yaml", "command", True),
        ("worker.rollout.n", "8", "command", True),
    ]


def test_a_config_file_that_is_not_there_is_noted(read: Read) -> None:
    (launch,) = read("python3 -m verl.trainer.main config=nowhere/config.yaml\n").launches
    assert launch.notes == ("config names nowhere/config.yaml, which was not found.",)


def test_deepspeed_and_accelerate_files_have_prefixes_of_their_own(read: Read, tmp_path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}}')
    (tmp_path / "acc.yaml").write_text("num_processes: 8\n")
    (launch,) = read("accelerate launch --config_file acc.yaml train_grpo.py --deepspeed ds.json --lr 1\n").launches
    assert values(launch)["deepspeed:zero_optimization.stage"] == "3"
    assert values(launch)["accelerate:num_processes"] == "8"


@pytest.mark.parametrize(
    "command",
    ["python convert_checkpoint.py --a 1", "python -c 'import x'", "vllm serve m", "echo python train.py --a 1"],
)
def test_other_work_is_no_launch(read: Read, command: str) -> None:
    assert read(command).launches == ()


def test_a_variable_that_refers_to_itself_ends(read: Read) -> None:
    doubling = "A=x\n" + 'A="$A$A"\n' * 60
    script = read(doubling + "f() { f; f; }\nf\nB=${B:-$B}\npython3 train_ppo.py --a 1 --b $A\n")
    assert values(script.launches[0])["--a"] == "1"
    assert not script.launches[0].effective()["--b"].resolved


def test_a_key_that_hydra_takes_away_is_no_value_of_it(read: Read) -> None:
    (launch,) = read("python3 -m verl.trainer.main_ppo a.b=1 ~c.d '~e.f=2'\n").launches
    assert list(values(launch)) == ["a.b", "~c.d", "~e.f"]


def test_a_shebang_of_a_shell_counts_before_the_files_name(read: Read) -> None:
    (launch,) = read("#!/bin/bash\nN=5\npython train.py --per_device_train_batch_size $N\n", "run.py").launches
    assert values(launch)["--per_device_train_batch_size"] == "5"
