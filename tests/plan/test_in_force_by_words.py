"""What a post shows to be in force is no step, by whatever it shows it; what is of another launcher or date is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session
from advisor.state import State

OLD = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 23.69 GiB total capacity; "
    "21.50 GiB already allocated; 300.00 MiB free; 22.10 GiB reserved in total by PyTorch)\n"
)
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.69 GiB "
    "of which 300.00 MiB is free.\n"
)
PEFT = (
    'Traceback (most recent call last):\n  File "/x/site-packages/peft/peft_model.py", line 849, in forward\n'
    "    return self.get_base_model()(*args, **kwargs)\n"
)


def state_of(folder: Path, script: str, log: str, name: str = "run.sh", **answers: str) -> State:
    (folder / name).write_text(script)
    (folder / "log").write_text(log)
    return open_session(SessionRequest(folder / name, logs=(folder / "log",), gpus="1xRTX-3090-24GB", answers=answers))


def ids(state: State) -> set[str]:
    return {step.id for step in state.plan.steps}


@pytest.mark.parametrize(
    ("script", "log", "gone"),
    [
        (
            "python ft.py --batch_size 4\n",
            "We use gradient checkpointing, and still it dies.\n" + NEW,
            "gradient-checkpointing",
        ),
        ("python ft.py --batch_size 4\n", PEFT + NEW, "lora"),
        ("python ft.py --batch_size 4 --output_dir out_lora_7b\n", NEW, "lora"),
        ("['/usr/bin/python', 'ft.py', '--batch_size', '1', '--lr', '1e-5', '--epo", NEW, "lower-actor-micro-batch"),
        ("python ft.py --batch_size 4\n", OLD, "fused-loss"),
    ],
)
def test_what_is_in_force_or_newer_than_the_post_is_no_step(tmp_path: Path, script: str, log: str, gone: str) -> None:
    assert gone not in ids(state_of(tmp_path, script, log))


def test_a_loop_of_ones_own_is_told_the_name_that_stands_in_it(tmp_path: Path) -> None:
    code = "import torch\nimport lightning as L\n\nmicro_batch_size = 4\nlearning_rate = 1e-4\n"
    step = next(
        one for one in state_of(tmp_path, code, NEW, "train.py").plan.steps if one.id == "lower-actor-micro-batch"
    )
    assert [(one.key, one.old, one.new) for one in step.changes] == [("micro_batch_size", "4", "2")]


def test_a_strategy_of_its_own_gets_no_other_launcher(tmp_path: Path) -> None:
    script = "torchrun --nproc_per_node=4 train.py --strategy colossalai_zero2 --batch_size 2\n"
    assert not any("accelerate launch" in one.example for one in state_of(tmp_path, script, NEW).plan.steps)
