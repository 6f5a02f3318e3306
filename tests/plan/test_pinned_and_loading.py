"""A copy to the CPU may fail for page-locked host RAM; loading has no optimizer to make smaller."""

from __future__ import annotations

from tests.plan.planned import Planned, Step

NOTHING = "# the script is lost\n"
FRAME = 'Traceback (most recent call last):\n  File "/x/{file}", line 145, in {function}\n    {text}\n'
BARE = "RuntimeError: CUDA error: out of memory\n"
COPY = FRAME.format(
    file="zoo/checkpointing.py", function="forward", text='kept = hidden.to("cpu", non_blocking = True)'
)
PASS = FRAME.format(file="models/qwen2.py", function="forward", text="hidden = self.mlp(hidden)")
LOADING = FRAME.format(file="transformers/modeling_utils.py", function="from_pretrained", text="model = cls._load(x)")
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 462.00 MiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 300.00 MiB is free.\n"
)


def first(steps: dict[str, Step]) -> str:
    return next(iter(steps))


def test_a_copy_to_the_cpu_that_failed_wants_pinned_memory(planned: Planned) -> None:
    assert first(planned(NOTHING, COPY + BARE)) == "checkpoints-stay-on-card"
    assert "checkpoints-stay-on-card" not in planned(NOTHING, PASS + BARE)


def test_the_optimizer_is_no_lever_while_weights_are_loaded(planned: Planned) -> None:
    steps = planned(NOTHING, LOADING + FULL)
    assert "higher-zero-stage" in steps
    assert not {"cpu-optimizer", "smaller-optimizer", "optimizer-8bit", "smaller-zero-buckets"} & set(steps)
