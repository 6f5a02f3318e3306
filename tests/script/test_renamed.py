"""The launch script names the new file by one word, or it is said why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.cli import main
from advisor.script.document import EditRefused
from advisor.script.reader import read_script
from advisor.script.renamed import name_instead

ROWS = (
    ("torchrun train_sft.py --lr 1\n", "torchrun train_sft.fits.py --lr 1"),
    ('cd .\nF=./train_sft.py\nsrun python -u "$F" --lr 1\n', "F=./train_sft.fits.py"),
    ("deepspeed $HOME/x/train_sft.py\n", "deepspeed $HOME/x/train_sft.fits.py"),
    ("accelerate launch '/T/train_sft.py'\r\n", "accelerate launch '/T/train_sft.fits.py'"),
    ("F=train_sft.py\ncp $F /out\npython $F\n", "also decides"),
    ("python train_sft.py --copy train_sft.py\n", "2 words"),
    ("python -m train_sft\n", "no command in it names the file"),
    ("N=train_sft\npython $N.py\n", "put together"),
)


def test_one_word_is_changed_or_it_is_said_why_not(tmp_path: Path) -> None:
    wrong = []
    old, launch = tmp_path / "train_sft.py", tmp_path / "run.sh"
    old.write_text("import trl\n")
    for text, expected in ROWS:
        launch.write_bytes(text.replace("/T/", f"{tmp_path}/").encode())
        try:
            made = name_instead(read_script(launch), [0], old, tmp_path / "train_sft.fits.py")
            told = made.rewrite.new.decode()
            told = (
                told
                if "nothing else moved" in made.proof and "# rl-oom-advisor: train_sft.py ->" in told
                else "unproven"
            )
        except EditRefused as refusal:
            told = str(refusal)
        if expected.replace("/T/", f"{tmp_path}/") not in told:
            wrong.append((text, told))
    assert wrong == []


def test_a_script_that_is_run_is_changed_in_a_copy_that_the_first_one_names(tmp_path: Path) -> None:
    launch, inner = tmp_path / "run.sh", tmp_path / "jobs" / "dpo.sbatch"
    inner.parent.mkdir()
    inner.write_text("torchrun train_sft.py $@ --batch_size 8\n")
    for command in ("job=$(sbatch --parsable jobs/dpo.sbatch)", "cd jobs && bash dpo.sbatch --batch_size 4"):
        launch.write_text(f"bash jobs/other.sh\n{command}\n")
        assert main(["set", str(launch), "batch_size=2", "--force"]) == 0
        assert inner.with_name("dpo.fits.sbatch").read_text() == "torchrun train_sft.py $@ --batch_size 2\n"
        assert command.replace("dpo.", "dpo.fits.") in launch.with_name("run.fits.sh").read_text()


def test_a_file_in_another_folder_is_not_named(tmp_path: Path) -> None:
    launch = tmp_path / "run.sh"
    launch.write_text("python train_sft.py\n")
    with pytest.raises(EditRefused, match="another folder"):
        name_instead(read_script(launch), [0], tmp_path / "train_sft.py", Path("/elsewhere/train.py"))


def test_a_copy_that_starts_itself_by_its_name_starts_the_copy(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    end = "python train_sft.py --batch_size 8\n"
    for line in (
        "srun bash run.sh x",
        'ssh h "cd /w && bash ./run.sh x"',
        "xargs -n1 bash run.sh",
        "bash $0 x",
        "echo run.sh: bash",
    ):
        script.write_text(f'if [ "$1" != x ]; then\n{line}\nexit\nfi\n{end}')
        assert main(["set", str(script), "batch_size=2", "--force"]) == 0
        assert (
            line.replace("run.sh", "run.fits.sh" if "echo" not in line else "run.sh")
            in script.with_name("run.fits.sh").read_text()
        )
    for line in ("trap 'sbatch run.sh' USR1", "N=run\nsrun bash $N.sh x"):
        script.write_text(f"{line}\n{end}")
        assert main(["set", str(script), "batch_size=2", "--force"]) == 2


def test_what_is_inherited_is_set_in_the_config_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("a:\n  batch: 8\n")
    (tmp_path / "child.yaml").write_text("defaults: base.yaml\na:\n  n: 1\n")
    (tmp_path / "run.sh").write_text('COMMAND="python train.py --config child.yaml" sbatch ray.sub\n')
    (tmp_path / "ray.sub").write_text('srun bash -c "$COMMAND"\n')
    assert main(["set", str(tmp_path / "run.sh"), "a.batch=4"]) == 0
    assert (tmp_path / "child.fits.yaml").read_text() == "defaults: base.yaml\na:\n  n: 1\n  batch: 4\n"
    assert "--config child.fits.yaml" in (tmp_path / "run.fits.sh").read_text()
