"""A Python file's settings are named as its call takes them, not as a command's options."""

from __future__ import annotations

from tests.plan.planned import Planned, selected

DPO = """from trl import DPOConfig, DPOTrainer

args = DPOConfig(output_dir="out", per_device_train_batch_size=8, bf16=True, max_length=4096)
DPOTrainer(model="Qwen/Qwen2.5-0.5B-Instruct", args=args, train_dataset=data).train()
"""
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.55 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.31 GiB is free. Process 3211 has 77.82 GiB memory in use. Of the allocated memory 75.65 GiB is "
    "allocated by PyTorch, and 1.05 GiB is reserved by PyTorch but unallocated.\n"
)


def test_a_keyword_that_the_call_does_not_have_yet_is_written_without_dashes(planned: Planned) -> None:
    steps = planned(DPO, OOM, "--answer", "phase=actor_update", name="train.py")
    keys = [change["key"] for step in steps.values() for change in step.get("changes") or ()]
    assert "gradient_accumulation_steps" in keys
    assert not [key for key in keys if key.startswith("-")]
    assert selected(steps)
    assert not [
        caveat for step in steps.values() for caveat in step.get("caveats", ()) if "cannot be written" in caveat
    ]
