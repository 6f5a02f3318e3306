"""Python files that start a training by a command of their own, and what stands around a launch elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.bash.wrapped import cards_of_node
from advisor.script.document import EditRequest
from advisor.script.launcher import find_launcher
from advisor.script.reader import read_script
from tests.script.conftest import Edited, Read, values

LIST = """import subprocess, sys
MODEL = "org/m-7b"
cmd = [
    sys.executable, "-m", "pkg.train", "--model", MODEL,
    "--batch", "8", f"--steps={2}",
]
cmd += ["--tokens", str(1024)]
subprocess.run(cmd, check=True)
"""


def test_words_of_a_list_are_settings_and_are_changed_where_they_stand(read: Read, edited: Edited) -> None:
    (launch,) = read(LIST, "run.py").launches
    expected = {"--model": "org/m-7b", "--batch": "8", "--steps": "2", "--tokens": "1024"}
    assert (launch.program, values(launch)) == ("pkg.train", expected)
    changed = edited(LIST, EditRequest("--model", "org/m-1b"), EditRequest("--steps", "4"), name="run.py")
    assert changed == LIST.replace("m-7b", "m-1b").replace("{2}", "{4}")


def test_shell_text_of_a_function_that_a_service_calls(read: Read, edited: Edited) -> None:
    text = (
        '@app.function(gpu="H100:8")\ndef train(n: int = 4):\n    import subprocess, textwrap\n'
        '    cmd = textwrap.dedent(f"""\n    cd /w\n'
        '    python -m pkg.train a.b={n} \\\\\n      a.c=0.6\n    """).strip()\n'
        '    subprocess.run(["bash", "-lc", cmd])\n\n@app.local_entrypoint()\ndef main():\n    train.remote()\n'
    )
    (launch,) = read(text, "app.py").launches
    assert values(launch) == {"a.b": "4", "a.c": "0.6"}
    assert edited(text, EditRequest("a.c", "0.5"), name="app.py") == text.replace("0.6", "0.5")
    assert cards_of_node(text) == "8xH100"


def test_what_a_condition_decides_that_nobody_knows_is_not_known(read: Read) -> None:
    text = (
        "import os, torch\nbig = torch.cuda.device_count() > 4\nn = 8 if big else 2\n"
        "cmd = f'torchrun train.py --n {n}'\n"
        "if big:\n    cmd += ' --more 1'\nos.system(cmd + ' --end 1')\n"
    )
    (launch,) = read(text, "run.py").launches
    assert [one.key for one in launch.settings if one.resolved] == []


def test_a_launcher_gets_its_options_from_the_script_that_calls_it(tmp_path: Path) -> None:
    """`return`ed lists, defaults, switches, a function of another file, and the environment."""
    (tmp_path / "tools.py").write_text(
        "import subprocess\n\ndef run(cmd, env=None):\n    subprocess.check_call(cmd, env=env)\n"
    )
    (tmp_path / "go.py").write_text(
        "import argparse, os\nfrom tools import run\n\ndef build(args):\n    if args.big:\n"
        "        return ['torchrun', 'train.py', f'--batch={args.batch}', '--rate', args.rate, *args.more]\n"
        "    return ['torchrun', 'other_train.py']\n\ndef main():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--batch', type=int, default=4)\n    p.add_argument('--rate', default='1e-5')\n"
        "    p.add_argument('--big', action='store_true')\n    p.add_argument('--more', nargs='*', default=[])\n"
        "    args = p.parse_args()\n    env = os.environ.copy()\n    env['A_SIZE'] = str(args.batch)\n"
        "    run(build(args), env=env)\n\nif __name__ == '__main__':\n    main()\n"
    )
    (tmp_path / "run.sh").write_text("B=16\npython go.py --batch $B --big --more --x 1\n")
    (launch,) = read_script(tmp_path / "run.sh").launches
    assert (launch.program, launch.environment["A_SIZE"]) == ("train.py", "16")
    assert values(launch) == {"--batch": "16", "--rate": "1e-5"}


def test_a_job_that_is_written_and_submitted(tmp_path: Path, read: Read) -> None:
    text = (
        "import subprocess\nJOB = '''#!/bin/bash\n#SBATCH --nodes=2\n"
        "torchrun --nnodes $SLURM_NNODES train.py --a 1\n'''\n"
        "with open('job.sh', 'w') as f:\n    f.write(JOB)\nsubprocess.run(['sbatch', 'job.sh'])\n"
    )
    (launch,) = read(text, "submit.py").launches
    assert (launch.launcher["--nnodes"], values(launch)) == ("2", {"--a": "1"})


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("rlaunch --gpu=8 --cpu 32 -- torchrun train.py --x 1", "train.py"),
        ("site submit --pool a python -m pkg.train", "pkg.train"),
        ("python boot.py tools/run_grpo.py --config a", "tools/run_grpo.py"),
        ("pip install deepspeed train.py", None),
        ("echo python train.py", None),
        ("pgrep -f python train.py", None),
    ],
)
def test_a_command_behind_a_wrapper_of_the_site(line: str, program: str | None) -> None:
    found = find_launcher(line.split())
    assert (found.program if found is not None and found.trains else None) == program


def test_files_of_a_container_and_templates_that_are_filled_in(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/a.yaml").write_text("per_device_train_batch_size: 4\n")
    (tmp_path / "run.sh").write_text(
        "torchrun train.py --config /mnt/w/conf/a.yaml\n"
        "envsubst < conf/a.yaml > t.yaml && torchrun train_sft.py --config t.yaml\n"
    )
    script = read_script(tmp_path / "run.sh")
    assert [one.effective()["per_device_train_batch_size"].value for one in script.launches] == ["4", "4"]
    assert any("/mnt/w/conf/a.yaml" in note for note in (*script.notes, *script.launches[0].notes))
