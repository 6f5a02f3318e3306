"""Which runs lie in a folder: scripts that start training, each with its log, newest first, and nothing else."""

import os
import time
from pathlib import Path

import pytest

from advisor.recent import STARTS, launches, recent_in

TRAIN = "#!/bin/bash\nset -e\npython3 -m verl.trainer.main_ppo data.train_batch_size=8\n"


def write(path: Path, text: str, age: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1e9 - age, 1e9 - age))
    return path


def test_a_script_stands_with_the_log_that_bears_its_name_or_the_newest(tmp_path: Path) -> None:
    one = write(tmp_path / "stage1.sh", TRAIN, 50)
    two = write(tmp_path / "stage2.sh", TRAIN, 40)
    first = write(tmp_path / "logs" / "stage1.log", "x", 30)
    newest = write(tmp_path / "logs" / "other.log", "x", 10)
    found = recent_in(tmp_path, ray=tmp_path / "no-ray")
    pairs = {run.script.path: run.log.path for run in found.runs if run.script and run.log}
    assert pairs == {one: first, two: newest}
    assert found.runs[0].script is not None
    assert found.runs[0].script.path == two, "the run whose files were written last comes first"
    assert found.logs == ()


def test_every_log_beside_a_script_is_a_run_of_it(tmp_path: Path) -> None:
    write(tmp_path / "sft.sbatch", "#!/bin/bash\nllamafactory-cli train sft.yaml\n", 50)
    write(tmp_path / "slurm-8.out", "x", 10)
    write(tmp_path / "slurm-7.out", "x", 30)
    write(tmp_path / "requirements.txt", "torch\ntrl\n", 5)
    found = recent_in(tmp_path, ray=tmp_path / "no-ray")
    pairs = [(run.script.path.name, run.log.path.name) for run in found.runs if run.script and run.log]
    assert pairs == [("sft.sbatch", "slurm-8.out"), ("sft.sbatch", "slurm-7.out")]
    assert found.logs == ()


def test_a_text_is_a_log_by_what_stands_in_it(tmp_path: Path) -> None:
    write(tmp_path / "sft.sh", TRAIN, 50)
    write(tmp_path / "out.txt", "  0%|  | 3/4100 [02:14<49:22:08, 43.38s/it]\nTraceback (most recent call last):\n", 30)
    (run,) = recent_in(tmp_path, ray=tmp_path / "no-ray").runs
    assert run.log is not None
    assert run.log.path.name == "out.txt"


def test_a_launch_is_seen_behind_variables_paths_and_other_programs() -> None:
    lines = (
        b'LAUNCH=(python3)\n"${LAUNCH[@]}" -m verl.trainer.main_ppo a=1\n',
        b'"$PYTHON_BIN" -m "$ENTRYPOINT" trainer.algorithm=grpo\n',
        b"${PY} train_grpo.py\n",
        b"CUDA_VISIBLE_DEVICES=0,1 NCCL_DEBUG=INFO /opt/conda/bin/python -m trl sft\n",
        b"mpirun -np 8 python train.py --do_train\n",
        b'run_cmd="deepspeed train_ppo.py"\n',
    )
    assert [line for line in lines if not STARTS.search(line)] == []
    others = (b"pip install verl\n", b'echo "python is needed"\n', b"# python train.py\n", b"rsync -a $SRC grpo.py\n")
    assert [line for line in others if STARTS.search(line)] == []


def test_a_text_made_to_be_slow_is_not() -> None:
    begun = time.process_time()
    for made in (b" \n", b"\n", b"class a(", b"a=b ", b"srun ", b"a/"):
        STARTS.search((made * 65_000)[:65_000])
    assert time.process_time() - begun < 5


def test_a_run_is_as_old_as_its_log(tmp_path: Path) -> None:
    write(tmp_path / "run.sh", TRAIN, 1)
    write(tmp_path / "old.log", "x", 1000)
    assert [run.changed for run in recent_in(tmp_path, ray=tmp_path / "no-ray").runs] == [1e9 - 1000]


def test_what_starts_no_training_is_no_run(tmp_path: Path) -> None:
    write(tmp_path / "backup.sh", "#!/bin/sh\nrsync -a a b\n")
    write(tmp_path / "model.py", "import torch\nclass Model: ...\n")
    write(tmp_path / "run.fits.sh", TRAIN)
    write(tmp_path / ".hidden" / "run.sh", TRAIN)
    write(tmp_path / "node_modules" / "run.sh", TRAIN)
    write(tmp_path / "empty.log", "")
    found = recent_in(tmp_path, ray=tmp_path / "no-ray")
    assert (found.runs, found.logs, found.ray) == ((), (), None)


def test_logs_without_a_script_and_ray_are_named_too(tmp_path: Path) -> None:
    old, new = write(tmp_path / "slurm-1.out", "x", 20), write(tmp_path / "train.log", "x", 5)
    (tmp_path / "ray").mkdir()
    found = recent_in(tmp_path, ray=tmp_path / "ray")
    assert [log.path for log in found.logs] == [new, old]
    assert found.ray is not None


@pytest.mark.parametrize("folder", ["/nonexistent", "/proc/1/root/nowhere"])
def test_a_folder_that_cannot_be_read_holds_nothing(folder: str) -> None:
    assert recent_in(Path(folder), ray=Path("/nonexistent")).runs == ()


def test_the_documented_scripts_are_all_known_to_start_training() -> None:
    runs = Path(__file__).parent / "runs"
    scripts = [path for path in runs.glob("*/*") if path.suffix in (".sh", ".py")]
    assert len(scripts) >= 7
    assert [path.name for path in scripts if not launches(path)] == []


def test_links_in_a_circle_do_not_hold_it_up(tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(tmp_path)
    write(tmp_path / "run.sh", TRAIN)
    assert len(recent_in(tmp_path, ray=tmp_path / "no-ray").runs) == 1


def test_a_program_that_a_script_beside_it_runs_is_no_run_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "dpo.sbatch").write_text("#!/bin/bash\n#SBATCH --mem=160G\nsrun accelerate launch train_dpo.py\n")
    (tmp_path / "train_dpo.py").write_text("from trl import DPOTrainer\nif __name__ == '__main__':\n    main()\n")
    (tmp_path / "dpo.out").write_text("step 1\n")
    scripts = [
        run.script.path.name for run in recent_in(tmp_path, ray=tmp_path / "no-ray").runs if run.script is not None
    ]
    assert scripts == ["dpo.sbatch"]
