"""What a batch script asks of Slurm limits the RAM of a node, whatever the node has."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from advisor.knowledge import open_knowledge
from advisor.machine.batch import batch_memory, visible, with_cards
from advisor.machine.inventory import Gpu, Machine
from advisor.request import SessionRequest
from advisor.session import open_session
from tests.loops import each

GIB = 2**30


@each(
    ("lines", "size", "source"),
    [
        ("#SBATCH --mem=160G", 160 * GIB, "#SBATCH --mem=160G"),
        ("#SBATCH --mem 64000  # megabytes", 64000 * 2**20, "#SBATCH --mem=64000"),
        ("#SBATCH --gres=gpu:a100:4 --mem-per-gpu=40G", 160 * GIB, "#SBATCH --mem-per-gpu=40G × 4"),
        ("#SBATCH -N 1 -G 8\n#SBATCH --mem-per-gpu=20G", 160 * GIB, "#SBATCH --mem-per-gpu=20G × 8"),
        (
            "#SBATCH -c 16\n#SBATCH --ntasks-per-node=4\n#SBATCH --mem-per-cpu=4G",
            256 * GIB,
            "#SBATCH --mem-per-cpu=4G × 64",
        ),
    ],
)
def test_the_limit_of_a_node_is_computed(lines: str, size: int, source: str) -> None:
    found = batch_memory(f"#!/bin/bash\n{lines}\nsrun python train.py\n")
    assert found is not None
    assert (found.limit_bytes, found.source) == (size, source)


@each(
    ("command", "size", "source"),
    [
        ("docker run --gpus all \\\n  -m 64g img python -m sft", 64 * GIB, "docker run -m=64g"),
        ("sudo podman run --memory=1073741824 img train", GIB, "docker run --memory=1073741824"),
        ("systemd-run --scope -p MemoryMax=64G python sft.py", 64 * GIB, "systemd-run MemoryMax=64G"),
        ("srun --mem=64000 torchrun sft.py", 64000 * 2**20, "srun --mem=64000"),
    ],
)
def test_a_command_starts_another_one_under_a_limit(command: str, size: int, source: str) -> None:
    found = batch_memory(f"#!/bin/bash\n{command}\n")
    assert found is not None
    assert (found.limit_bytes, found.source) == (size, source)


@each(
    "script",
    [
        "docker run -d --memory 8g judge\npython train.py",
        "docker run img python -m torch.distributed.run train.py",
        "# docker run --memory 8g img",
        "python train.py --mem=160G",
        "#SBATCH --mem=0",  # all of the node
        "export A=1\n#SBATCH --mem=160G",  # Slurm reads no line below the first command
        "#SBATCH --mem-per-gpu=40G",  # of how many
        "#SBATCH --nodes=2 --gpus=8 --mem-per-gpu=40G",  # however they lie
        "#SBATCH --mem-per-cpu=4G",
        "#SBATCH --mem=$MEM",
        "## #SBATCH --mem=160G",
        "#SBATCH --comment='open",
    ],
)
def test_what_says_no_limit_of_a_node_sets_none(script: str) -> None:
    assert batch_memory(f"#!/bin/bash\n{script}\n") is None


def test_a_job_that_was_killed_at_its_own_limit_is_told_to_raise_it(tmp_path: Path) -> None:
    (tmp_path / "job.sbatch").write_text(
        "#!/bin/bash\n#SBATCH --mem=160G\nsrun trl dpo --model_name_or_path meta-llama/Llama-3.1-8B --bf16\n"
    )
    (tmp_path / "job.out").write_text(
        "CPU Virtual Memory:  used = 118.4 GB, percent = 15.7%\n"
        "slurmstepd: error: Detected 1 oom_kill event in StepId=4417823.0. Some of the step tasks have been OOM "
        "Killed.\n"
    )
    asked = SessionRequest(tmp_path / "job.sbatch", (tmp_path / "job.out",))
    state = open_session(asked)
    assert state.machine.host.limit_bytes == 160 * GIB
    assert state.diagnosis.cause == "host-limit"
    assert open_session(replace(asked, host_ram="700GB")).machine.host.limit_bytes == 160 * GIB
    assert open_session(replace(asked, host_ram="150GB")).machine.host.ceiling_bytes == 150 * GIB


def test_the_cards_that_slurm_is_asked_for_are_the_runs() -> None:
    for asked, name, count in (("gpu:a100:8", "A100", 8), ("gpu:h100:4", "H100-80GB", 4), ("gpu:2", "GPU", 2)):
        cards = with_cards(Machine(), f"#SBATCH --gres={asked}\nsrun train\n", open_knowledge().gpus).gpus
        assert [card.name for card in cards] == [name] * count
        assert (cards[0].total_bytes is None) is (name != "H100-80GB")


def test_a_run_has_the_devices_that_its_variables_leave_it() -> None:
    whole = [Gpu(place, "A100", 80 * GIB, uuid=f"GPU-{letter}1") for place, letter in enumerate("abc")]
    machine = Machine(gpus=(*whole, Gpu(3, "A100", 40 * GIB, uuid="MIG-d1", mig="3g.40gb", parent=3)))
    told = {
        "0": ["GPU-a1"],
        "2,GPU-b": ["GPU-c1", "GPU-b1"], "0,-1,2": ["GPU-a1"], "1,9,2": ["GPU-b1"], "MIG-d": ["MIG-d1"],
        "": [], "-1": [], "NoDevFiles": [],
    }  # fmt: skip
    for ids, left in told.items():
        found = visible(machine, {"CUDA_VISIBLE_DEVICES": ids})
        assert [gpu.uuid for gpu in found.gpus] == left, ids
        assert f"leaves {len(left)} of this box's 4" in found.problems[0]
    assert visible(machine, {}) is machine
