"""A line of torch's or the trainer's own source shows the phase where no line of a file stands above it."""

from __future__ import annotations

from tests.crash.known import judge
from tests.loops import each

OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.14 GiB (GPU 5; 31.75 GiB total capacity; 28.28 GiB already allocated; 1.95 GiB free; 28.28 GiB reserved in total by PyTorch)\n"  # noqa: E501


@each(
    ("line", "phase"),
    [
        ("denom = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(eps)", "optimizer_step"),
        ("exp_avg_sq_sqrt = torch._foreach_sqrt(device_exp_avg_sqs)", "optimizer_step"),
        ('state["exp_avg"] = torch.zeros_like(p, memory_format=torch.preserve_format)', "optimizer_step"),
        (
            "Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass",
            "actor_update",
        ),
        ("return Variable._execution_engine.run_backward(", "actor_update"),
        ("param_applied = fn(param)", "model_load"),
        ("return self._apply(convert)", "model_load"),
        ("new_value = value.to(device)", "model_load"),
        ("hidden = self.act(self.linear(hidden))", "unknown"),
    ],
)
def test_a_source_line_shows_the_phase(line: str, phase: str) -> None:
    assert judge(f"    {line}\n{OOM}").phase == phase


def test_a_frame_decides_before_a_source_line() -> None:
    frames = '  File "/x/verl/workers/actor/dp_actor.py", line 331, in update_policy\n    loss.backward()\n'
    log = f"Traceback (most recent call last):\n{frames}    param_applied = fn(param)\n{OOM}"
    assert judge(log).phase == "actor_update"


def test_a_source_line_in_front_of_its_error_is_read_as_the_line_above_it() -> None:
    glued = f"  return torch._C._nn.cross_entropy_loss(input, target, weight){' ' * 40}{OOM}"
    assert judge(glued).source_line == "return torch._C._nn.cross_entropy_loss(input, target, weight)"


def test_the_matching_part_of_a_long_line_is_quoted() -> None:
    crash = judge(f"{OOM.strip()}    new_value = value.to(device)\n")
    assert (crash.phase, crash.phase_because) == ("model_load", "the log's text new_value = value.to(device)")


def test_the_constructor_of_a_trainer_places_the_model() -> None:
    frame = (
        '  File "/x/src/llmtuner/train/rm/trainer.py", line 23, in __init__\n    super().__init__(*args, **kwargs)\n'
    )
    assert judge(f"Traceback (most recent call last):\n{frame}{OOM}").phase == "model_load"
